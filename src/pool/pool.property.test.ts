// Goal: whatever happens, everything that waits is begun, instances stay within their limits and are in one place, and a
// pool without work ends without instances. Method: random arrivals, bodies, starts that die, evictions, in virtual time.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Prng } from '../base/index.ts';
import {
  ByWorth,
  fixed,
  hybrid,
  Pool,
  type PoolEffect,
  type Pooled,
  Population,
  START_POLICIES,
  untilEvicted,
} from './index.ts';

interface Scenario {
  readonly seed: number;
  readonly arrivals: readonly { afterMs: number; bodyMs: number }[];
  readonly startMs: number;
  readonly startDies: number;
  readonly bodyDies: number;
  readonly instancesMax: number;
  readonly reserve: boolean;
  readonly start: keyof typeof START_POLICIES;
  readonly warm: 'fixed' | 'hybrid' | 'ours';
}

const scenario: fc.Arbitrary<Scenario> = fc.record({
  seed: fc.nat(),
  arrivals: fc.array(
    fc.record({ afterMs: fc.oneof(fc.constant(0), fc.nat(400), fc.nat(120_000)), bodyMs: fc.nat(2_000) }),
    {
      maxLength: 60,
    },
  ),
  startMs: fc.integer({ min: 1, max: 3_000 }),
  startDies: fc.constantFrom(0, 0, 0.3, 0.7),
  bodyDies: fc.constantFrom(0, 0, 0.1),
  instancesMax: fc.integer({ min: 1, max: 8 }),
  reserve: fc.boolean(),
  start: fc.constantFrom('always' as const, 'drain-aware' as const, 'cidre-like' as const),
  warm: fc.constantFrom('fixed' as const, 'hybrid' as const, 'ours' as const),
});

function warmOf(kind: Scenario['warm']) {
  if (kind === 'fixed') return fixed(60_000);
  if (kind === 'hybrid') return hybrid({ rangeMinutes: 10, tailShare: 0.99 });
  return new ByWorth({ worthMs: 60_000, worthMsAtOneAnHour: 100_000, population: new Population(), sinceMs: 0 });
}

interface Run {
  readonly begun: number;
  readonly longestWaitMs: number;
  readonly endedAtMs: number;
  readonly starts: number;
  readonly pool: Pool;
}

function run(given: Scenario): Run {
  const random = new Prng(given.seed);
  const pool = new Pool(
    {
      start: START_POLICIES[given.start],
      warm: warmOf(given.warm),
      reserve: given.reserve,
      instancesMin: 0,
      instancesMax: given.instancesMax,
    },
    random,
  );
  const due: { atMs: number; act: () => PoolEffect[] }[] = [];
  const bodies: number[] = [];
  let nowMs = 0;
  let begun = 0;
  let longestWaitMs = 0;
  let starts = 0;
  let atMs = 0;
  for (const { afterMs, bodyMs } of given.arrivals) {
    atMs += afterMs;
    due.push({
      atMs,
      act: () => {
        bodies.push(bodyMs);
        return pool.arrived(nowMs);
      },
    });
  }
  const begin = (instance: Pooled, bodyMs: number) => {
    const dies = random.float() < given.bodyDies;
    due.push({ atMs: nowMs + bodyMs, act: () => (dies ? pool.gone(instance, nowMs) : pool.ended(instance, nowMs)) });
  };
  for (let steps = 0; ; steps++) {
    assert.ok(steps < 100_000, 'it comes to an end');
    due.sort((a, b) => a.atMs - b.atMs);
    const timerMs = pool.nextTimerMs;
    const next = due[0];
    if (next === undefined && timerMs === Number.POSITIVE_INFINITY) break;
    let effects: PoolEffect[];
    if (next === undefined || timerMs < next.atMs) {
      nowMs = Math.max(nowMs, timerMs);
      effects = pool.timePassed(nowMs);
    } else {
      nowMs = next.atMs;
      due.shift();
      effects = next.act();
    }
    for (const effect of effects) {
      if (effect.type === 'retire') {
        assert.notEqual(effect.why, '');
        continue;
      }
      starts++;
      const { instance } = effect;
      assert.notEqual(instance.whyStarted, '');
      const dies = random.float() < given.startDies;
      due.push({
        atMs: nowMs + given.startMs,
        act: () => (dies ? pool.gone(instance, nowMs) : pool.ready(instance, nowMs)),
      });
    }
    for (;;) {
      const one = pool.begin(nowMs);
      if (one === undefined) break;
      longestWaitMs = Math.max(longestWaitMs, one.waitedMs);
      begin(one.instance, bodies.shift() as number);
      begun++;
    }
    assert.ok(pool.waiting === 0 || pool.idle === 0, 'nothing waits while an instance is idle (PO2)');
    pool.checkInvariants();
  }
  return { begun, longestWaitMs, endedAtMs: nowMs, starts, pool };
}

