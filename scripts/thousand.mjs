// `npm run thousand`: set-up, then examples/thousand.ts as compiled. Its exit code is ours.

import { runExample } from './run-example.mjs';

await runExample('thousand');
