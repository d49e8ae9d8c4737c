// byBatchSize and byTime: what their timers do, and what a restart or a redeploy keeps.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { at, EPOCH_MS, fired, object, objectOf } from './harness.test.ts';
import { createTrigger, type Now, restoreTrigger, type SpecOf, type TriggerMachine } from './index.ts';

const batch: SpecOf<'byBatchSize'> = { kind: 'byBatchSize', size: 3, maxWaitMs: 10, run: 'f' };
const window: SpecOf<'byTime'> = { kind: 'byTime', windowMs: 100, run: 'f' };

function throughJson(machine: TriggerMachine, now: Now): unknown {
  return JSON.parse(JSON.stringify(machine.snapshot(now)));
}

test('byBatchSize sets its timer by the oldest object held, and none when nothing is held', () => {
  const machine = createTrigger(batch, at(0));
  assert.equal(machine.nextTimerMs(), undefined);
  machine.onObject(objectOf('s', 'a'), at(1));
  machine.onObject(objectOf('s', 'b'), at(5));
  assert.equal(machine.nextTimerMs(), at(11).monotonicMs);
  assert.deepEqual(machine.onTimer(at(10.9)), []);
  assert.deepEqual(machine.onTimer(at(11)), [{ index: '0', objects: ['s\u0000a', 's\u0000b'] }]);
  assert.equal(machine.nextTimerMs(), undefined);
  assert.deepEqual(machine.onTimer(at(30)), []);
});

test('an object that comes when the rest is due does not join it', () => {
  const machine = createTrigger({ ...batch, scope: 'session' }, at(0));
  machine.onObject(object('a'), at(0));
  assert.deepEqual(fired(machine.onObject(object('b'), at(10))), [['a']]);
  assert.equal(machine.nextTimerMs(), at(20).monotonicMs);
});

test('without maxWaitMs a rest waits, and says so', () => {
  const machine = createTrigger({ kind: 'byBatchSize', size: 3, run: 'f' }, at(0));
  machine.onObject(objectOf('s', 'a'), at(0));
  assert.equal(machine.nextTimerMs(), undefined);
  assert.equal(machine.waitsFor(), 'waits for 2 of 3 objects');
});

test('a smaller size after a redeploy makes what is held due at once', () => {
  const machine = createTrigger({ ...batch, size: 10 }, at(0));
  for (const name of ['a', 'b', 'c', 'd', 'e']) machine.onObject(objectOf('s', name), at(0));
  const restored = restoreTrigger({ ...batch, size: 2 }, throughJson(machine, at(1)), at(1));
  assert.ok((restored.nextTimerMs() ?? Number.POSITIVE_INFINITY) <= at(1).monotonicMs);
  const firings = restored.onTimer(at(1));
  assert.deepEqual(
    firings.map(({ index, objects }) => [index, objects.length]),
    [
      ['0', 2],
      ['1', 2],
    ],
  );
  assert.equal(restored.held, 1);
});

test('the same name in two sessions is two objects; a session that is forgotten may use its names again', () => {
  const machine = createTrigger({ kind: 'byBatchSize', size: 2, run: 'f' }, at(0));
  machine.onObject(objectOf('s', 'a'), at(0));
  assert.equal(machine.onObject(objectOf('s', 'a'), at(0)).length, 0);
  assert.equal(machine.onObject(objectOf('t', 'a'), at(0)).length, 1);
  assert.equal(machine.onObject(objectOf('s', 'a'), at(0)).length, 0);
  assert.equal(machine.held, 0);
  machine.forgetSession('s');
  machine.onObject(objectOf('t', 'a'), at(0));
  assert.equal(machine.held, 0);
  machine.onObject(objectOf('s', 'a'), at(0));
  assert.equal(machine.held, 1);
});

test('a session-scoped machine keeps what it has taken, whatever sessions are forgotten', () => {
  const machine = createTrigger({ kind: 'byBatchSize', size: 1, scope: 'session', run: 'f' }, at(0));
  machine.onObject(object('a'), at(0));
  machine.forgetSession('s');
  assert.deepEqual(machine.onObject(object('a'), at(0)), []);
});

