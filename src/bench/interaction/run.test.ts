import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inTurn, sizeName } from './run.ts';

test('measures go in turn, and the first round is for warming up', async () => {
  const order: string[] = [];
  let rounds = 0;
  const samples = await inTurn(2, new AbortController().signal, [
    async () => {
      order.push('a');
      return { a: [rounds++] };
    },
    async () => {
      order.push('b');
      return { b: [10, 20], c: [30] };
    },
  ]);
  assert.equal(order.join(''), 'ababab');
  assert.equal(samples('a').percentile(0), 1);
  assert.deepEqual([samples('a').count, samples('b').count, samples('c').count], [2, 4, 2]);
  assert.throws(() => samples('d'), /by the name/);
});

test('an aborted run ends before its next measure', async () => {
  const stop = new AbortController();
  const ran: string[] = [];
  const run = inTurn(1, stop.signal, [
    async () => {
      ran.push('first');
      stop.abort(new Error('enough'));
      return {};
    },
    async () => {
      ran.push('second');
      return {};
    },
  ]);
  await assert.rejects(run, /enough/);
  assert.deepEqual(ran, ['first']);
});

test('sizes have short names', () => {
  assert.deepEqual([10, 1_000, 100_000, 1_000_000, 100_000_000].map(sizeName), ['10B', '1KB', '100KB', '1MB', '100MB']);
});
