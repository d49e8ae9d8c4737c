// Goal: each primitive fires as its definition says, for any order of arrivals, second deliveries, late timers and
// restarts. Method: generated event sequences against reference models of about ten lines that see the arrivals only.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { at, drive, EPOCH_MS, type Event, object, objectOf, type Run } from './harness.test.ts';
import { restoreTrigger, scopeOf, type TriggerSpec } from './index.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
const GROUPS = ['', 'x', 'y'];
const STEPS_MAX = 60;

const arrival = fc
  .tuple(fc.constantFrom(...NAMES), fc.constantFrom(...GROUPS))
  .map(([name, group]): Event => ({ type: 'object', object: object(name, group) }));
const bucketArrival = fc
  .tuple(fc.constantFrom('s1', 's2'), fc.constantFrom(...NAMES), fc.constantFrom(...GROUPS))
  .map(([session, name, group]): Event => ({ type: 'object', object: objectOf(session, name, group) }));
const advance = fc.integer({ min: 0, max: 40 }).map((ms): Event => ({ type: 'advance', ms }));
const timer = fc.constant<Event>({ type: 'timer' });
const restart = fc.constant<Event>({ type: 'restart' });

function events(...kinds: fc.Arbitrary<Event>[]): fc.Arbitrary<Event[]> {
  return fc.array(fc.oneof(...kinds, restart), { maxLength: STEPS_MAX, size: 'max' });
}

/** Drives each generated case; `model` says which objects each firing has, in order. */
function agrees<O extends { readonly spec: TriggerSpec; readonly steps: readonly Event[] }>(
  cases: fc.Arbitrary<O>,
  model: (run: Run, given: O) => readonly (readonly string[])[],
): void {
  fc.assert(
    fc.property(cases, (given) => {
      const run = drive(given.spec, given.steps);
      assert.deepEqual(
        run.firings.map((firing) => firing.objects),
        model(run, given),
      );
    }),
    { numRuns: 300 },
  );
}

const keysOf = (run: Run): string[] => run.arrivals.map((arrived) => arrived.object.key);

test('immediate and byName fire once for each matching object', () => {
  const spec = fc.constantFrom<TriggerSpec>(
    { kind: 'immediate', run: 'f' },
    { kind: 'byName', match: { regexp: '^[a-c]$', flags: 'g' }, run: 'f' },
  );
  agrees(fc.record({ spec, steps: events(arrival) }), (run, given) =>
    keysOf(run).flatMap((key) => (given.spec.kind === 'immediate' || key <= 'c' ? [[key]] : [])),
  );
});

test('bySet fires once, in the order of its names, when all have come', () => {
  const spec = fc
    .shuffledSubarray(NAMES, { minLength: 1, maxLength: 5 })
    .map((names) => ({ kind: 'bySet', names, run: 'f' }) as const);
  agrees(fc.record({ spec, steps: events(arrival) }), (run, { spec: { names } }) =>
    names.every((name) => keysOf(run).includes(name)) ? [names] : [],
  );
});

test('byBatchSize fires full batches, and a smaller rest when its oldest object has waited maxWaitMs', () => {
  const spec = fc.record({
    kind: fc.constant('byBatchSize' as const),
    size: fc.integer({ min: 1, max: 5 }),
    maxWaitMs: fc.integer({ min: 1, max: 60 }),
    scope: fc.constant('bucket' as const),
    run: fc.constant('f'),
  });
  agrees(fc.record({ spec, steps: events(bucketArrival, advance, timer) }), (run, { spec: { size, maxWaitMs } }) => {
    const batches: { sinceMs: number; keys: string[] }[] = [];
    for (const { ms, object: arrived } of run.arrivals) {
      const last = batches.at(-1);
      if (last === undefined || last.keys.length === size || ms >= last.sinceMs + maxWaitMs) {
        batches.push({ sinceMs: ms, keys: [arrived.key] });
      } else last.keys.push(arrived.key);
    }
    const ended = batches.filter(({ sinceMs, keys }) => keys.length === size || run.endMs >= sinceMs + maxWaitMs);
    return ended.map(({ keys }) => keys);
  });
});