test('everything that waits is begun, and in the end nothing is left', () => {
  fc.assert(
    fc.property(scenario, (given) => {
      const { begun, pool } = run(given);
      assert.equal(begun, given.arrivals.length);
      assert.equal(pool.waiting, 0);
      assert.equal(pool.size, 0, 'scale to zero');
    }),
    { numRuns: 400 },
  );
});

test('with room, nobody waits longer than the bound that the default states', () => {
  fc.assert(
    fc.property(scenario, (given) => {
      const calm = { ...given, start: 'drain-aware' as const, startDies: 0, bodyDies: 0, instancesMax: 100 };
      const { longestWaitMs } = run(calm);
      // Until a start was measured it is thought to take START_MS_UNKNOWN.
      assert.ok(longestWaitMs <= 2 * Math.max(calm.startMs, 200) + calm.startMs + 2, `${longestWaitMs} ms`);
    }),
    { numRuns: 400 },
  );
});

test('the same seed gives the same run', () => {
  fc.assert(
    fc.property(scenario, (given) => {
      const [a, b] = [run(given), run(given)];
      assert.deepEqual(
        [a.begun, a.longestWaitMs, a.endedAtMs, a.starts],
        [b.begun, b.longestWaitMs, b.endedAtMs, b.starts],
      );
    }),
    { numRuns: 50 },
  );
});

test('load that falls is not followed by starts', () => {
  const random = new Prng(7);
  // The first is alone, so that times are known.
  const arrivals = [
    { afterMs: 0, bodyMs: 300 },
    { afterMs: 5_000, bodyMs: 300 },
  ];
  for (let rate = 20; rate >= 1; rate--) {
    for (let i = 0; i < 20; i++) arrivals.push({ afterMs: (1_000 / rate) * random.float() * 2, bodyMs: 300 });
  }
  const common = {
    seed: 1,
    arrivals,
    startMs: 500,
    startDies: 0,
    bodyDies: 0,
    instancesMax: 50,
    reserve: false,
  } as const;
  const { starts } = run({ ...common, start: 'drain-aware', warm: 'ours' });
  const always = run({ ...common, start: 'always', warm: 'fixed' });
  assert.ok(starts <= 12, `${starts} starts for at most 20 × 0.3 s at once`);
  assert.ok(always.starts >= starts);
});

test('a reserve is left by a burst that had to wait, and only so large', () => {
  const arrivals = [
    { afterMs: 0, bodyMs: 100 },
    { afterMs: 5_000, bodyMs: 100 },
    ...Array.from({ length: 30 }, () => ({ afterMs: 500, bodyMs: 100 })),
    ...Array.from({ length: 20 }, () => ({ afterMs: 0, bodyMs: 100 })),
  ];
  const { starts } = run({
    seed: 1,
    arrivals,
    startMs: 1_700,
    startDies: 0,
    bodyDies: 0,
    instancesMax: 50,
    reserve: true,
    start: 'drain-aware',
    warm: 'fixed',
  });
  assert.ok(starts <= 4, `${starts} starts for a burst of twenty`);
});

test('what is kept until it is evicted stays, and goes when it is', () => {
  const pool = new Pool(
    { start: START_POLICIES.always, warm: untilEvicted(), reserve: false, instancesMin: 0, instancesMax: 2 },
    new Prng(1),
  );
  const [started] = pool.arrived(0);
  assert.equal(started?.type, 'start');
  const instance = started?.instance as Pooled;
  pool.ready(instance, 10);
  assert.equal(pool.begin(10)?.instance, instance);
  assert.deepEqual(pool.ended(instance, 20), []);
  assert.equal(pool.nextTimerMs === Number.POSITIVE_INFINITY || pool.timePassed(pool.nextTimerMs).length === 0, true);
  assert.equal(pool.size, 1);
  pool.evict(instance, 1e9);
  assert.equal(pool.size, 0);
});
