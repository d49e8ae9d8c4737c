// Goal: every accepted session ends exactly once, whatever comes in whatever order (ST1 to ST6).
// Method: generated interleavings of starts, host starts and deaths, outputs, ends (of current and overtaken runs),
// cancellations, parking and time; a ledger beside the table counts what it was told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EpochMs, ErrorData, MonotonicMs, SessionId } from '../../base/index.ts';
import { LOST_RETRIES_MAX } from './limits.ts';
import { NO_COUNTS, Session, type SessionEnd } from './session.ts';
import { SessionTable, type SessionTableEffect, type SessionTableEvent } from './session-table.ts';

const VERSIONS = ['v1', 'v2'];
const COMPLETED: SessionEnd = { state: 'completed', unfired: [], counts: NO_COUNTS, meteredMs: 1 };
const FAILED: SessionEnd = { ...COMPLETED, state: 'failed', error: { code: 'E_FUNCTION_FAILED', message: 'no' } };
const CANCELLED: ErrorData = { code: 'E_CANCELLED', message: 'cancelled' };
const STUCK: ErrorData = { code: 'E_PARKED', message: 'stuck' };
const LOST: ErrorData = { code: 'E_NODE_LOST', message: 'gone' };

interface Told {
  readonly session: Session;
  starts: number[];
  outcomes: number;
  ends: number;
}

class Ledger {
  readonly table = new SessionTable();
  readonly told = new Map<string, Told>();
  nowMs = 0;
  /** Versions whose host is up. */
  readonly up = new Set<string>();

  accept(id: string, version: string, timeoutMs: number | undefined, delayMs: number | undefined): void {
    const spec = {
      app: 'a',
      version,
      entries: [{ function: 'f', inputs: [] }],
      durable: false,
      detached: false,
      priority: 0,
      tags: {},
      causes: [],
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
    };
    const session = new Session(id as SessionId, spec, 0 as EpochMs, delayMs !== undefined);
    this.told.set(id, { session, starts: [], outcomes: 0, ends: 0 });
    const startAtMs = delayMs === undefined ? {} : { startAtMs: (this.nowMs + delayMs) as MonotonicMs };
    this.feed({ type: 'session-accepted', session, ...startAtMs });
  }

  feed(event: SessionTableEvent): void {
    for (const effect of this.table.handle(event, this.nowMs as MonotonicMs, this.nowMs as EpochMs)) this.#note(effect);
    this.table.checkInvariants();
    assert.deepEqual(
      this.table.stuck().map(({ session, reason }) => `${session.id}: ${reason}`),
      [],
      'every session can go on (ST6)',
    );
  }

  #note(effect: SessionTableEffect): void {
    if (effect.type === 'need-host') return;
    const told = this.told.get(effect.session.id);
    assert.ok(told, 'an effect names an accepted session');
    assert.equal(told.ends, 0, `${effect.type} after the end of ${effect.session.id}`);
    switch (effect.type) {
      case 'send-start':
        assert.ok(this.up.has(effect.session.spec.version), 'a start goes to a host that is up');
        told.starts.push(effect.session.run);
        return;
      case 'outcome':
        told.outcomes++;
        return;
      case 'ended':
        told.ends++;
        return;
      case 'output':
      case 'send-cancel':
      case 'parked':
        return;
    }
  }

  advance(ms: number): void {
    this.nowMs += ms;
    this.feed({ type: 'timer-fired' });
  }

  /** No more faults: hosts come up and answer, time goes on. */
  settle(): void {
    for (let round = 0; round < 20 && this.table.size > 0; round++) {
      for (const version of VERSIONS) {
        this.up.add(version);
        this.feed({ type: 'host-ready', app: 'a', version });
      }
      this.advance(100_000);
      for (const { session } of this.told.values()) this.feed({ type: 'resume', session: session.id });
      for (const { session } of this.told.values()) {
        if (session.phase === 'running')
          this.feed({ type: 'host-ended', session: session.id, run: session.run, end: COMPLETED });
      }
    }
  }
}

const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('accept' as const),
      version: fc.constantFrom(...VERSIONS),
      timeoutMs: fc.option(fc.integer({ min: 1, max: 500 }), { nil: undefined }),
      delayMs: fc.option(fc.integer({ min: 1, max: 300 }), { nil: undefined, freq: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('up' as const), version: fc.constantFrom(...VERSIONS) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('down' as const), version: fc.constantFrom(...VERSIONS) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('output' as const),
      pick: fc.nat(),
      runBack: fc.integer({ min: 0, max: 2 }),
      name: fc.constantFrom('x', 'y'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('end' as const),
      pick: fc.nat(),
      runBack: fc.integer({ min: 0, max: 2 }),
      failed: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('cancel' as const), pick: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('begun' as const), pick: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('stuck' as const), pick: fc.nat() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ type: fc.constant('resume' as const), pick: fc.nat() }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ type: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 6_000 }) }),
  },
);

