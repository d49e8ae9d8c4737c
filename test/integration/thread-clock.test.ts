// Goal: times that two threads took can be compared. Method: a thread reads its clock between two readings of ours.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { threadClockOrigin } from '#src/platform/node/index.js';

/** What the sampling of two clocks may be off. */
const TOLERANCE_MS = 0.05;

test('a thread’s clock shows what its starter’s clock shows', async () => {
  const module = JSON.stringify(new URL('../../../dist/platform/node/index.js', import.meta.url).href);
  const source = `
    const { parentPort, workerData } = require('node:worker_threads');
    import(${module}).then(({ threadClock }) => {
      const clock = threadClock(workerData);
      parentPort.on('message', () => parentPort.postMessage(clock()));
      parentPort.postMessage('ready');
    });`;
  const originMs = threadClockOrigin();
  for (let thread = 0; thread < 3; thread++) {
    const worker = new Worker(source, { eval: true, workerData: originMs });
    await once(worker, 'message');
    for (let i = 0; i < 5; i++) {
      const beforeMs = performance.now();
      worker.postMessage('');
      const [theirsMs] = (await once(worker, 'message')) as [number];
      const afterMs = performance.now();
      assert.ok(theirsMs >= beforeMs - TOLERANCE_MS, `${beforeMs - theirsMs} ms before it was asked`);
      assert.ok(theirsMs <= afterMs + TOLERANCE_MS, `${theirsMs - afterMs} ms after it had answered`);
    }
    await worker.terminate();
  }
});
