// Goal: AD1 to AD4: a host is never given more than its window, whatever comes; nothing is given that does not wait; what
// began once goes first, then priority; refusals say when to come again. Method: a session table under generated events,
// and an order by hand.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EpochMs, ErrorData, MonotonicMs, SessionId } from '../../base/index.ts';
import {
  CANCEL_GRACE_MS,
  LIVE_INPUT_BYTES_MAX,
  LIVE_SESSIONS_MAX,
  ROUND_MS,
  STARTS_UNDER_WAY_BYTES_MAX,
  STARTS_UNDER_WAY_MAX,
} from './limits.ts';
import { NO_COUNTS, Session, type SessionEnd, type SessionSpec } from './session.ts';
import { SessionTable, type SessionTableEvent } from './session-table.ts';

const COMPLETED: SessionEnd = { state: 'completed', unfired: [], counts: NO_COUNTS, meteredMs: 1 };
const CANCELLED: ErrorData = { code: 'E_CANCELLED', message: 'cancelled' };
const LOST = { phase: 'ready' as const, error: { code: 'E_NODE_LOST' as const, message: 'gone' } };

class Bench {
  readonly table: SessionTable;
  readonly sessions: Session[] = [];
  /** Ids in the order in which they were given to a host. */
  readonly given: string[] = [];
  nowMs = 0;

  constructor(queueMax = 1_000_000, weights: Readonly<Record<string, number>> = {}) {
    this.table = new SessionTable({ queueMax, weightOf: (app) => weights[app] ?? 1 });
  }

  accept(spec: Partial<SessionSpec> = {}, bytes = 0): Session {
    const header = { bucket: '$input', name: '0', group: '', session: '', contentType: 'x', size: bytes };
    const full: SessionSpec = {
      app: 'a',
      version: 'v',
      entries: [{ function: 'f', inputs: [{ header, bytes: new Uint8Array(bytes) }] }],
      durable: false,
      detached: false,
      priority: 0,
      tags: {},
      causes: [],
      ...spec,
    };
    const session = new Session(`s${this.sessions.length}` as SessionId, full, 0 as EpochMs, false);
    this.sessions.push(session);
    this.feed({ type: 'session-accepted', session });
    return session;
  }

  feed(event: SessionTableEvent): void {
    for (const effect of this.table.handle(event, this.nowMs as MonotonicMs, this.nowMs as EpochMs)) {
      if (effect.type !== 'send-start') continue;
      assert.equal(effect.session.phase, 'running', 'what is given runs from then on');
      this.given.push(effect.session.id);
    }
  }

  advance(ms: number): void {
    this.nowMs += ms;
    this.feed({ type: 'timer-fired' });
  }

  ready(app = 'a'): void {
    this.feed({ type: 'host-ready', app, version: 'v' });
  }

  end({ id, run }: Session): void {
    this.feed({ type: 'host-ended', session: id, run, end: COMPLETED });
  }
}

