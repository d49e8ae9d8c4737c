// Goal: a session that kills its host every time fails alone. Method: a host in a model runs sessions for a while and dies
// whenever a killer's time is up; any number of others come before, beside and after it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EpochMs, MonotonicMs } from '../../base/index.ts';
import { LOST_RETRIES_MAX } from './limits.ts';
import { NO_COUNTS, Session, type SessionSpec } from './session.ts';
import { SessionTable, type SessionTableEvent } from './session-table.ts';

const SPEC: SessionSpec = {
  app: 'a',
  version: 'v',
  entries: [],
  durable: true,
  detached: true,
  priority: 0,
  tags: {},
  causes: [],
};
const RESTART_MS = 10;
const LOST = { phase: 'ready', error: { code: 'E_NODE_LOST', message: 'killed' } } as const;

interface Plan {
  readonly atMs: number;
  readonly takesMs: number;
  readonly kills: boolean;
}

/** @returns how each session of the plan ended, and how often it was executed. */
function play(plans: readonly Plan[]): { state: string; run: number }[] {
  const table = new SessionTable();
  const sessions = plans.map((_, i) => new Session(`d1-${i}-x` as Session['id'], SPEC, 0 as EpochMs, false));
  const runs = new Map<string, { session: number; run: number; endMs: number }>();
  let now = 0;
  let readyAtMs = RESTART_MS;
  const feed = (event: SessionTableEvent) => {
    for (const effect of table.handle(event, now as MonotonicMs, now as EpochMs)) {
      if (effect.type !== 'send-start') continue;
      const session = sessions.indexOf(effect.session);
      const endMs = now + (plans[session]?.takesMs ?? 0);
      runs.set(effect.session.id, { session, run: effect.session.run, endMs });
    }
    table.checkInvariants();
  };
  const arrivals = plans.map(({ atMs }, i) => ({ atMs, i })).sort((a, b) => a.atMs - b.atMs);
  for (let step = 0; step < 10_000; step++) {
    const first = [...runs.entries()].sort(([, a], [, b]) => a.endMs - b.endMs)[0];
    const times = [arrivals[0]?.atMs, first?.[1].endMs, readyAtMs, table.nextTimerMs()];
    const next = Math.min(...times.map((at) => at ?? Number.POSITIVE_INFINITY));
    if (next === Number.POSITIVE_INFINITY) break;
    now = Math.max(now, next);
    const arrived = arrivals[0];
    if (arrived?.atMs === next) {
      arrivals.shift();
      feed({ type: 'session-accepted', session: sessions[arrived.i] as Session });
    } else if (readyAtMs === next) {
      readyAtMs = Number.POSITIVE_INFINITY;
      feed({ type: 'host-ready', app: 'a', version: 'v' });
    } else if (first?.[1].endMs === next) {
      const [id, { session, run }] = first;
      if (plans[session]?.kills) {
        runs.clear();
        readyAtMs = now + RESTART_MS;
        feed({ type: 'host-lost', app: 'a', version: 'v', lost: LOST });
      } else {
        runs.delete(id);
        const end = { state: 'completed' as const, unfired: [], counts: NO_COUNTS, meteredMs: 0 };
        feed({ type: 'host-ended', session: id, run, end });
      }
    } else {
      feed({ type: 'timer-fired' });
    }
  }
  return sessions.map((session) => ({ state: session.end?.state ?? session.phase, run: session.run }));
}

const PLAN = fc.record({ atMs: fc.nat(60), takesMs: fc.integer({ min: 1, max: 50 }), kills: fc.constant(false) });

test('a killer among any others fails alone', () => {
  fc.assert(
    fc.property(
      fc.array(PLAN, { maxLength: 40 }),
      fc.nat(60),
      fc.integer({ min: 1, max: 50 }),
      (others, atMs, takesMs) => {
        const [killer, ...rest] = play([{ atMs, takesMs, kills: true }, ...others]);
        assert.deepEqual(killer, { state: 'failed', run: LOST_RETRIES_MAX + 1 });
        for (const { state } of rest) assert.equal(state, 'completed');
      },
    ),
  );
});

test('killers that were accepted together fail, and nobody else', () => {
  const plan = fc.record({ atMs: fc.constant(0), takesMs: fc.integer({ min: 1, max: 50 }), kills: fc.boolean() });
  fc.assert(
    fc.property(fc.array(plan, { maxLength: 30 }), (plans) => {
      const ends = play(plans);
      assert.deepEqual(
        ends.map(({ state }) => state),
        plans.map(({ kills }) => (kills ? 'failed' : 'completed')),
      );
    }),
  );
});

test('a suspect that runs for long does not hold up the next ones for ever', () => {
  const hour = 3_600_000;
  const ends = play([
    { atMs: 0, takesMs: 5, kills: true },
    { atMs: 0, takesMs: hour, kills: false },
    { atMs: 0, takesMs: 50, kills: false },
  ]);
  assert.deepEqual(
    ends.map(({ state }) => state),
    ['failed', 'completed', 'completed'],
  );
});