test('byTime fires each window that is over and has objects, with exactly those, however late the timer is', () => {
  const spec = fc.record({
    kind: fc.constant('byTime' as const),
    windowMs: fc.integer({ min: 1, max: 50 }),
    scope: fc.constant('bucket' as const),
    run: fc.constant('f'),
  });
  agrees(fc.record({ spec, steps: events(bucketArrival, advance, timer) }), (run, { spec: { windowMs } }) =>
    windows(run, (ms) => (Math.floor(ms / windowMs) + 1) * windowMs),
  );
});

test('byTime with a cron fires at its runs with what arrived since the last one', () => {
  const spec = fc.constantFrom(
    { kind: 'byTime', cron: '*/5 * * * * *', run: 'f', everyMs: 5_000 } as const,
    { kind: 'byTime', cron: '* * * * *', scope: 'session', run: 'f', everyMs: 60_000 } as const,
  );
  const longAdvance = fc.integer({ min: 0, max: 30_000 }).map((ms): Event => ({ type: 'advance', ms }));
  agrees(fc.record({ spec, steps: events(arrival, longAdvance, timer) }), (run, { spec: { everyMs } }) =>
    windows(run, (ms) => (Math.floor((EPOCH_MS + ms) / everyMs) + 1) * everyMs - EPOCH_MS),
  );
});

/** The reference model of byTime: arrivals grouped by the end of their window, those that are over. */
function windows(run: Run, endOf: (ms: number) => number): readonly string[][] {
  const byEnd = new Map<number, string[]>();
  for (const { ms, object: arrived } of run.arrivals) {
    byEnd.set(endOf(ms), [...(byEnd.get(endOf(ms)) ?? []), arrived.key]);
  }
  return [...byEnd].filter(([endMs]) => run.endMs >= endMs).map(([, keys]) => keys);
}

const sizes = fc
  .integer({ min: 1, max: 5 })
  .chain((n) => fc.record({ k: fc.integer({ min: 1, max: n }), n: fc.constant(n) }));

test('redundant in a session fires once with the first k distinct objects', () => {
  const spec = sizes.map(({ k, n }) => ({ kind: 'redundant', k, n, run: 'f' }) as const);
  agrees(fc.record({ spec, steps: events(arrival) }), (run, { spec: { k } }) =>
    run.arrivals.length >= k ? [keysOf(run).slice(0, k)] : [],
  );
});

test('redundant in a bucket fires with the first k of each n objects of a group', () => {
  const spec = sizes.map(({ k, n }) => ({ kind: 'redundant', k, n, scope: 'bucket', run: 'f' }) as const);
  agrees(fc.record({ spec, steps: events(bucketArrival) }), (run, { spec: { k, n } }) => {
    const firings: string[][] = [];
    const byGroup = new Map<string, string[]>();
    for (const { object: arrived } of run.arrivals) {
      const keys = [...(byGroup.get(arrived.group) ?? []), arrived.key];
      if (keys.length === k) firings.push(keys);
      byGroup.set(arrived.group, keys.length === n ? [] : keys);
    }
    return firings;
  });
});

/** Arrivals with one join somewhere among them, repeated at the end by the same invocation. */
function joinCases<J extends object>(joins: fc.Arbitrary<J>) {
  return fc.tuple(events(arrival), joins, fc.nat()).map(([others, join, place]) => ({
    spec: { kind: 'dynamicJoin', run: 'f' } as const,
    join,
    steps: [
      ...others.toSpliced(place % (others.length + 1), 0, { type: 'join', ...join }),
      { type: 'join', count: 0 },
    ] as Event[],
  }));
}

test('dynamicJoin over names fires once, in their order, whether they came before or after the join', () => {
  agrees(joinCases(fc.record({ names: fc.shuffledSubarray(NAMES, { maxLength: 5 }) })), (run, { join: { names } }) =>
    names.every((name) => keysOf(run).includes(name)) ? [names] : [],
  );
});

test('dynamicJoin over a count fires once with the first n in arrival order', () => {
  agrees(joinCases(fc.record({ count: fc.nat(8) })), (run, { join: { count } }) =>
    run.arrivals.length >= count ? [keysOf(run).slice(0, count)] : [],
  );
});

