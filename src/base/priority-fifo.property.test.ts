// Goal: PF1 and PF2 for any order of pushes, withdrawals and turns. Method: a reference that looks through a plain list.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PriorityFifo } from './priority-fifo.ts';

const AGED_AFTER_MS = 50;
const AGED_EVERY = 3;

interface Item {
  readonly n: number;
  readonly priority: number;
  readonly sinceMs: number;
  waits: boolean;
}

/** Ten lines that anybody can check. */
class Reference {
  items: Item[] = [];
  turns = 0;

  next(nowMs: number): Item | undefined {
    const waiting = this.items.filter((one) => one.waits);
    const byPriority = [...waiting].sort((a, b) => b.priority - a.priority || a.n - b.n);
    const byAge = [...waiting].sort((a, b) => a.sinceMs - b.sinceMs || b.priority - a.priority || a.n - b.n);
    const oldest = byAge[0];
    const aged = oldest !== undefined && nowMs - oldest.sinceMs >= AGED_AFTER_MS;
    return this.turns % AGED_EVERY === AGED_EVERY - 1 && aged ? oldest : byPriority[0];
  }

  take(nowMs: number): Item | undefined {
    const next = this.next(nowMs);
    if (next === undefined) return undefined;
    this.turns++;
    this.items = this.items.filter((one) => one !== next);
    return next;
  }
}

test('the order is the reference order', () => {
  const step = fc.oneof(
    fc.record({ type: fc.constant('push' as const), priority: fc.integer({ min: -3, max: 3 }) }),
    fc.record({ type: fc.constant('take' as const) }),
    fc.record({ type: fc.constant('withdraw' as const), which: fc.nat(30) }),
    fc.record({ type: fc.constant('wait' as const), ms: fc.nat(40) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const queue = new PriorityFifo<Item>({
        waits: (item) => item.waits,
        agedAfterMs: AGED_AFTER_MS,
        agedEvery: AGED_EVERY,
      });
      const reference = new Reference();
      let nowMs = 0;
      let n = 0;
      for (const one of steps) {
        if (one.type === 'wait') nowMs += one.ms;
        else if (one.type === 'push') {
          const item = { n: n++, priority: one.priority, sinceMs: nowMs, waits: true };
          queue.push(item, item.priority, nowMs);
          reference.items.push(item);
        } else if (one.type === 'withdraw') {
          const item = reference.items[one.which];
          if (item !== undefined) item.waits = false;
        } else {
          assert.equal(queue.peek(nowMs), reference.next(nowMs));
          assert.equal(queue.take(nowMs), reference.take(nowMs));
        }
      }
      for (;;) {
        const next = queue.take(nowMs);
        assert.equal(next, reference.take(nowMs));
        if (next === undefined) return;
      }
    }),
    { numRuns: 300 },
  );
});

test('low priority gets its share of a flood of higher ones, and no more', () => {
  const queue = new PriorityFifo<string>({ agedAfterMs: 100, agedEvery: 4 });
  for (let i = 0; i < 50; i++) queue.push('low', 0, 0);
  const taken: string[] = [];
  for (let turn = 0; turn < 100; turn++) {
    queue.push('high', 5, turn * 10);
    taken.push(queue.take(turn * 10) ?? 'nothing');
  }
  assert.deepEqual(new Set(taken.slice(0, 10)), new Set(['high']), 'before it has waited long: never');
  const low = taken.slice(12).filter((one) => one === 'low').length;
  assert.equal(low, 22, 'one turn of four from then on');
});
