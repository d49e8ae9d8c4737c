// Goal: whatever order things happen in, a session ends once, every invocation ends once, every firing happens once.
// Method: a random world of instances plays against the machine: claims, sends (by host and by instance), repeats,
// failures, losses, cancels; invariants after every event; then everything is let run to its end.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type Hash64, hexOf, Prng } from '../../base/index.ts';
import { buildTables, objectFiringId, type StoredObject } from '../../bucket/index.ts';
import { CONTENT_JSON, type EvaluationResult, type Manifest } from '../../protocol/index.ts';
import { evaluateCustom, evaluationOf, type SpecOf } from '../../trigger/index.ts';
import type { SessionEffect, SessionEvent } from './events.ts';
import type { Invocation, Session } from './session.ts';
import { SessionMachine } from './session-machine.ts';

const MANIFEST: Manifest = {
  entry: 'source',
  functions: {
    source: { kind: 'fn', options: { retries: 2 } },
    leaf: { kind: 'fn' },
    collect: { kind: 'fn' },
  },
  buckets: {
    each: { on: { go: { kind: 'immediate', run: 'leaf' } } },
    both: { on: { pair: { kind: 'bySet', names: ['a', 'b'], run: 'collect' } } },
    some: { on: { named: { kind: 'byName', match: 'x', run: 'leaf' } } },
    groups: { on: { all: { kind: 'dynamicGroup', producers: ['source'], run: 'collect' } } },
    batch: { on: { two: { kind: 'byBatchSize', size: 2, scope: 'session', run: 'collect' } } },
    firsts: { on: { two: { kind: 'redundant', k: 2, n: 3, sources: ['leaf'], cancelLosers: true, run: 'collect' } } },
    own: { on: { pairs: { kind: 'custom', class: 'Pairs', sources: ['leaf'], run: 'collect' } } },
    far: { on: { later: { kind: 'byBatchSize', size: 100, run: 'collect' } } },
  },
};
const TABLES = buildTables(MANIFEST);
const EACH = TABLES.bucketByName.get('each')?.index ?? -1;
const BUCKETS = Object.keys(MANIFEST.buckets).map((name) => TABLES.bucketByName.get(name)?.index ?? -1);
const NAMES = ['a', 'b', 'x1', 'c'];

/** Fires each two objects, and one alone when it has waited; it forgets nothing and fires what it holds. */
class Pairs {
  #held: string[] = [];

  onObject({ id }: { id: string }, nowMs: number) {
    this.#held.push(id);
    return this.#held.length === 2 ? this.#fire() : { timerAtMs: nowMs + 5 };
  }

  onTimer() {
    return this.#fire();
  }

  onSourceStarted() {}

  #fire() {
    const objects = this.#held;
    this.#held = [];
    return { fire: [{ objects }], timerAtMs: null };
  }

  snapshot() {
    return this.#held;
  }

  restore(held: string[]) {
    this.#held = held;
  }
}

type Question = SessionEffect & { type: 'evaluate' };

interface Running {
  readonly sessionNo: number;
  readonly id: Hash64;
  readonly fence: number;
  readonly invocation: Invocation;
  step: number;
  /** Timed out: the driver keeps its objects until it stops. */
  overtaken?: true;
}

class World {
  readonly machine: SessionMachine;
  readonly random: Prng;
  readonly queue = new Set<Invocation>();
  readonly held = new Set<Invocation>();
  readonly running: Running[] = [];
  readonly acks: { session: string; seq: number }[] = [];
  /** To the class of the custom trigger. */
  readonly questions: Question[] = [];
  readonly ended = new Map<string, string>();
  readonly released = new Set<string>();
  readonly begun: string[] = [];
  readonly seen = new Map<Session, Set<string>>();
  now = 0;

  constructor(seed: number) {
    this.random = new Prng(seed);
    this.machine = new SessionMachine({ random: this.random, sameContent: (a, b) => a.content === b.content });
  }

  apply(event: SessionEvent): void {
    this.take(this.machine.handle(event, { monotonicMs: this.now, epochMs: this.now }));
    this.machine.checkInvariants();
    assert.deepEqual(this.stuck(), [], 'every session can go on (WD1)');
  }

  stuck(): string[] {
    return this.machine
      .stuck({
        isWaiting: (one) => this.queue.has(one),
        isHeld: (one) => one.slot >= 0,
        isRunning: (one) => this.running.some((other) => other.invocation === one && other.fence === one.fence),
      })
      .map(({ session, reason }) => `${session.id}: ${reason}`);
  }

