import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Estimate, START_POLICIES, type StartView } from './index.ts';

function view(
  given: Partial<Omit<StartView, 'body' | 'start' | 'waitedFor'>> & {
    bodyMs?: readonly number[];
    startMs?: readonly number[];
  },
): StartView {
  const body = new Estimate();
  const start = new Estimate();
  for (const ms of given.bodyMs ?? []) body.add(ms);
  for (const ms of given.startMs ?? []) start.add(ms);
  return {
    waiting: 0,
    oldestWaitMs: 0,
    busyForMs: [],
    idle: 0,
    startingForMs: [],
    ...given,
    waitedFor: (ms) => ((given.oldestWaitMs ?? 0) >= ms ? 1 : 0),
    body,
    start,
  };
}

const ARTICLE = { waiting: 18, busyForMs: [0, 0], bodyMs: [100, 100, 100], startMs: [1_700, 1_700] };

test('the burst of the article needs no start: two warm instances drain it first', () => {
  assert.equal(START_POLICIES['drain-aware'](view(ARTICLE)).count, 0);
  assert.equal(START_POLICIES.always(view(ARTICLE)).count, 18);
  assert.equal(START_POLICIES['cidre-like'](view(ARTICLE)).count, 0);
});

test('what cannot be drained before a start would be over is started for', () => {
  // In 1,700 ms two instances finish what they do and begin 17 more each.
  assert.equal(START_POLICIES['drain-aware'](view({ ...ARTICLE, waiting: 40 })).count, 40 - 2 * 17);
});

test('bodies longer than a start scale out at once', () => {
  const { count } = START_POLICIES['drain-aware'](view({ ...ARTICLE, bodyMs: [5_000, 5_000], waiting: 6 }));
  assert.equal(count, 6);
});

test('unless one of them is about to end', () => {
  const soon = view({ waiting: 6, busyForMs: [4_900, 0], bodyMs: [5_000, 5_000], startMs: [1_700] });
  assert.equal(START_POLICIES['drain-aware'](soon).count, 5);
});

test('nothing known of bodies: each that waits is started for, and not twice', () => {
  assert.equal(START_POLICIES['drain-aware'](view({ waiting: 3 })).count, 3);
  assert.equal(START_POLICIES['drain-aware'](view({ waiting: 3, startingForMs: [10, 10, 10] })).count, 0);
});

test('bodies that vary are counted longer than their mean', () => {
  const steady = START_POLICIES['drain-aware'](
    view({ waiting: 12, busyForMs: [0], bodyMs: [150, 150], startMs: [1_700] }),
  );
  const wild = START_POLICIES['drain-aware'](
    view({ waiting: 12, busyForMs: [0], bodyMs: [20, 280, 20, 280], startMs: [1_700] }),
  );
  assert.ok(wild.count > steady.count, `${wild.count} > ${steady.count}`);
});

test('what has waited as long as a start takes is given one, whatever was thought', () => {
  const stuck = view({ waiting: 1, oldestWaitMs: 1_800, busyForMs: [3_500], bodyMs: [100], startMs: [1_700] });
  const { count, why } = START_POLICIES['drain-aware'](stuck);
  assert.equal(count, 1);
  assert.match(why, /wait/);
});

test('a decision that nothing is needed is looked at again before the bound', () => {
  const { againInMs } = START_POLICIES['drain-aware'](view({ ...ARTICLE, oldestWaitMs: 700 }));
  assert.ok(againInMs !== undefined && againInMs <= 1_000 + 1);
});
