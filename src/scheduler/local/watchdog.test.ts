// Goal: a session that would wait for ever is found and told apart from one that waits for something (WD1).
// Method: the real session machine; what a driver would do with its effects is done, or left out: that is the fault.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Prng } from '../../base/index.ts';
import { buildTables, type StoredObject } from '../../bucket/index.ts';
import { CONTENT_JSON, type Manifest } from '../../protocol/index.ts';
import type { SessionEffect, SessionEvent } from './events.ts';
import type { Invocation } from './session.ts';
import { SessionMachine } from './session-machine.ts';

const MANIFEST: Manifest = {
  entry: 'f',
  functions: { f: { kind: 'fn', options: { retries: 1 } }, g: { kind: 'fn' } },
  buckets: {
    window: { on: { t: { kind: 'byTime', windowMs: 1_000, scope: 'session', run: 'g' } } },
    far: { on: { t: { kind: 'byBatchSize', size: 2, run: 'g' } } },
  },
};
const TABLES = buildTables(MANIFEST);

class Plant {
  readonly machine = new SessionMachine({ random: new Prng(1), sameContent: () => true });
  readonly queue = new Set<Invocation>();
  readonly running = new Set<Invocation>();
  ended: (SessionEffect & { type: 'session-ended' }) | undefined;
  nowMs = 0;

  apply(event: SessionEvent): void {
    for (const effect of this.machine.handle(event, { monotonicMs: this.nowMs, epochMs: 0 })) {
      if (effect.type === 'enqueue') this.queue.add(effect.invocation);
      if (effect.type === 'session-ended') this.ended = effect;
    }
  }

  begin(open?: { idleTimeoutMs: number }): void {
    const what = { run: 1, durable: false, priority: 0, deadlineMs: 0, tables: TABLES, objects: [] };
    const entries = open === undefined ? [{ function: 0, inputs: [] }] : [];
    this.apply({ type: 'session-started', id: 's', ...what, entries, open });
  }

  claim(): Invocation {
    const [invocation] = this.queue;
    assert.ok(invocation);
    this.queue.delete(invocation);
    this.running.add(invocation);
    const started = { slot: 0, instance: 'i', start: 'warm' as const, atMs: this.nowMs };
    this.apply({ type: 'attempt-started', ...which(invocation), ...started });
    return invocation;
  }

  send(sender: Invocation, bucket: string): void {
    const object: StoredObject = {
      bucket: TABLES.bucketByName.get(bucket)?.index ?? -1,
      name: undefined,
      producer: sender.id,
      step: 0,
      group: '',
      session: undefined,
      contentType: CONTENT_JSON,
      content: '1',
    };
    const how = { slot: 0, atMs: this.nowMs, object, output: false, persist: false, firings: undefined };
    this.apply({ type: 'object-sent', ...which(sender), ...how });
  }

  end(invocation: Invocation, failed = false): void {
    this.running.delete(invocation);
    const error = failed ? { code: 'E_FUNCTION_FAILED' as const, message: 'no' } : undefined;
    this.apply({ type: 'attempt-ended', ...which(invocation), atMs: this.nowMs, error, result: undefined });
  }

  get reasons(): string[] {
    const view = {
      isWaiting: (one: Invocation) => this.queue.has(one),
      isRunning: (one: Invocation) => this.running.has(one),
      isHeld: () => true,
    };
    return this.machine.stuck(view).map(({ reason }) => reason);
  }
}

function which({ session, id, fence }: Invocation) {
  return { sessionNo: session.no, id, fence };
}

test('a session whose invocation waits, runs or is in back-off can go on', () => {
  const plant = new Plant();
  plant.begin();
  assert.deepEqual(plant.reasons, []);
  const invocation = plant.claim();
  assert.deepEqual(plant.reasons, []);
  plant.end(invocation, true);
  assert.equal(invocation.place, 'backoff');
  assert.deepEqual(plant.reasons, []);
});

test('a session that waits for a window, for an owner’s answer, or for what comes from outside can go on', () => {
  for (const bucket of ['window', 'far']) {
    const plant = new Plant();
    plant.begin();
    const invocation = plant.claim();
    plant.send(invocation, bucket);
    plant.end(invocation);
    assert.equal(plant.ended, undefined, bucket);
    assert.deepEqual(plant.reasons, [], bucket);
  }
  const open = new Plant();
  open.begin({ idleTimeoutMs: 1_000 });
  assert.deepEqual(open.reasons, []);
});

test('an invocation that a queue has lost leaves its session stuck', () => {
  const plant = new Plant();
  plant.begin();
  plant.queue.clear();
  assert.match(plant.reasons.join(), /^f is queued, but nobody runs it/);
});

test('an attempt whose instance is gone and was never told leaves its session stuck', () => {
  const plant = new Plant();
  plant.begin();
  plant.claim();
  plant.running.clear();
  assert.match(plant.reasons.join(), /^f is running, but/);
});

test('a session that is told to be stuck ends as parked, with the reason, and is released', () => {
  const plant = new Plant();
  plant.begin();
  plant.claim();
  plant.running.clear();
  const session = plant.machine.session('s');
  assert.ok(session);
  plant.apply({ type: 'session-stuck', session, reason: plant.reasons[0] ?? '' });
  assert.equal(plant.ended?.state, 'parked');
  assert.equal(plant.ended?.error?.code, 'E_PARKED');
  assert.match(plant.ended?.error?.message ?? '', /f is running/);
  assert.equal(plant.machine.sessionCount, 0);
  plant.machine.checkInvariants();
});