test('no more than the window is under way, and what is there is given when there is room', () => {
  const step = fc.record({
    type: fc.constantFrom('accept', 'begun', 'end', 'cancel', 'advance', 'ready', 'lost', 'confirm'),
    pick: fc.nat(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
      const bench = new Bench();
      /** What a host would count: given in this life of it, and neither begun nor ended there. */
      let underWay = new Set<string>();
      let up = false;
      let seen = 0;
      for (const { type, pick } of steps) {
        const session = bench.sessions[pick % Math.max(1, bench.sessions.length)];
        if (type === 'accept') for (let i = 0; i < 60; i++) bench.accept();
        else if (type === 'advance') bench.advance((pick % 3) * CANCEL_GRACE_MS + ROUND_MS);
        else if (type === 'ready' && !up) {
          up = true;
          bench.ready();
        } else if (type === 'lost' && up) {
          up = false;
          underWay = new Set();
          bench.feed({ type: 'host-lost', app: 'a', version: 'v', lost: LOST });
        } else if (session === undefined || !underWay.has(session.id)) {
          if (type === 'cancel' && session !== undefined)
            bench.feed({ type: 'cancel', session: session.id, error: CANCELLED });
        } else if (type === 'begun') {
          underWay.delete(session.id);
          bench.feed({ type: 'host-begun', sessions: [session.id] });
        } else if (type === 'end' || type === 'confirm') {
          underWay.delete(session.id);
          bench.end(session);
        } else if (type === 'cancel') bench.feed({ type: 'cancel', session: session.id, error: CANCELLED });
        for (; seen < bench.given.length; seen++) underWay.add(bench.given[seen] as string);
        bench.table.checkInvariants();
        assert.ok(underWay.size <= STARTS_UNDER_WAY_MAX, `${underWay.size} are under way (AD2)`);
      }
      if (!up) bench.ready();
      bench.advance(ROUND_MS);
      for (; seen < bench.given.length; seen++) underWay.add(bench.given[seen] as string);
      const waits = bench.sessions.filter(({ phase }) => phase === 'waiting');
      const suspects = waits.every(({ lost }) => lost > 1);
      assert.ok(underWay.size >= STARTS_UNDER_WAY_MAX || suspects, 'nothing waits beside an empty window');
    }),
    { numRuns: 150 },
  );
});

test('a host that stands still gets nothing more, also when what it has is cancelled', () => {
  const bench = new Bench();
  bench.ready();
  for (let i = 0; i < 1_000; i++) bench.accept();
  for (let i = 0; i < 20; i++) bench.advance(ROUND_MS);
  assert.equal(bench.given.length, STARTS_UNDER_WAY_MAX);
  for (const session of bench.sessions) bench.feed({ type: 'cancel', session: session.id, error: CANCELLED });
  bench.advance(CANCEL_GRACE_MS);
  assert.equal(bench.table.size, 0, 'the sessions are over all the same');
  for (let i = 0; i < 300; i++) bench.accept();
  bench.advance(ROUND_MS);
  assert.equal(bench.given.length, STARTS_UNDER_WAY_MAX, 'it has still to say what became of the others');
  for (const session of bench.sessions.slice(0, 100)) bench.end(session);
  assert.equal(bench.given.length, STARTS_UNDER_WAY_MAX + 100);
  bench.table.checkInvariants();
});

test('large inputs fill the window by bytes', () => {
  const bench = new Bench();
  bench.ready();
  const bytes = STARTS_UNDER_WAY_BYTES_MAX / 4;
  for (let i = 0; i < 10; i++) bench.accept({}, bytes);
  assert.equal(bench.given.length, 4);
  const first = bench.sessions[0];
  assert.ok(first !== undefined);
  bench.feed({ type: 'host-begun', sessions: [first.id] });
  assert.equal(bench.given.length, 5);
});

test('higher priority first, then in order; what had begun on a lost host before all', () => {
  const bench = new Bench();
  bench.ready();
  const fill = Array.from({ length: STARTS_UNDER_WAY_MAX }, () => bench.accept({ priority: 1_000 }));
  const [low, normal, high, normalLater] = [-5, 0, 7, 0].map((priority) => bench.accept({ priority }).id);
  const begun = fill[9] as Session;
  bench.nowMs += ROUND_MS;
  bench.feed({ type: 'host-begun', sessions: [begun.id] });
  assert.equal(bench.given.at(-1), high);
  for (const session of fill) if (session !== begun) bench.end(session);
  assert.deepEqual(bench.given.slice(-3), [normal, normalLater, low]);
  bench.given.length = 0;
  bench.nowMs += ROUND_MS;
  bench.feed({ type: 'host-lost', app: 'a', version: 'v', lost: LOST });
  bench.accept({ priority: 1_000 });
  bench.ready();
  assert.equal(bench.given[0], begun.id);
});

