// Goal: what waits is offered once, in order, and reaches an instance; instances stay within their limit. Method: random
// events against the machine, a model of who waits, invariants after each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Prng } from '../../base/index.ts';
import { OFFERS_PER_INSTANCE } from './limits.ts';
import { LocalScheduler, type SchedulerEffect, type SchedulerEvent } from './local-scheduler.ts';
import type { Invocation } from './session.ts';
import { rankOf } from './wait-queue.ts';

const ROW = { pool: 'p', priority: 0 };

function invocation(n: number, entry: boolean, priority = 0): Invocation {
  return {
    row: ROW,
    place: 'queued',
    attempts: 0,
    firing: entry ? undefined : { bucket: 0, trigger: 't', index: '0' },
    session: { priority, n },
  } as unknown as Invocation;
}

test('whatever waits is offered exactly once, and runs in the end', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(fc.nat(99), { maxLength: 150 }), (seed, steps) => {
      const random = new Prng(seed);
      const scheduler = new LocalScheduler({ instancesMax: 4, pools: ['p'] }, random);
      let now = 0;
      let made = 0;
      const waiting = new Set<Invocation>();
      const offered = new Set<Invocation>();
      const done = new Set<Invocation>();
      const busy: number[] = [];
      const take = (effects: readonly SchedulerEffect[]) => {
        for (const effect of effects) {
          if (effect.type === 'offer') {
            assert.ok(waiting.delete(effect.invocation), 'offered while it waits, once');
            offered.add(effect.invocation);
          }
        }
      };
      const apply = (event: SchedulerEvent) => {
        take(scheduler.handle(event, now));
        scheduler.checkInvariants();
      };
      const add = (entry: boolean) => {
        const one = invocation(made++, entry, random.int(3));
        waiting.add(one);
        apply({ type: 'waiting', invocation: one });
      };
      const claim = () => {
        const [one] = offered;
        const free = [...scheduler.instances()].filter((i) => i.state === 'idle' && !busy.includes(i.slot));
        const instance = free[random.int(free.length)];
        if (one === undefined || instance === undefined) return;
        offered.delete(one);
        done.add(one);
        one.place = 'running';
        busy.push(instance.slot);
        apply({ type: 'claimed', invocation: one, slot: instance.slot });
      };
      const over = () => {
        const slot = busy.splice(random.int(busy.length), 1)[0];
        if (slot !== undefined) apply({ type: 'attempt-over', slot });
      };
      const ready = () => {
        const starting = [...scheduler.instances()].find((i) => i.state === 'starting');
        if (starting !== undefined) apply({ type: 'instance-ready', slot: starting.slot });
      };
      const refuse = () => {
        const [one] = offered;
        if (one === undefined) return;
        offered.delete(one);
        waiting.add(one);
        apply({ type: 'offer-refused', invocation: one });
      };
      const die = () => {
        const instance = [...scheduler.instances()][0];
        if (instance === undefined) return;
        for (let at = busy.indexOf(instance.slot); at >= 0; at = busy.indexOf(instance.slot)) busy.splice(at, 1);
        apply({ type: 'instance-gone', slot: instance.slot, error: undefined });
      };
      for (const step of steps) {
        now += step % 5;
        if (step < 25) add(step % 2 === 0);
        else if (step < 45) claim();
        else if (step < 65) over();
        else if (step < 80) ready();
        else if (step < 85) refuse();
        else if (step < 88) die();
        else apply({ type: 'time-passed' });
      }
      for (let i = 0; i < 5_000 && done.size < made; i++) {
        now += 100;
        apply({ type: 'time-passed' });
        apply({ type: 'demand', pool: 'p', offers: 0 });
        ready();
        claim();
        over();
      }
      assert.equal(done.size, made, 'all ran');
      assert.equal(scheduler.waiting, 0);
    }),
    { numRuns: 300 },
  );
});

test('running sessions go before new ones, then priority, then age', () => {
  const scheduler = new LocalScheduler({ instancesMax: 1, pools: ['p'] }, new Prng(1));
  const order: Invocation[] = [];
  const all = [
    invocation(0, true),
    invocation(1, true, 5),
    invocation(2, false),
    invocation(3, true),
    invocation(4, false),
  ];
  const slots: Invocation[] = [];
  const apply = (event: SchedulerEvent) => {
    for (const effect of scheduler.handle(event, 0)) if (effect.type === 'offer') slots.push(effect.invocation);
  };
  // The first fill what is on offer; the rest waits in order, or beside them if it goes before them.
  const first = Array.from({ length: OFFERS_PER_INSTANCE }, () => invocation(9, true));
  for (const one of [...first, ...all]) apply({ type: 'waiting', invocation: one });
  for (let i = 0; i < first.length + all.length; i++) {
    // Who claims takes the highest, of those the oldest (Tickets).
    const next = [...slots].sort((a, b) => rankOf(b) - rankOf(a))[0] as Invocation;
    slots.splice(slots.indexOf(next), 1);
    if (all.includes(next)) order.push(next);
    apply({ type: 'claimed', invocation: next, slot: 0 });
  }
  const expected = [all[2], all[4], all[1], all[0], all[3]];
  assert.deepEqual(
    order.map((one) => all.indexOf(one)),
    expected.map((one) => all.indexOf(one as Invocation)),
  );
});

