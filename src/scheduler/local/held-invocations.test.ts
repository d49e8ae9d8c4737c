// Goal: what instances make and hold themselves is executed once, and not at all once its session is over. Method: one session
// by hand, whose entry calls `g` with `ctx.call`: its instance holds the invocation.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Prng } from '../../base/index.ts';
import { buildTables, CALL_BUCKET_INDEX } from '../../bucket/index.ts';
import { CONTENT_JSON } from '../../protocol/index.ts';
import type { SessionEffect, SessionEvent } from './events.ts';
import type { Invocation } from './session.ts';
import { SessionMachine } from './session-machine.ts';

const TABLES = buildTables({ entry: 'f', functions: { f: { kind: 'fn' }, g: { kind: 'fn' } }, buckets: {} });
const CALLED = { hi: 7, lo: 7 };

class Hand {
  readonly machine = new SessionMachine({ random: new Prng(1), sameContent: () => true });

  apply(event: SessionEvent, atMs = 0): Invocation[] {
    const effects = this.machine.handle(event, { monotonicMs: atMs, epochMs: atMs });
    this.machine.checkInvariants();
    return effects.flatMap((effect: SessionEffect) => (effect.type === 'enqueue' ? [effect.invocation] : []));
  }

  /** @returns the entry, on its first attempt. */
  begin(): Invocation {
    const entries = [{ function: TABLES.functionByName.get('f')?.index ?? -1, inputs: [] }];
    const rest = { durable: false, priority: 0, deadlineMs: 0, tables: TABLES, objects: [], open: undefined };
    const [entry] = this.apply({ type: 'session-started', id: 's', run: 1, entries, ...rest });
    assert.ok(entry !== undefined);
    this.start(entry);
    return entry;
  }

  start(invocation: Invocation): void {
    const { session, id, fence } = invocation;
    const which = { sessionNo: session.no, id, fence };
    this.apply({ ...which, type: 'attempt-started', slot: 1, instance: 'i', start: 'warm', atMs: 0 });
  }

  call({ session, id, fence }: Invocation): Invocation[] {
    return this.apply({
      type: 'object-sent',
      sessionNo: session.no,
      id,
      fence,
      slot: 1,
      atMs: 0,
      object: {
        bucket: CALL_BUCKET_INDEX,
        name: undefined,
        producer: id,
        step: 0,
        group: '',
        session: undefined,
        contentType: CONTENT_JSON,
        content: '1',
      },
      output: false,
      persist: false,
      firings: [{ trigger: 0, function: TABLES.functionByName.get('g')?.index ?? -1, id: CALLED }],
    });
  }
}

function lose(hand: Hand, invocation: Invocation): void {
  hand.apply({ type: 'attempt-lost', invocation, why: 'lost', error: { code: 'E_NODE_LOST', message: 'x' } });
  hand.start(invocation);
}

test('what the first attempt called is not called again by the second', () => {
  const hand = new Hand();
  const entry = hand.begin();
  assert.deepEqual(hand.call(entry), [], 'its instance runs it');
  lose(hand, entry);
  assert.deepEqual(hand.call(entry), []);
  assert.equal(hand.machine.session('s')?.invocationCount, 2);
});

test('what only the second attempt called is queued here, once', () => {
  const hand = new Hand();
  const entry = hand.begin();
  lose(hand, entry);
  assert.deepEqual(
    hand.call(entry).map(({ row }) => row.name),
    ['g'],
  );
  assert.deepEqual(hand.call(entry), []);
});

test('what was held when its session was cancelled never waits again', () => {
  const hand = new Hand();
  const entry = hand.begin();
  hand.call(entry);
  const { session } = entry;
  const held = [...session.invocations.values()].find(({ row }) => row.name === 'g');
  assert.ok(held?.place === 'held');
  hand.apply({ type: 'session-cancelled', session: 's', error: { code: 'E_CANCELLED', message: 'x' } });
  assert.equal(session.state, 'ending', 'its entry still runs');
  assert.deepEqual(hand.apply({ type: 'offer-lost', invocation: held }), []);
  assert.equal(held.place, 'ended');
});

test('what ran when its session was cancelled has its time and outcome at once, and keeps them when its handler returns', () => {
  const hand = new Hand();
  const entry = hand.begin();
  const { session, id, fence } = entry;
  const [attempt] = entry.history;
  hand.apply({ type: 'session-cancelled', session: 's', error: { code: 'E_CANCELLED', message: 'x' } }, 30);
  assert.deepEqual([attempt?.outcome, attempt?.endedAtMs, session.meteredMs], ['cancelled', 30, 30]);
  hand.apply(
    { type: 'attempt-ended', sessionNo: session.no, id, fence, atMs: 50, error: undefined, result: undefined },
    50,
  );
  assert.deepEqual([attempt?.outcome, attempt?.endedAtMs, session.meteredMs], ['cancelled', 30, 30]);
  assert.equal(hand.machine.session('s'), undefined, 'nothing runs any more');
});

test('what ran when its session was out of time is told so', () => {
  const hand = new Hand();
  const entry = hand.begin();
  hand.apply({ type: 'session-cancelled', session: 's', error: { code: 'E_TIMEOUT', message: 'x' } });
  assert.equal(entry.history[0]?.outcome, 'timeout');
});