test('an app that floods leaves others their turns, as their weights say', () => {
  const weights: Readonly<Record<string, number>> = { flood: 1, heavy: 3 };
  const bench = new Bench(1_000_000, weights);
  for (const app of Object.keys(weights)) bench.ready(app);
  const appOf = (id: string) => bench.sessions[Number(id.slice(1))]?.spec.app ?? '';
  const got: Record<string, number> = { flood: 0, heavy: 0 };
  // Both want more than a round has; hosts begin at once what they are given.
  for (let round = 0; round < 200; round++) {
    for (let i = 0; i < 300; i++) for (const app of Object.keys(weights)) bench.accept({ app });
    for (const id of bench.given.splice(0)) {
      got[appOf(id)] = (got[appOf(id)] as number) + 1;
      bench.feed({ type: 'host-ended', session: id, run: 1, end: COMPLETED });
    }
    bench.advance(ROUND_MS);
  }
  const share = (got.heavy as number) / ((got.heavy as number) + (got.flood as number));
  assert.ok(share > 0.68 && share < 0.8, `the heavy one got ${share}`);
});

test('invocations that have not begun are limited, running ones are not; a refusal says when to come again', () => {
  const bench = new Bench(100);
  const ask = (app: string, invocations = 1, delayed = false) =>
    bench.table.admission.refusal(app, { inputBytes: 0, invocations, delayed }, bench.nowMs);
  const two = { function: 'f', inputs: [] };
  bench.ready();
  for (let i = 0; i < 50; i++) bench.accept({ entries: [two, two] });
  const full = ask('a');
  assert.ok(full !== undefined && full.retryAfterMs > 0 && Number.isFinite(full.retryAfterMs));
  assert.equal(ask('a', 1, true), undefined, 'one that waits for its delay has another limit');
  assert.equal(ask('b'), undefined, 'another app is not concerned');
  bench.feed({ type: 'host-begun', sessions: bench.sessions.slice(0, 10).map(({ id }) => id) });
  assert.equal(ask('a', 20), undefined, 'what runs does not count');
  assert.ok(ask('a', 21) !== undefined);
  // 80 wait. At 1 in 10 ms a tenth of them has begun in 80 ms, at 1 in 100 ms in 800.
  const rest = bench.sessions.slice(10);
  for (const [step, session] of rest.slice(0, 5).entries()) {
    bench.nowMs = 2_000 + 200 * step;
    bench.feed({ type: 'host-begun', sessions: [session.id] });
  }
  const slow = bench.table.admission.refusal('a', { inputBytes: 0, invocations: 100, delayed: false }, 3_000);
  assert.ok(slow !== undefined && slow.retryAfterMs >= 500 && slow.retryAfterMs <= 1_000, `${slow?.retryAfterMs}`);
});

test('sessions that run are limited too, so that those that never end do not fill the memory', () => {
  const bench = new Bench();
  for (let i = 0; i < LIVE_SESSIONS_MAX; i++) bench.accept({ entries: [] });
  assert.ok(bench.table.admission.refusal('a', { inputBytes: 0, invocations: 1, delayed: false }, 0) !== undefined);
});

test('what comes from outside counts as input of its app until its session ends', () => {
  const bench = new Bench();
  bench.ready();
  const { admission } = bench.table;
  const [one, other] = [bench.accept({ entries: [] }), bench.accept({ entries: [] })];
  assert.ok(admission.takeInput(one, LIVE_INPUT_BYTES_MAX - 10));
  assert.equal(admission.takeInput(other, 11), false);
  assert.ok(admission.takeInput(other, 10));
  admission.dropInput(other, 4);
  assert.ok(admission.takeInput(other, 4));
  assert.ok(admission.refusal('a', { inputBytes: 1, invocations: 1, delayed: false }, 0) !== undefined);
  bench.end(one);
  assert.ok(admission.takeInput(other, LIVE_INPUT_BYTES_MAX - 10));
  bench.end(other);
  assert.equal(
    admission.refusal('a', { inputBytes: LIVE_INPUT_BYTES_MAX, invocations: 1, delayed: false }, 0),
    undefined,
  );
});
