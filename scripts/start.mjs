// `npm run start`: set-up, then examples/start.ts as compiled. Its exit code is ours.

import { runExample } from './run-example.mjs';

await runExample('start');