test('an instance that dies while it starts is tried again after a back-off, and its callers are told in the end', () => {
  const scheduler = new LocalScheduler({ instancesMax: 2, pools: ['p'] }, new Prng(1));
  let now = 0;
  let starts = 0;
  let broken = 0;
  const take = (effects: readonly SchedulerEffect[]) => {
    for (const effect of effects) {
      if (effect.type === 'start-instance') starts++;
      if (effect.type === 'pool-broken') broken++;
    }
  };
  take(scheduler.handle({ type: 'waiting', invocation: invocation(1, true) }, now));
  for (let i = 0; i < 100 && broken === 0; i++) {
    for (const instance of [...scheduler.instances()]) {
      take(
        scheduler.handle(
          { type: 'instance-gone', slot: instance.slot, error: { code: 'E_APP_INVALID', message: 'x' } },
          now,
        ),
      );
    }
    assert.ok((scheduler.nextTimerMs() ?? 0) > now, 'it waits before the next start');
    now = scheduler.nextTimerMs() ?? now;
    take(scheduler.handle({ type: 'time-passed' }, now));
  }
  assert.equal(broken, 1);
  assert.ok(starts >= 5);
});

test('every pool with work gets its turn, however few instances there may be', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.nat(5), { minLength: 1, maxLength: 40 }),
      (seed, instancesMax, work) => {
        const random = new Prng(seed);
        const pools = ['p0', 'p1', 'p2', 'p3', 'p4', 'p5'];
        const scheduler = new LocalScheduler({ instancesMax, pools }, random);
        const offered = new Set<Invocation>();
        const done = new Set<Invocation>();
        /** The first pool never runs out of work: there is always one more. */
        const endless = () => ({ ...invocation(0, true), row: { pool: 'p0', priority: 0 } }) as unknown as Invocation;
        const runs: { invocation: Invocation; slot: number; endMs: number }[] = [];
        let now = 0;
        const apply = (event: SchedulerEvent) => {
          for (const effect of scheduler.handle(event, now))
            if (effect.type === 'offer') offered.add(effect.invocation);
          scheduler.checkInvariants();
        };
        const wanted = work.map(
          (n) => ({ ...invocation(n, true), row: { pool: `p${n}`, priority: 0 } }) as unknown as Invocation,
        );
        for (const one of wanted) apply({ type: 'waiting', invocation: one });
        for (let i = 0; i < 4; i++) apply({ type: 'waiting', invocation: endless() });
        for (let step = 0; step < 40_000 && wanted.some((one) => !done.has(one)); step++) {
          now += 5;
          apply({ type: 'time-passed' });
          for (const run of runs.filter(({ endMs }) => endMs <= now)) {
            runs.splice(runs.indexOf(run), 1);
            apply({ type: 'attempt-over', slot: run.slot });
            if (run.invocation.row.pool === 'p0') apply({ type: 'waiting', invocation: endless() });
          }
          for (const instance of [...scheduler.instances()]) {
            const free = !runs.some(({ slot }) => slot === instance.slot);
            if (instance.state === 'starting' && random.int(4) === 0)
              apply({ type: 'instance-ready', slot: instance.slot });
            else if (instance.state === 'draining' && free) {
              apply({ type: 'instance-gone', slot: instance.slot, error: undefined });
            } else if (instance.state === 'idle' || (instance.state === 'busy' && free)) {
              const one = [...offered].find(({ row }) => row.pool === instance.pool);
              if (one === undefined) continue;
              offered.delete(one);
              done.add(one);
              runs.push({ invocation: one, slot: instance.slot, endMs: now + 1 + random.int(30) });
              apply({ type: 'claimed', invocation: one, slot: instance.slot });
            }
          }
        }
        assert.deepEqual(
          wanted.filter((one) => !done.has(one)).map(({ row }) => row.pool),
          [],
        );
      },
    ),
    { numRuns: 40 },
  );
});

test('a pool whose attempts are long keeps one instance free while the others are busy, and one of short ones does not', () => {
  const startsWhileBusy = (bodyMs: number, instancesMax: number) => {
    const scheduler = new LocalScheduler({ instancesMax, pools: ['p'] }, new Prng(1));
    let now = 0;
    const started: SchedulerEffect[] = [];
    const apply = (event: SchedulerEvent) => {
      const effects = scheduler.handle(event, now);
      started.push(...effects.filter(({ type }) => type === 'start-instance'));
      scheduler.checkInvariants();
    };
    started.push(...scheduler.prewarm('p', 'first', now));
    const [first] = [...scheduler.instances()];
    assert.ok(first !== undefined);
    apply({ type: 'instance-ready', slot: first.slot });
    for (let n = 0; n < 30; n++) {
      const one = invocation(n, true);
      apply({ type: 'waiting', invocation: one });
      one.place = 'running';
      apply({ type: 'claimed', invocation: one, slot: first.slot });
      now += bodyMs;
      apply({ type: 'attempt-over', slot: first.slot });
    }
    return started.length - 1;
  };
  assert.equal(startsWhileBusy(100, 4), 1);
  assert.equal(startsWhileBusy(5, 4), 0);
  assert.equal(startsWhileBusy(100, 2), 0, 'the last place is for pools that have none');
});
