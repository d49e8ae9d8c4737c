// redundant and dynamicGroup.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, fired, object, objectOf } from './harness.test.ts';
import { createTrigger, REDUNDANT_GROUPS_MAX, type SpecOf, type TriggerMachine } from './index.ts';

const grouped: SpecOf<'dynamicGroup'> = { kind: 'dynamicGroup', run: 'f' };
const produced: SpecOf<'dynamicGroup'> = { kind: 'dynamicGroup', producers: ['p'], run: 'f' };

function send(machine: TriggerMachine, ...names: string[]): void {
  for (const name of names) assert.deepEqual(machine.onObject(object(name, name.split(':')[0]), at(0)), []);
}

test('redundant drops what comes after the k-th, and holds nothing of it', () => {
  const machine = createTrigger({ kind: 'redundant', k: 2, n: 3, run: 'f' }, at(0));
  machine.onObject(object('a'), at(0));
  machine.onObject(object('a'), at(0));
  assert.equal(machine.waitsFor(), 'waits for 1 of 2 objects');
  assert.deepEqual(machine.onObject(object('b'), at(0)), [{ index: '0', objects: ['a', 'b'] }]);
  for (const name of ['c', 'd', 'e', 'f', 'g']) assert.deepEqual(machine.onObject(object(name), at(0)), []);
  assert.equal(machine.held, 0);
});

test('redundant in a bucket keeps groups apart and may use a group value again after its n-th', () => {
  const machine = createTrigger({ kind: 'redundant', k: 1, n: 2, scope: 'bucket', run: 'f' }, at(0));
  const indices = ['g', 'h', 'g', 'g', 'h', 'h'].flatMap((group, i) =>
    machine.onObject(objectOf(`s${i}`, 'x', group), at(0)).map((firing) => [firing.index, firing.group]),
  );
  assert.deepEqual(indices, [
    ['0:g', 'g'],
    ['1:h', 'h'],
    ['2:g', 'g'],
    ['3:h', 'h'],
  ]);
});

test('a straggler delivered twice does not open its completed group again', () => {
  const machine = createTrigger({ kind: 'redundant', k: 1, n: 2, scope: 'bucket', run: 'f' }, at(0));
  machine.onObject(objectOf('s', 'a', 'g'), at(0));
  machine.onObject(objectOf('s', 'b', 'g'), at(0));
  assert.deepEqual(machine.onObject(objectOf('s', 'b', 'g'), at(0)), []);
});

test('groups whose losers never come make room for others; groups without a winner are refused beyond the limit', () => {
  const winners = createTrigger({ kind: 'redundant', k: 1, n: 2, scope: 'bucket', run: 'f' }, at(0));
  let firings = 0;
  for (let i = 0; i < REDUNDANT_GROUPS_MAX + 10; i++) {
    firings += winners.onObject(objectOf('s', `${i}`, `${i}`), at(0)).length;
  }
  assert.equal(firings, REDUNDANT_GROUPS_MAX + 10);
  assert.equal((winners.snapshot(at(0)) as { groups: unknown[] }).groups.length, REDUNDANT_GROUPS_MAX);

  const waiting = createTrigger({ kind: 'redundant', k: 2, n: 2, scope: 'bucket', run: 'f' }, at(0));
  for (let i = 0; i < REDUNDANT_GROUPS_MAX; i++) waiting.onObject(objectOf('s', `${i}`, `${i}`), at(0));
  assert.throws(() => waiting.onObject(objectOf('s', 'x', 'x'), at(0)), { code: 'E_QUOTA_EXCEEDED' });
  assert.equal(waiting.held, REDUNDANT_GROUPS_MAX);
  assert.equal(waiting.onObject(objectOf('s', 'y', '0'), at(0)).length, 1);
  waiting.onObject(objectOf('s', 'x', 'x'), at(0));
  assert.equal(waiting.held, REDUNDANT_GROUPS_MAX);
});

test('dynamicGroup without producers fires at the first close, by group, and ignores what follows', () => {
  const machine = createTrigger(grouped, at(0));
  send(machine, 'b:1', 'a:1', 'b:2');
  machine.onObject(object('lone'), at(0));
  machine.onProducerEnded('p', 'ok');
  assert.deepEqual(machine.onQuiet(at(0)), []);
  assert.equal(machine.waitsFor(), 'waits for ctx.closeGroup');
  assert.equal(machine.closed, false);
  assert.deepEqual(machine.onClose(at(0)), [
    { index: '0:b', objects: ['b:1', 'b:2'], group: 'b' },
    { index: '0:a', objects: ['a:1'], group: 'a' },
    { index: '0:', objects: ['lone'], group: '' },
  ]);
  assert.equal(machine.closed, true);
  assert.deepEqual(machine.onClose(at(0)), []);
  send(machine, 'late');
  assert.equal(machine.held, 0);
});

test('dynamicGroup with producers waits for one of them to end, not only for quiet', () => {
  const machine = createTrigger(produced, at(0));
  send(machine, 'a');
  assert.deepEqual(machine.onQuiet(at(0)), []);
  machine.onProducerEnded('another', 'ok');
  assert.deepEqual(machine.onQuiet(at(0)), []);
  assert.equal(machine.waitsFor(), 'waits for its producers to end: p');
  machine.onProducerEnded('p', 'ok');
  assert.deepEqual(fired(machine.onQuiet(at(0))), [['a']]);
});

test('dynamicGroup fires a later round when a producer has ended again and there are new objects', () => {
  const machine = createTrigger(produced, at(0));
  machine.onProducerEnded('p', 'ok');
  assert.deepEqual(machine.onQuiet(at(0)), []);
  send(machine, 'a:1');
  assert.deepEqual(machine.onQuiet(at(0)), [{ index: '0:a', objects: ['a:1'], group: 'a' }]);
  send(machine, 'a:1', 'a:2');
  assert.deepEqual(machine.onQuiet(at(0)), []);
  machine.onProducerEnded('p', 'ok');
  assert.deepEqual(machine.onQuiet(at(0)), [{ index: '1:a', objects: ['a:2'], group: 'a' }]);
});

test('dynamicGroup does not fire when a producer failed for good, unless it is closed', () => {
  const machine = createTrigger(produced, at(0));
  send(machine, 'a');
  machine.onProducerEnded('p', 'failed');
  machine.onProducerEnded('p', 'ok');
  for (const _ of [1, 2]) assert.deepEqual(machine.onQuiet(at(0)), []);
  assert.equal(machine.waitsFor(), 'does not fire: one of its producers failed');
  assert.deepEqual(fired(machine.onClose(at(0))), [['a']]);
});