  take(effects: readonly SessionEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'enqueue':
          assert.equal(effect.invocation.session.state, 'running');
          assert.ok(!this.queue.has(effect.invocation), 'queued once');
          this.queue.add(effect.invocation);
          break;
        case 'withdraw':
          this.queue.delete(effect.invocation);
          this.held.delete(effect.invocation);
          break;
        case 'abort':
          // A loser: its session goes on without it.
          for (const one of this.running) {
            if (one.invocation === effect.invocation && effect.invocation.place === 'ended') one.overtaken = true;
          }
          break;
        case 'evaluate':
          this.questions.push(effect);
          break;
        case 'copy-object':
        case 'persist':
          this.acks.push({ session: effect.session.id, seq: effect.seq });
          break;
        case 'session-ended':
          assert.ok(!this.ended.has(effect.session.id), 'a session ends once');
          if (effect.state !== 'cancelled') {
            const open = this.questions.some(({ session }) => session === effect.session);
            assert.ok(!open, 'a session does not end while its class is asked');
          }
          this.ended.set(effect.session.id, effect.state);
          break;
        case 'release':
          assert.ok(
            this.ended.has(effect.session.id) && !this.released.has(effect.session.id),
            'released once, after its end',
          );
          assert.ok(!this.running.some((one) => one.invocation.session === effect.session && one.overtaken !== true));
          this.released.add(effect.session.id);
          break;
      }
    }
  }

  begin(): void {
    const id = `s${this.begun.length}`;
    this.begun.push(id);
    this.apply({
      type: 'session-started',
      id,
      run: 1,
      durable: false,
      priority: 0,
      deadlineMs: 0,
      tables: TABLES,
      entries: [{ function: 0, inputs: [] }],
      objects: [],
      open: undefined,
    });
  }

  claim(from: Set<Invocation>): void {
    const all = [...from];
    if (all.length === 0) return;
    const invocation = this.random.pick(all);
    from.delete(invocation);
    const which = { sessionNo: invocation.session.no, id: invocation.id, fence: invocation.fence };
    this.running.push({ ...which, invocation, step: 0 });
    this.apply({
      ...which,
      type: 'attempt-started',
      slot: this.random.int(4),
      instance: 'i',
      start: 'warm',
      atMs: this.now,
    });
  }

  send(): void {
    if (this.running.length === 0) return;
    const sender = this.random.pick(this.running);
    const bucket = this.random.pick(BUCKETS);
    const named = this.random.int(2) === 0;
    // Attempts repeat their steps: a retry begins again at step 0.
    const object: StoredObject = {
      bucket,
      name: named ? this.random.pick(NAMES) : undefined,
      producer: sender.id,
      step: sender.step++,
      group: String(this.random.int(3)),
      session: undefined,
      contentType: CONTENT_JSON,
      content: '1',
    };
    const inline =
      bucket === EACH && !named && sender.invocation.attempts === 1 && sender.fence === sender.invocation.fence;
    const firings = inline ? [{ trigger: 0, function: 1, id: objectFiringId(object, 0, 0) }] : undefined;
    this.apply({
      ...pick(sender),
      type: 'object-sent',
      slot: 1,
      atMs: this.now,
      object,
      output: false,
      persist: false,
      firings,
    });
    if (firings !== undefined && sender.invocation.session.state === 'running') {
      for (const one of this.heldOf(sender.invocation.session)) this.held.add(one);
    }
  }

  heldOf(session: Session): Invocation[] {
    return [...session.invocations.values()].filter((one) => one.place === 'held');
  }

  end(error: boolean): void {
    if (this.running.length === 0) return;
    const [one] = this.running.splice(this.random.int(this.running.length), 1) as [Running];
    this.apply({
      ...pick(one),
      type: 'attempt-ended',
      atMs: this.now,
      error: error ? { code: 'E_FUNCTION_FAILED', message: 'x' } : undefined,
      result: undefined,
    });
  }

  /** The attempt is overtaken; it may go on for a while and speak under its old fence. */
  lose(why: 'lost' | 'timeout'): void {
    const live = this.running.filter((one) => one.fence === one.invocation.fence);
    if (live.length === 0) return;
    const one = this.random.pick(live);
    if (why === 'lost') this.running.splice(this.running.indexOf(one), 1);
    else one.overtaken = true;
    this.apply({ type: 'attempt-lost', invocation: one.invocation, why, error: { code: 'E_TIMEOUT', message: 'x' } });
  }

  answer(blame?: 'lost' | 'event'): void {
    if (this.questions.length === 0) return;
    const [question] = this.questions.splice(this.random.int(this.questions.length), 1) as [Question];
    const { session, bucket, trigger, plan } = question;
    const spec = trigger.spec as SpecOf<'custom'>;
    const held = session.heldObjects.get(bucket.index * 0x1_0000 + trigger.index);
    const evaluation = evaluationOf(spec, { bucket: bucket.name, trigger: trigger.name }, plan, (key) => {
      assert.ok(held?.has(key), 'what is asked about is held');
      return { name: key, session: session.id, group: '', contentType: CONTENT_JSON, size: 1 };
    });
    const error = { code: 'E_FUNCTION_FAILED' as const, message: 'x' };
    const result: EvaluationResult =
      blame === undefined ? evaluateCustom(Pairs, evaluation, []) : { failure: { blame, error } };
    this.apply({ type: 'evaluated', session, bucket, trigger, id: plan.id, result });
  }

  acknowledge(): void {
    if (this.acks.length === 0) return;
    const [ack] = this.acks.splice(this.random.int(this.acks.length), 1) as [{ session: string; seq: number }];
    this.apply({ type: 'acknowledged', session: ack.session, seq: ack.seq, error: undefined });
  }

  /** Everything ends well from now on. */
  settle(): void {
    for (let i = 0; i < 20_000 && this.released.size < this.begun.length; i++) {
      this.now += 1_000;
      this.apply({ type: 'time-passed' });
      this.acknowledge();
      this.answer();
      this.claim(this.queue);
      this.claim(this.held);
      this.end(false);
    }
  }
}

