import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, fired, object } from './harness.test.ts';
import { createTrigger, restoreTrigger, type TriggerMachine } from './index.ts';

const join = (): TriggerMachine => createTrigger({ kind: 'dynamicJoin', run: 'f' }, at(0));

test('immediate and byName index a firing by the name of its object', () => {
  const machine = createTrigger({ kind: 'byName', match: 'order-', run: ['f', 'g'] }, at(0));
  assert.deepEqual(machine.onObject(object('order-1'), at(0)), [{ index: 'order-1', objects: ['order-1'] }]);
  assert.deepEqual(machine.onObject(object('other'), at(0)), []);
  assert.equal(machine.waitsFor(), undefined);
});

test('bySet ignores a late duplicate and does not open again', () => {
  const machine = createTrigger({ kind: 'bySet', names: ['b', 'a'], run: 'f' }, at(0));
  machine.onObject(object('a'), at(0));
  assert.deepEqual(machine.onObject(object('b'), at(0)), [{ index: '0', objects: ['b', 'a'] }]);
  for (const name of ['a', 'b', 'a', 'b']) assert.deepEqual(machine.onObject(object(name), at(1)), []);
  assert.equal(machine.held, 0);
});

test('bySet says which names it waits for, and cuts a long list', () => {
  const machine = createTrigger({ kind: 'bySet', names: ['a', 'b', 'c'], run: 'f' }, at(0));
  machine.onObject(object('a'), at(0));
  assert.equal(machine.waitsFor(), 'waits for 2 of 3 names: b, c');
  const names = Array.from({ length: 100 }, (_, i) => `n${i}`);
  const wide = createTrigger({ kind: 'bySet', names, run: 'f' }, at(0));
  assert.equal(wide.waitsFor(), 'waits for 100 of 100 names: n0, n1, n2, n3, n4, and 95 more');
});

test('dynamicJoin of width 0 fires at once without objects, by names and by count', () => {
  assert.deepEqual(join().onJoin({ count: 0 }, 'i', at(0)), [{ index: '0', objects: [] }]);
  const machine = join();
  machine.onObject(object('a'), at(0));
  assert.deepEqual(machine.onJoin({ names: [] }, 'i', at(0)), [{ index: '0', objects: [] }]);
  assert.equal(machine.held, 0);
});

test('dynamicJoin counts what came before the join and lets go of other names', () => {
  const machine = join();
  for (const name of ['x', 'b', 'y']) machine.onObject(object(name), at(0));
  assert.equal(machine.waitsFor(), 'waits for ctx.join to name the set');
  assert.deepEqual(machine.onJoin({ names: ['a', 'b'] }, 'i', at(0)), []);
  assert.deepEqual([...machine.heldKeys()], ['b']);
  assert.equal(machine.waitsFor(), 'waits for 1 of 2 names: a');
  assert.deepEqual(fired(machine.onObject(object('a'), at(0))), [['a', 'b']]);
});

test('a second join of the same invocation is ignored, of another one refused, before and after the firing', () => {
  const machine = join();
  machine.onJoin({ count: 1 }, 'i', at(0));
  for (const _ of ['before', 'after']) {
    assert.deepEqual(machine.onJoin({ count: 0 }, 'i', at(0)), []);
    assert.throws(() => machine.onJoin({ count: 1 }, 'other', at(0)), { code: 'E_OBJECT_EXISTS' });
    machine.onObject(object('a'), at(0));
  }
  const restored = restoreTrigger(machine.spec, machine.snapshot(at(0)), at(0));
  assert.throws(() => restored.onJoin({ count: 1 }, 'other', at(0)), { code: 'E_OBJECT_EXISTS' });
});

test('a join that is refused for its options leaves the bucket free for a right one', () => {
  const machine = join();
  for (const wrong of [{}, { names: [], count: 0 }, { count: -1 }, { count: 0.5 }, { count: Number.NaN }]) {
    assert.throws(() => machine.onJoin(wrong, 'i', at(0)), { code: 'E_OPTION_INVALID' });
  }
  assert.throws(() => machine.onJoin({ count: 1_000_001 }, 'i', at(0)), { code: 'E_QUOTA_EXCEEDED' });
  machine.onJoin({ count: 1 }, 'other', at(0));
  assert.deepEqual(fired(machine.onObject(object('a'), at(0))), [['a']]);
});

test('a name joined twice counts once', () => {
  const machine = join();
  machine.onObject(object('a'), at(0));
  assert.deepEqual(fired(machine.onJoin({ names: ['a', 'a'] }, 'i', at(0))), [['a']]);
});

test('names that are properties of every object are names like others', () => {
  const names = ['__proto__', 'constructor', 'toString'];
  const machine = createTrigger({ kind: 'bySet', names, run: 'f' }, at(0));
  const firings = names.flatMap((name) => machine.onObject(object(name), at(0)));
  assert.deepEqual(fired(firings), [names]);
});
