// Goal: a session that goes on for ever costs what it does, not what it has done. Method: a chain of calls, as an instance
// tells of it; what is kept is counted, never timed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Hash64, hashInts, Prng } from '../../base/index.ts';
import { buildTables, CALL_BUCKET_INDEX, entryId, type StoredObject } from '../../bucket/index.ts';
import { CONTENT_JSON } from '../../protocol/index.ts';
import type { SessionEffect, SessionEvent } from './events.ts';
import { HOLLOW_OBJECTS_MAX, INVOCATIONS_KEPT_MAX } from './limits.ts';
import { invocationsOf, isKnown } from './session.ts';
import { SessionMachine } from './session-machine.ts';

const TABLES = buildTables({ entry: 'f', functions: { f: { kind: 'fn' } }, buckets: {} });
const CANCELLED = { code: 'E_CANCELLED' as const, message: 'no more' };

class Chain {
  readonly machine = new SessionMachine({ random: new Prng(1), sameContent: () => false });
  id: Hash64 = entryId('s', 0);
  effects: readonly SessionEffect[] = [];

  constructor() {
    this.apply({
      type: 'session-started',
      id: 's',
      run: 1,
      durable: false,
      priority: 0,
      deadlineMs: 0,
      tables: TABLES,
      entries: [{ function: 0, inputs: [] }],
      objects: [],
      open: undefined,
    });
    this.begin(this.id);
  }

  get session() {
    return this.machine.session('s') ?? assert.fail('it lives');
  }

  apply(event: SessionEvent): void {
    this.effects = this.machine.handle(event, { monotonicMs: 1, epochMs: 1 });
  }

  which(id = this.id) {
    return { sessionNo: this.session.no, id, fence: 1, slot: 0, atMs: 1 };
  }

  begin(id: Hash64): void {
    this.apply({ type: 'attempt-started', ...this.which(id), instance: 'i', start: 'inline' });
  }

  call(id: Hash64, content = 'x'): void {
    const object: StoredObject = {
      bucket: CALL_BUCKET_INDEX,
      name: undefined,
      producer: this.id,
      step: 0,
      group: '',
      session: undefined,
      contentType: CONTENT_JSON,
      content,
    };
    const firings = [{ trigger: 0, function: 0, id }];
    this.apply({ type: 'object-sent', ...this.which(), object, output: false, persist: false, firings });
  }

  /** One calls the next and ends; the next begins. */
  hop(n: number): void {
    const next = hashInts(n, 1, 2, 3);
    this.call(next);
    this.apply({ type: 'attempt-ended', ...this.which(), error: undefined, result: undefined });
    this.id = next;
    this.begin(next);
  }
}

test('of a long chain only ids are kept, beyond what a trace shows; a repeat of one is recognised all the same', () => {
  const chain = new Chain();
  const hops = 4 * HOLLOW_OBJECTS_MAX + INVOCATIONS_KEPT_MAX;
  let forgotten = chain.id;
  for (let n = 1; n <= hops; n++) {
    if (n === INVOCATIONS_KEPT_MAX + 5) forgotten = chain.id;
    chain.hop(n);
  }
  chain.machine.checkInvariants();
  const { session } = chain;
  assert.equal(session.invocationCount, hops + 1);
  const kept = [...invocationsOf(session)].length;
  assert.ok(kept <= INVOCATIONS_KEPT_MAX + 2, `${kept} invocations are kept`);
  assert.ok(
    session.objects.length <= INVOCATIONS_KEPT_MAX + 3 * HOLLOW_OBJECTS_MAX,
    `${session.objects.length} objects`,
  );
  assert.equal(session.objects.length + session.droppedObjects, hops, 'all are counted');
  assert.ok(session.inlineBytes <= session.objects.length, 'what was forgotten takes no bytes');
  assert.ok(isKnown(session, forgotten));
  const { live } = session;
  chain.call(forgotten);
  assert.equal(session.live, live, 'it is not begun again');
});

test('cancelling costs what lives, however much there was', () => {
  const chain = new Chain();
  for (let n = 1; n <= INVOCATIONS_KEPT_MAX; n++) chain.hop(n);
  chain.apply({ type: 'session-cancelled', session: 's', error: CANCELLED });
  const told = chain.effects.map(({ type }) => type);
  assert.deepEqual(told, ['abort', 'stop-session', 'session-ended']);
  chain.apply({ type: 'attempt-ended', ...chain.which(), error: undefined, result: undefined });
  assert.deepEqual(
    chain.effects.map(({ type }) => type),
    ['release'],
  );
});
