// What a trigger costs, where it stops growing, and what it makes of a damaged snapshot.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, object, objectOf } from './harness.test.ts';
import { createTrigger, HELD_OBJECTS_MAX, restoreTrigger, type TriggerObject, type TriggerSpec } from './index.ts';

const KINDS: readonly TriggerSpec[] = [
  { kind: 'immediate', run: 'f' },
  { kind: 'byName', match: 'n', run: 'f' },
  { kind: 'bySet', names: ['n0', 'n1', 'x'], run: 'f' },
  { kind: 'byBatchSize', size: 1_000_000, maxWaitMs: 10, run: 'f' },
  { kind: 'byTime', windowMs: 1_000, run: 'f' },
  { kind: 'byTime', cron: '* * * * *', run: 'f' },
  { kind: 'redundant', k: 100_000, n: 100_000, run: 'f' },
  { kind: 'redundant', k: 3, n: 5, scope: 'bucket', run: 'f' },
  { kind: 'dynamicJoin', run: 'f' },
  { kind: 'dynamicGroup', producers: ['p'], run: 'f' },
];

function objects(count: number): TriggerObject[] {
  return Array.from({ length: count }, (_, i) => objectOf('s', `n${i}`, `g${i % 1_000}`));
}

test('an object costs the same in a fan-in of 100,000 as in one of 12,500', () => {
  const few = objects(12_500);
  const many = objects(100_000);
  for (const spec of KINDS) {
    const [fewMs, manyMs] = [bestOf3Ms(spec, few), bestOf3Ms(spec, many)];
    // Eight times as many: linear is 8, quadratic 64. The constant absorbs a busy machine.
    assert.ok(manyMs < 24 * fewMs + 100, `${spec.kind}: ${fewMs} ms for 12,500, ${manyMs} ms for 100,000`);
  }
});

function bestOf3Ms(spec: TriggerSpec, sent: readonly TriggerObject[]): number {
  const now = at(0);
  let bestMs = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3; run++) {
    const machine = createTrigger(spec, now);
    const startMs = performance.now();
    for (const one of sent) machine.onObject(one, now);
    bestMs = Math.min(bestMs, performance.now() - startMs);
  }
  return bestMs;
}

test('a join over 100,000 names fires with all of them', () => {
  const names = Array.from({ length: 100_000 }, (_, i) => `n${i}`);
  const machine = createTrigger({ kind: 'dynamicJoin', run: 'f' }, at(0));
  for (const name of names.slice(50_000)) machine.onObject(object(name), at(0));
  machine.onJoin({ names }, 'i', at(0));
  const firings = names.slice(0, 50_000).flatMap((name) => machine.onObject(object(name), at(0)));
  assert.deepEqual(
    firings.map((firing) => firing.objects),
    [names],
  );
});

test('beyond HELD_OBJECTS_MAX an object is refused and not taken', () => {
  const machine = createTrigger({ kind: 'dynamicGroup', run: 'f' }, at(0));
  for (let i = 0; i < HELD_OBJECTS_MAX; i++) machine.onObject(object(`${i}`), at(0));
  const refusal = { code: 'E_QUOTA_EXCEEDED', kind: 'overload', message: /holds 1000000 objects that have not fired/ };
  assert.throws(() => machine.onObject(object('x'), at(0)), refusal);
  assert.equal(machine.held, HELD_OBJECTS_MAX);
  assert.deepEqual(machine.onObject(object('0'), at(0)), []);
});

test('a snapshot of another kind, of another version or damaged is refused as corrupt', () => {
  for (const spec of KINDS) {
    const snapshot = createTrigger(spec, at(0)).snapshot(at(0)) as Record<string, unknown>;
    const broken: unknown[] = [null, 'text', [], {}, { ...snapshot, version: 99 }, { ...snapshot, kind: 'other' }];
    for (const field of ['taken', 'held', 'groups', 'firings', 'arrived', 'clock']) {
      if (field in snapshot) broken.push({ ...snapshot, [field]: 'damaged' });
    }
    for (const one of broken) assert.throws(() => restoreTrigger(spec, one, at(0)), { code: 'E_PROTOCOL' });
    restoreTrigger(spec, snapshot, at(0));
  }
});