const quiet = fc.constant<Event>({ type: 'quiet' });
const close = fc.constant<Event>({ type: 'close' });
const producerEnded = fc.constant<Event>({ type: 'producer-ended', name: 'p', outcome: 'ok' });
const producerFailed = fc.constant<Event>({ type: 'producer-ended', name: 'p', outcome: 'failed' });

test('dynamicGroup fires one firing per group with all its objects, at a close or when its producers are done', () => {
  const spec = fc.constantFrom<TriggerSpec>(
    { kind: 'dynamicGroup', run: 'f' },
    { kind: 'dynamicGroup', producers: ['p', 'q'], run: 'f' },
  );
  const kinds = [
    { weight: 12, arbitrary: arrival },
    { weight: 3, arbitrary: quiet },
    { weight: 3, arbitrary: producerEnded },
    { weight: 1, arbitrary: close },
    { weight: 1, arbitrary: producerFailed },
    { weight: 3, arbitrary: restart },
  ];
  const steps = fc.array(fc.oneof(...kinds), { maxLength: STEPS_MAX, size: 'max' });
  agrees(fc.record({ spec, steps }), (_run, given) => groupsModel(given.steps, 'producers' in given.spec));
});

/** The reference model of dynamicGroup in a session: arrivals since the last round, by group. */
function groupsModel(steps: readonly Event[], hasProducers: boolean): readonly string[][] {
  const firings: string[][] = [];
  const seen = new Set<string>();
  let round = new Map<string, string[]>();
  let ended = false;
  let failed = false;
  for (const event of steps) {
    if (event.type === 'object' && !seen.has(event.object.key)) {
      seen.add(event.object.key);
      round.set(event.object.group, [...(round.get(event.object.group) ?? []), event.object.key]);
    } else if (event.type === 'producer-ended' && hasProducers) {
      if (event.outcome === 'ok') ended = true;
      else failed = true;
    } else if (event.type === 'close' || (event.type === 'quiet' && ended && !failed)) {
      if (round.size > 0) ended = false;
      firings.push(...round.values());
      round = new Map();
      if (event.type === 'close') return firings;
    }
  }
  return firings;
}

test('a restart at any point changes nothing that a machine says or does', () => {
  const specs = fc.constantFrom<TriggerSpec>(
    { kind: 'immediate', run: 'f' },
    { kind: 'bySet', names: ['a', 'b', 'c'], run: 'f' },
    { kind: 'byBatchSize', size: 4, maxWaitMs: 30, run: 'f' },
    { kind: 'byTime', windowMs: 25, fireEmpty: true, run: 'f' },
    { kind: 'byTime', cron: '* * * * * *', fireEmpty: true, run: 'f' },
    { kind: 'redundant', k: 2, n: 3, run: 'f' },
    { kind: 'redundant', k: 2, n: 3, scope: 'bucket', run: 'f' },
    { kind: 'dynamicJoin', run: 'f' },
    { kind: 'dynamicGroup', producers: ['p'], run: 'f' },
    { kind: 'dynamicGroup', scope: 'bucket', run: 'f' },
  );
  const join = fc.constantFrom<Event>({ type: 'join', names: ['a', 'b', 'e'] }, { type: 'join', count: 5 });
  const kinds = [advance, timer, quiet, producerEnded, producerFailed, join];
  const cases = specs.chain((spec) => {
    const arrivals = scopeOf(spec) === 'bucket' ? bucketArrival : arrival;
    return fc.tuple(fc.constant(spec), events(arrivals, arrivals, ...kinds));
  });
  fc.assert(
    fc.property(cases, ([spec, steps]) => {
      const restarted = drive(spec, steps);
      const straight = drive(
        spec,
        steps.filter(({ type }) => type !== 'restart'),
      );
      assert.deepEqual(restarted.firings, straight.firings);
      assert.equal(restarted.machine.nextTimerMs(), straight.machine.nextTimerMs());
      assert.equal(restarted.machine.waitsFor(), straight.machine.waitsFor());
      const now = at(restarted.endMs);
      const snapshot = straight.machine.snapshot(now);
      assert.deepEqual(restarted.machine.snapshot(now), snapshot);
      // Times are relative: wherever it is restored, the snapshot stays the same.
      assert.deepEqual(restoreTrigger(spec, snapshot, at(77_000)).snapshot(at(77_000)), snapshot);
    }),
    { numRuns: 500 },
  );
});
