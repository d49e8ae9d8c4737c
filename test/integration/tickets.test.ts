// Goal: of offers that two threads claim at once none is lost and none is run twice, whoever offers. Method: real threads
// over the real slots, bells and waits; each claims what it can and offers successors of its own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { Bells, createBells, createTicketMemory, Tickets } from '#src/executor/shared/index.js';

const OFFERS = 20_000;
const GENERATIONS = 3;

const THREAD = `
const { workerData, parentPort } = require('node:worker_threads');
import(workerData.module).then(({ Bells, Tickets }) => {
  const tickets = new Tickets(workerData.tickets, workerData.slot + 2);
  const bells = new Bells(workerData.bells);
  const counts = new Int32Array(workerData.counts);
  const offer = (n, generation) => {
    const slot = tickets.take();
    if (slot === undefined) return run(n, generation);
    slot.body.writeUInt32LE(n, 0);
    slot.body.writeUInt32LE(generation, 4);
    tickets.publish(slot.slot, { function: 0, sessionNo: 1, hi: generation, lo: n, stepsAhead: 0 }, 8);
    bells.ring(1 - workerData.slot);
  };
  const run = (n, generation) => {
    Atomics.add(counts, n * ${GENERATIONS} + generation, 1);
    if (generation + 1 < ${GENERATIONS}) offer(n, generation + 1);
  };
  const pump = () => {
    for (let i = 0; i < 200; i++) {
      const claimed = tickets.claim(() => true);
      if (claimed === undefined) {
        if (!bells.sleep(workerData.slot, () => tickets.readyCount > 0, pump)) setImmediate(pump);
        return;
      }
      const n = claimed.body.readUInt32LE(0);
      const generation = claimed.body.readUInt32LE(4);
      tickets.done(claimed.slot);
      run(n, generation);
    }
    setImmediate(pump);
  };
  pump();
  parentPort.postMessage('up');
  parentPort.on('message', () => {});
});`;

test('offers that threads race for run exactly once each', async () => {
  const tickets = createTicketMemory();
  const bells = createBells();
  const counts = new SharedArrayBuffer(OFFERS * GENERATIONS * 4);
  const module = new URL('../../../dist/executor/shared/index.js', import.meta.url).href;
  const threads = [0, 1].map(
    (slot) => new Worker(THREAD, { eval: true, workerData: { tickets, bells, counts, slot, module } }),
  );
  try {
    await Promise.all(threads.map((thread) => new Promise((resolve) => thread.once('message', resolve))));
    const host = new Tickets(tickets, 1);
    const hostBells = new Bells(bells);
    for (let n = 0; n < OFFERS; ) {
      const slot = host.take();
      if (slot === undefined) {
        await new Promise((resolve) => setImmediate(resolve));
        continue;
      }
      slot.body.writeUInt32LE(n, 0);
      slot.body.writeUInt32LE(0, 4);
      host.publish(slot.slot, { function: 0, sessionNo: 1, hi: 0, lo: n, stepsAhead: 0 }, 8);
      if (!hostBells.ring(n % 2)) hostBells.ring(1 - (n % 2));
      n++;
    }
    const words = new Int32Array(counts);
    const sum = () => words.reduce((a, b) => a + b, 0);
    // Bounded: a lost offer or wake-up would wait for ever.
    for (let i = 0; i < 1_000 && sum() < OFFERS * GENERATIONS; i++)
      await new Promise((resolve) => setTimeout(resolve, 10));
    assert.ok(
      words.every((count) => count === 1),
      'each ran once',
    );
    assert.equal(host.readyCount, 0);
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
});