test('every accepted session ends exactly once, with exactly one outcome', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 120 }), (commands) => {
      const ledger = new Ledger();
      let count = 0;
      const picked = (pick: number) => [...ledger.told.values()][pick % Math.max(1, ledger.told.size)]?.session;
      for (const one of commands) {
        if (one.type === 'accept') ledger.accept(`s${count++}`, one.version, one.timeoutMs, one.delayMs);
        else if (one.type === 'advance') ledger.advance(one.ms);
        else if (one.type === 'up') {
          if (ledger.up.has(one.version)) continue;
          ledger.up.add(one.version);
          ledger.feed({ type: 'host-ready', app: 'a', version: one.version });
        } else if (one.type === 'down') {
          const phase = ledger.up.delete(one.version) ? 'ready' : 'starting';
          ledger.feed({ type: 'host-lost', app: 'a', version: one.version, lost: { phase, error: LOST } });
        } else {
          const session = picked(one.pick);
          if (session === undefined) continue;
          if (one.type === 'resume') {
            ledger.feed({ type: 'resume', session: session.id });
            continue;
          }
          if (one.type === 'stuck') {
            ledger.feed({ type: 'stuck', session: session.id, run: session.run, error: STUCK });
            continue;
          }
          if (one.type === 'cancel') {
            ledger.feed({ type: 'cancel', session: session.id, error: CANCELLED });
            continue;
          }
          if (one.type === 'begun') {
            ledger.feed({ type: 'host-begun', sessions: [session.id] });
            continue;
          }
          const run = session.run - one.runBack;
          if (one.type === 'end') {
            ledger.feed({ type: 'host-ended', session: session.id, run, end: one.failed ? FAILED : COMPLETED });
          } else {
            const object = {
              bucket: '$output',
              name: one.name,
              group: '',
              session: session.id,
              contentType: 'application/json',
              size: 1,
            };
            ledger.feed({ type: 'host-output', session: session.id, run, object, bytes: new Uint8Array(1) });
          }
        }
      }
      ledger.settle();
      assert.equal(ledger.table.size, 0, 'all have ended');
      assert.equal(ledger.table.nextTimerMs(), undefined, 'no timer is left');
      for (const { session, starts, outcomes, ends } of ledger.told.values()) {
        assert.equal(ends, 1);
        assert.equal(outcomes, 1);
        assert.deepEqual(
          starts,
          Array.from(starts, (_, i) => i + 1),
          'runs count from 1',
        );
        assert.ok(session.lost <= LOST_RETRIES_MAX + 1, 'lost at most LOST_RETRIES_MAX times and executed again');
        assert.ok(session.outputs.length <= 2, 'an output of the same name counts once');
        assert.deepEqual(
          session.outputs.map(({ n }) => n),
          Array.from(session.outputs, (_, i) => i + 1),
        );
        assert.equal(session.outcome?.ok, session.outputs.length > 0 || session.end?.state === 'completed');
      }
    }),
    { numRuns: 400 },
  );
});

test('a session whose host dies LOST_RETRIES_MAX + 1 times fails with E_NODE_LOST', () => {
  const ledger = new Ledger();
  ledger.accept('s', 'v1', undefined, undefined);
  for (let i = 0; i <= LOST_RETRIES_MAX; i++) {
    ledger.up.add('v1');
    ledger.feed({ type: 'host-ready', app: 'a', version: 'v1' });
    ledger.up.delete('v1');
    ledger.feed({
      type: 'host-lost',
      app: 'a',
      version: 'v1',
      lost: { phase: 'ready', error: { ...LOST, details: { exitCode: 9 } } },
    });
  }
  const session = ledger.told.get('s')?.session;
  assert.equal(session?.end?.state, 'failed');
  assert.equal(session?.end?.error?.code, 'E_NODE_LOST');
  assert.deepEqual(session?.end?.error?.details, { lost: LOST_RETRIES_MAX + 1, exitCode: 9 });
});

test('a session that waits for a host is not charged for deaths of another run of it', () => {
  const ledger = new Ledger();
  ledger.accept('s', 'v1', undefined, undefined);
  for (let i = 0; i < 10; i++) {
    ledger.feed({ type: 'host-lost', app: 'a', version: 'v1', lost: { phase: 'ready', error: LOST } });
  }
  assert.equal(ledger.told.get('s')?.session.phase, 'waiting');
});

test('a host that does not confirm a cancellation cannot keep the session', () => {
  const ledger = new Ledger();
  ledger.up.add('v1');
  ledger.feed({ type: 'host-ready', app: 'a', version: 'v1' });
  ledger.accept('s', 'v1', 100, undefined);
  ledger.advance(100);
  const session = ledger.told.get('s')?.session;
  assert.equal(session?.phase, 'cancelling');
  assert.deepEqual(session?.outcome?.ok === false && session.outcome.error.code, 'E_TIMEOUT');
  ledger.advance(10_000);
  assert.equal(session?.phase, 'ended');
  assert.equal(session?.end?.state, 'failed');
});

test('a deadline after an output completes the session and leaves a dead letter', () => {
  const ledger = new Ledger();
  ledger.up.add('v1');
  ledger.feed({ type: 'host-ready', app: 'a', version: 'v1' });
  ledger.accept('s', 'v1', 100, undefined);
  const object = { bucket: '$output', name: 'x', group: '', session: 's', contentType: 'application/json', size: 1 };
  ledger.feed({ type: 'host-output', session: 's', run: 1, object, bytes: new Uint8Array(1) });
  ledger.advance(100);
  ledger.feed({ type: 'host-ended', session: 's', run: 1, end: { ...FAILED, state: 'cancelled' } });
  const session = ledger.told.get('s')?.session;
  assert.equal(session?.end?.state, 'completed');
  assert.equal(session?.end?.failures?.[0]?.error.code, 'E_TIMEOUT');
  assert.equal(session?.outcome?.ok, true);
});
