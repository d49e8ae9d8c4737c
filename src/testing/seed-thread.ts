// The thread of a SeedRunner.

import { parentPort } from 'node:worker_threads';
import { assert } from '../base/index.ts';
import { type SimulationOptions, simulate } from './simulate.ts';

assert(parentPort !== null, 'this is a thread of a SeedRunner');
const port = parentPort;
port.on('message', (options: SimulationOptions) => {
  void simulate(options).then((result) => port.postMessage(result));
});
