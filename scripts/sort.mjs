// `npm run sort`: set-up, then examples/sort/run.ts as compiled. Its exit code is ours.

import { runExample } from './run-example.mjs';

await runExample('sort/run');