test('the last window of a stream that went quiet fires by the timer', () => {
  const machine = createTrigger(window, at(0));
  assert.equal(machine.nextTimerMs(), undefined);
  machine.onObject(objectOf('s', 'a'), at(130));
  assert.equal(machine.nextTimerMs(), at(200).monotonicMs);
  assert.deepEqual(machine.onTimer(at(200)), [{ index: '0', objects: ['s\u0000a'] }]);
  assert.equal(machine.nextTimerMs(), undefined);
});

test('fireEmpty fires every window, and once after several were missed, on the grid', () => {
  const machine = createTrigger({ ...window, fireEmpty: true }, at(0));
  assert.equal(machine.nextTimerMs(), at(100).monotonicMs);
  assert.deepEqual(fired(machine.onTimer(at(100))), [[]]);
  assert.equal(machine.nextTimerMs(), at(200).monotonicMs);
  machine.onObject(objectOf('s', 'a'), at(150));
  assert.deepEqual(fired(machine.onTimer(at(555))), [['s\u0000a']]);
  assert.equal(machine.nextTimerMs(), at(600).monotonicMs);
});

test('windows stay on the grid of fractional times without drift', () => {
  const machine = createTrigger({ ...window, windowMs: 7, fireEmpty: true }, at(0.1));
  for (let n = 1; n <= 10_000; n++) machine.onTimer({ ...at(0), monotonicMs: machine.nextTimerMs() ?? 0 });
  assert.equal(machine.nextTimerMs(), at(0.1).monotonicMs + 10_001 * 7);
});

test('a window goes on after a restart as if no time had passed, on another monotonic clock', () => {
  const machine = createTrigger(window, at(0));
  machine.onObject(objectOf('s', 'a'), at(130));
  const restored = restoreTrigger(window, throughJson(machine, at(140)), { monotonicMs: 3, epochMs: EPOCH_MS });
  assert.equal(restored.nextTimerMs(), 63);
  assert.equal(restored.held, 1);
});

test('another windowMs after a redeploy keeps what is held', () => {
  const machine = createTrigger(window, at(0));
  machine.onObject(objectOf('s', 'a'), at(130));
  const restored = restoreTrigger({ ...window, windowMs: 10 }, throughJson(machine, at(140)), at(140));
  assert.equal(restored.nextTimerMs(), at(150).monotonicMs);
  assert.deepEqual(fired(restored.onTimer(at(150))), [['s\u0000a']]);
});

test('a cron is in UTC and turns wall-clock runs into monotonic timers', () => {
  const machine = createTrigger({ kind: 'byTime', cron: '30 2 * * *', fireEmpty: true, run: 'f' }, at(0));
  const runMs = 2.5 * 3_600_000;
  assert.equal(machine.nextTimerMs(), at(runMs).monotonicMs);
  assert.equal(machine.onTimer(at(runMs)).length, 1);
  assert.equal(machine.nextTimerMs(), at(runMs + 86_400_000).monotonicMs);
});

test('a cron whose wall clock was set back waits for its run, and one set forward fires at the next event', () => {
  const machine = createTrigger({ kind: 'byTime', cron: '* * * * *', run: 'f' }, at(0));
  machine.onObject(objectOf('s', 'a'), at(0));
  const back = { monotonicMs: at(60_000).monotonicMs, epochMs: EPOCH_MS + 50_000 };
  assert.deepEqual(machine.onTimer(back), []);
  assert.equal(machine.nextTimerMs(), back.monotonicMs + 10_000);
  const forward = { monotonicMs: back.monotonicMs + 1, epochMs: EPOCH_MS + 3_600_000 };
  assert.deepEqual(fired(machine.onObject(objectOf('s', 'b'), forward)), [['s\u0000a']]);
});

test('a cron run that passed while the server was down is due at the restart', () => {
  const spec = { kind: 'byTime', cron: '0 * * * *', run: 'f' } as const;
  const machine = createTrigger(spec, at(0));
  machine.onObject(objectOf('s', 'a'), at(0));
  const later = { monotonicMs: 1, epochMs: EPOCH_MS + 86_400_000 };
  const restored = restoreTrigger(spec, throughJson(machine, at(1)), later);
  assert.ok((restored.nextTimerMs() ?? 2) <= 1);
  assert.deepEqual(fired(restored.onTimer(later)), [['s\u0000a']]);
});