function pick(one: Running): { sessionNo: number; id: Hash64; fence: number } {
  return { sessionNo: one.sessionNo, id: one.id, fence: one.fence };
}

test('every session ends once and is released once, whatever happens in between', () => {
  fc.assert(
    fc.property(fc.nat(), fc.array(fc.nat(99), { maxLength: 120 }), (seed, steps) => {
      const world = new World(seed);
      world.begin();
      for (const step of steps) {
        world.now += step % 7;
        if (step < 6) world.begin();
        else if (step < 30) world.claim(world.queue);
        else if (step < 40) world.claim(world.held);
        else if (step < 65) world.send();
        else if (step < 78) world.end(false);
        else if (step < 82) world.end(true);
        else if (step < 83) world.answer(world.random.int(2) === 0 ? 'lost' : 'event');
        else if (step < 87) world.lose('lost');
        else if (step < 90) world.lose('timeout');
        else if (step < 93) world.acknowledge();
        else if (step < 95) world.answer();
        else if (step < 98) world.apply({ type: 'time-passed' });
        else {
          const session = world.random.pick(world.begun);
          world.apply({ type: 'session-cancelled', session, error: { code: 'E_CANCELLED', message: 'x' } });
        }
      }
      world.settle();
      assert.equal(world.ended.size, world.begun.length, 'all ended');
      assert.equal(world.released.size, world.begun.length, 'all released');
      assert.equal(world.machine.sessionCount, 0);
    }),
    { numRuns: 400 },
  );
});

test('a retried attempt that repeats its sends fires nothing twice', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 20 }), (seed, sends, before) => {
      const world = new World(seed);
      world.begin();
      const fired = new Set<string>();
      const attempt = (count: number) => {
        world.claim(world.queue);
        const speaker = world.running.at(-1) as Running;
        for (let step = 0; step < count; step++) {
          const object: StoredObject = {
            bucket: EACH,
            name: undefined,
            producer: speaker.id,
            step,
            group: '',
            session: undefined,
            contentType: CONTENT_JSON,
            content: '1',
          };
          world.apply({
            ...pick(speaker),
            type: 'object-sent',
            slot: 1,
            atMs: 0,
            object,
            output: false,
            persist: false,
            firings: undefined,
          });
        }
      };
      attempt(Math.min(before, sends));
      const first = world.running.at(-1) as Running;
      for (const one of world.queue) fired.add(hexOf(one.id));
      const queued = [...world.queue];
      world.queue.clear();
      world.end(true);
      assert.equal(first.invocation.place, 'backoff');
      world.now += 10_000_000;
      world.apply({ type: 'time-passed' });
      attempt(sends);
      for (const one of world.queue) {
        assert.ok(!fired.has(hexOf(one.id)), 'fired once');
        fired.add(hexOf(one.id));
      }
      assert.equal(fired.size, sends);
      for (const one of queued) world.queue.add(one);
      world.settle();
      assert.equal(world.ended.get('s0'), 'completed');
    }),
    { numRuns: 100 },
  );
});
