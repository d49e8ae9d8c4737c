// `npm run demo`: set-up, then examples/demo.ts as compiled. Its exit code is ours.

import { runExample } from './run-example.mjs';

await runExample('demo');
