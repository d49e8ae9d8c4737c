// Goal: after a restart a trigger counts nothing that was lost. Method: a machine with objects of two sessions, of which the
// snapshot's objects are only partly there; then what is missing for a firing comes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTrigger, restoreTrigger } from './index.ts';

const NOW = { monotonicMs: 0, epochMs: 0 };
const object = (key: string, group = '') => ({ key, name: key, group, session: key });

test('a redundant trigger waits for as many as before the lost ones came', () => {
  const spec = { kind: 'redundant', k: 2, n: 3, scope: 'bucket', run: 'f' } as const;
  const before = createTrigger(spec, NOW);
  assert.deepEqual(before.onObject(object('lost'), NOW), []);
  const machine = restoreTrigger(spec, before.snapshot(NOW), NOW);
  machine.keepOnly(() => false);
  assert.equal(machine.held, 0);
  assert.deepEqual(machine.onObject(object('a'), NOW), [], 'one of two');
  assert.deepEqual(
    machine.onObject(object('b'), NOW).map(({ objects }) => objects),
    [['a', 'b']],
  );
});

test('a group fires without the lost ones, and not at all when all were lost', () => {
  const spec = { kind: 'dynamicGroup', scope: 'bucket', run: 'f' } as const;
  const before = createTrigger(spec, NOW);
  for (const [key, group] of [
    ['a', 'x'],
    ['lost', 'x'],
    ['lost too', 'y'],
  ] as const)
    before.onObject(object(key, group), NOW);
  const machine = restoreTrigger(spec, before.snapshot(NOW), NOW);
  machine.keepOnly((key) => key === 'a');
  assert.equal(machine.held, 1);
  assert.deepEqual(
    machine.onClose(NOW).map(({ objects }) => objects),
    [['a']],
  );
});
