// Sessions of one app host: who produces what, what fires because of it, and when a session has ended.
//
// Owns: sessions, their invocations and attempts (fences, retries), objects by name, session-scoped trigger state.
// Does not own: which instance runs what (LocalScheduler), the bytes of objects (bucket), bucket-scoped triggers
// (coordinator).
//
// SM1. An invocation is in exactly one place: queued, held by an instance, running, in back-off, or ended.
// SM2. At most one attempt of an invocation counts: the one that bears its fence. What another says is dropped.
// SM3. A firing has a deterministic id and makes at most one invocation (design 2.2).
// SM4. A session ends when nothing of it is queued, held, running, in back-off, timed or unacknowledged, and then once.
// SM5. Names are claimed before triggers see the object; a name has one producer.
//
// Sources: Pheromone (NSDI 2023) for buckets and triggers; the end of sessions and the fences are ours.

import {
  assert,
  type ErrorData,
  type Hash64,
  hexOf,
  PlatformError,
  type Prng,
  toErrorData,
  unreachable,
} from '../../base/index.ts';
import {
  type BucketRow,
  CALL_BUCKET_INDEX,
  entryId,
  type FunctionRow,
  firingId,
  nameOf,
  objectFiringId,
  type RerunRow,
  type StoredObject,
  sizeOf,
  type TriggerRow,
} from '../../bucket/index.ts';
import {
  createTrigger,
  type Firing,
  isStateless,
  matchesName,
  type Now,
  scopeOf,
  type TriggerMachine,
} from '../../trigger/index.ts';
import type { MadeFiring, SessionEffect, SessionEvent, Which } from './events.ts';
import {
  BACKOFF_JITTER,
  FAILURES_MAX,
  IDLE_TIMEOUT_MS_DEFAULT,
  LOST_RETRIES_MAX,
  RERUN_ATTEMPTS_MAX,
  RERUN_BACKOFF_MAX_MS,
  RERUN_BACKOFF_MIN_MS,
  SESSION_OBJECTS_MAX,
} from './limits.ts';
import { addInvocation, findInvocation, type Invocation, invocationsOf, type Session } from './session.ts';
import { TimerQueue } from './timer-queue.ts';

/** Above are the numbers of sessions that instances begin themselves. */
const HOST_NO_MAX = 0x7fff_ffff;

type Due =
  | { readonly kind: 'retry'; readonly invocation: Invocation; readonly fence: number }
  | { readonly kind: 'rerun'; readonly invocation: Invocation; readonly fence: number; readonly rule: RerunRow }
  | { readonly kind: 'trigger'; readonly session: Session; readonly key: number }
  | { readonly kind: 'idle'; readonly session: Session };

export interface SessionMachinePorts {
  readonly random: Prng;
  /** Whether two objects have the same bytes: for repeated puts from outside. */
  readonly sameContent: (a: StoredObject, b: StoredObject) => boolean;
}

export class SessionMachine {
  readonly #ports: SessionMachinePorts;
  readonly #byId = new Map<string, Session>();
  readonly #byNo = new Map<number, Session>();
  readonly #timers = new TimerQueue<Due>();
  #nextNo = 1;
  #effects: SessionEffect[] = [];
  #now: Now = { monotonicMs: 0, epochMs: 0 };

  constructor(ports: SessionMachinePorts) {
    this.#ports = ports;
  }

  /** Applies one event; returns what must happen because of it, in order. */
  handle(event: SessionEvent, now: Now): SessionEffect[] {
    this.#effects = [];
    this.#now = now;
    switch (event.type) {
      case 'session-started':
        this.#start(event);
        break;
      case 'attempt-started':
        this.#attemptStarted(event);
        break;
      case 'object-sent':
        this.#objectSent(event);
        break;
      case 'attempt-ended':
        this.#attemptEnded(event);
        break;
      case 'handed-over': {
        const invocation = this.#find(event);
        if (invocation !== undefined && invocation.place === 'held') this.#enqueue(invocation);
        break;
      }
      case 'group-closed':
        this.#fromInvocation(event, (session) => this.#close(session, event.bucket));
        break;
      case 'joined':
        this.#fromInvocation(event, (session) => this.#join(session, event.bucket, event, hexOf(event.id)));
        break;
      case 'attempt-lost':
        this.#attemptLost(event.invocation, event.why, event.error);
        break;
      case 'offer-lost':
        if (event.invocation.place === 'held') this.#enqueue(event.invocation);
        break;
      case 'offer-failed':
        if (event.invocation.place === 'queued') this.#failForGood(event.invocation, event.error);
        break;
      case 'session-cancelled':
        this.#cancel(event.session, event.error);
        break;
      case 'acknowledged':
        this.#acknowledged(event.session, event.seq, event.error);
        break;
      case 'time-passed':
        this.#timePassed();
        break;
      default:
        unreachable(event, 'SessionEvent');
    }
    return this.#effects;
  }

  /**
   * An object from outside for a running session. Same name and bytes again: a duplicate.
   * @throws E_SESSION_ENDED, E_OBJECT_EXISTS, E_BUCKET_UNKNOWN.
   */
  put(sessionId: string, object: StoredObject, now: Now): { duplicate: boolean; effects: SessionEffect[] } {
    const session = this.#running(sessionId);
    this.#effects = [];
    this.#now = now;
    const bucket = session.tables.buckets[object.bucket];
    assert(bucket !== undefined, 'the driver resolved the bucket');
    const there = session.named.get(object.bucket)?.get(nameOf(object));
    if (there !== undefined) {
      if (this.#ports.sameContent(there, object)) {
        this.#effects.push({ type: 'discard', object });
        return { duplicate: true, effects: this.#effects };
      }
      throw new PlatformError(
        'E_OBJECT_EXISTS',
        `bucket ${bucket.name} has another object ${nameOf(object)} in this session`,
      );
    }
    this.#refuseClosed(session, bucket);
    this.#touch(session);
    this.#take(session, undefined, bucket, object, false, false);
    this.#settle(session);
    return { duplicate: false, effects: this.#effects };
  }

  /** `close` and `join` from outside. @throws E_SESSION_ENDED, and what the trigger refuses. */
  closeFromOutside(sessionId: string, bucket: number, now: Now): SessionEffect[] {
    return this.#fromOutside(sessionId, now, (session) => this.#close(session, bucket));
  }

  joinFromOutside(
    sessionId: string,
    bucket: number,
    join: { readonly names?: readonly string[]; readonly count?: number },
    now: Now,
  ): SessionEffect[] {
    return this.#fromOutside(sessionId, now, (session) => this.#join(session, bucket, join, 'outside'));
  }

  session(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  sessionByNo(no: number): Session | undefined {
    return this.#byNo.get(no);
  }

  sessions(): IterableIterator<Session> {
    return this.#byId.values();
  }

  get sessionCount(): number {
    return this.#byId.size;
  }

  /** Monotonic ms of the next thing that time brings; undefined when nothing is timed. */
  nextTimerMs(): number | undefined {
    return this.#timers.nextMs();
  }

  object(session: Session, bucket: number, name: string): StoredObject | undefined {
    const named = session.named.get(bucket)?.get(name);
    if (named !== undefined) return named;
    // `<invocation>.<step>`: not indexed, since nearly nobody asks for those.
    const match = /^([0-9a-f]{8})([0-9a-f]{8})\.(\d+)$/.exec(name);
    if (match === null) return undefined;
    const id = { hi: Number.parseInt(match[1] ?? '', 16), lo: Number.parseInt(match[2] ?? '', 16) };
    const step = Number(match[3]);
    return findInvocation(session, id)?.out.find((made) => made.bucket === bucket && made.step === step);
  }

  /** (SM1), (SM2), (SM4): tests and the simulator call it after every event. */
  checkInvariants(): void {
    for (const session of this.#byId.values()) {
      let live = 0;
      let running = 0;
      for (const one of invocationsOf(session)) {
        if (one.place !== 'ended') live++;
        if (one.place === 'running') running++;
        assert((one.place === 'running' || one.place === 'held') === one.slot >= 0, 'who holds an invocation is known');
      }
      if (session.state === 'running') {
        assert(live === session.live, 'live counts the invocations that have not ended');
        assert(running === session.running, 'running counts the invocations on instances');
      }
      assert(session.state !== 'ended', 'an ended session is not in the table');
    }
  }

  // ── beginning ──────────────────────────────────────────────────────────────────────────────────────────────────

  #start(event: SessionEvent & { type: 'session-started' }): void {
    assert(!this.#byId.has(event.id), 'a session begins once');
    const now = this.#now.monotonicMs;
    const session: Session = {
      no: event.lane?.no ?? this.#nextNo,
      id: event.id,
      run: event.run,
      durable: event.durable,
      priority: event.priority,
      deadlineMs: event.deadlineMs,
      tables: event.tables,
      startedAtMs: now,
      invocations: new Map(),
      invocationCount: 0,
      entries: [],
      objects: [],
      named: new Map(),
      triggers: new Map(),
      heldObjects: new Map(),
      timedAtMs: new Map(),
      live: 0,
      running: 0,
      acks: new Map(),
      nextAck: 1,
      outputs: 0,
      result: undefined,
      firstError: undefined,
      failures: [],
      bytes: 0,
      firings: 0,
      attempts: 0,
      meteredMs: 0,
      open:
        event.open === undefined
          ? undefined
          : { idleTimeoutMs: event.open.idleTimeoutMs || IDLE_TIMEOUT_MS_DEFAULT, closed: false, idleSinceMs: now },
      state: 'running',
      endedAtMs: 0,
    };
    if (event.lane === undefined) this.#nextNo = this.#nextNo === HOST_NO_MAX ? 1 : this.#nextNo + 1;
    assert(!this.#byNo.has(session.no), 'a session number is used by one session at a time');
    this.#byId.set(session.id, session);
    this.#byNo.set(session.no, session);
    this.#watchProducers(session);
    event.entries.forEach((entry, index) => {
      const row = session.tables.functions[entry.function];
      assert(row !== undefined, 'the driver resolved the entry');
      for (const input of entry.inputs) this.#record(session, undefined, input);
      const invocation = this.#makeInvocation(session, {
        id: entryId(session.id, index),
        row,
        firing: undefined,
        parent: undefined,
        inputs: entry.inputs,
        fence: 1,
        wantsResult: index === 0,
      });
      session.entries.push(invocation);
      if (event.lane === undefined || event.lane.queue) this.#enqueue(invocation);
      else {
        invocation.place = 'held';
        invocation.slot = event.lane.slot;
      }
    });
    for (const object of event.objects) {
      this.#take(session, undefined, session.tables.buckets[object.bucket] as BucketRow, object, false, false);
    }
    if (session.open !== undefined) this.#touch(session);
    this.#settle(session);
  }

  /** Triggers that must hear of producers from the beginning. */
  #watchProducers(session: Session): void {
    for (const bucket of session.tables.buckets) {
      for (const trigger of bucket.triggers) {
        if (trigger.spec.kind !== 'dynamicGroup' || trigger.spec.producers === undefined) continue;
        if (scopeOf(trigger.spec) === 'session') this.#machine(session, bucket, trigger);
      }
    }
  }

  #makeInvocation(
    session: Session,
    made: Pick<Invocation, 'id' | 'row' | 'firing' | 'parent' | 'inputs' | 'fence' | 'wantsResult'>,
  ): Invocation {
    const invocation: Invocation = {
      session,
      id: made.id,
      row: made.row,
      firing: made.firing,
      parent: made.parent,
      wantsResult: made.wantsResult,
      inputs: made.inputs,
      out: [],
      place: 'queued',
      slot: -1,
      fence: made.fence,
      attempts: 0,
      failures: 0,
      losses: 0,
      reruns: 0,
      missed: undefined,
      queuedAtMs: this.#now.monotonicMs,
      startedAtMs: 0,
      hostEvaluates: false,
      sendError: undefined,
      history: [],
      next: undefined,
    };
    addInvocation(session, invocation);
    session.live++;
    return invocation;
  }

  #enqueue(invocation: Invocation): void {
    invocation.place = 'queued';
    invocation.slot = -1;
    invocation.queuedAtMs = this.#now.monotonicMs;
    this.#effects.push({ type: 'enqueue', invocation });
  }

  // ── attempts ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** The invocation, if the one who speaks bears its fence (SM2). */
  #find(which: Which): Invocation | undefined {
    const session = this.#byNo.get(which.sessionNo);
    if (session === undefined) return undefined;
    const invocation = findInvocation(session, which.id);
    return invocation !== undefined && invocation.fence === which.fence ? invocation : undefined;
  }

  #attemptStarted(event: SessionEvent & { type: 'attempt-started' }): void {
    const invocation = this.#find(event);
    if (invocation === undefined || invocation.place === 'ended' || invocation.place === 'running') return;
    const { session } = invocation;
    if (session.state !== 'running') {
      // It was claimed while its session was being cancelled: its objects stay until it ends.
      invocation.place = 'running';
      invocation.slot = event.slot;
      session.running++;
      this.#effects.push({
        type: 'abort',
        invocation,
        fence: invocation.fence,
        slot: event.slot,
        error: session.firstError ?? { code: 'E_CANCELLED', message: 'the session was cancelled' },
      });
      return;
    }
    invocation.place = 'running';
    invocation.slot = event.slot;
    invocation.startedAtMs = event.atMs;
    invocation.attempts++;
    session.running++;
    session.attempts++;
    invocation.history.push({
      n: invocation.attempts,
      slot: event.slot,
      instance: event.instance,
      start: event.start,
      queuedAtMs: invocation.queuedAtMs,
      startedAtMs: event.atMs,
      endedAtMs: 0,
      outcome: 'running',
    });
    // From the attempt's start, not from queuing (interface.md, rerun).
    for (const rule of invocation.row.reruns) {
      this.#timers.add(event.atMs + rule.timeoutMs, { kind: 'rerun', invocation, fence: invocation.fence, rule });
    }
  }

  #attemptEnded(event: SessionEvent & { type: 'attempt-ended' }): void {
    const invocation = this.#find(event);
    if (invocation === undefined || invocation.place !== 'running') {
      if (event.result !== undefined) this.#effects.push({ type: 'discard', object: event.result });
      return;
    }
    const { session } = invocation;
    const error = invocation.sendError ?? event.error;
    this.#leave(invocation, event.atMs, error === undefined ? 'ok' : 'error');
    if (session.state !== 'running') {
      if (event.result !== undefined) this.#effects.push({ type: 'discard', object: event.result });
      invocation.place = 'ended';
      this.#releaseWhenIdle(session);
      return;
    }
    if (error !== undefined) {
      if (event.result !== undefined) this.#effects.push({ type: 'discard', object: event.result });
      this.#attemptFailed(invocation, error);
      return;
    }
    if (event.result !== undefined) {
      if (invocation.wantsResult) {
        session.result = event.result;
        session.objects.push(event.result);
      } else {
        this.#effects.push({ type: 'discard', object: event.result });
      }
    }
    this.#endUnlessMissed(invocation);
  }

  /** It returned. If a rule misses something of it, it gets another attempt when the rule's time is over. */
  #endUnlessMissed(invocation: Invocation): void {
    for (const rule of invocation.row.reruns) {
      if (isMet(invocation, rule)) continue;
      invocation.missed = rule;
      this.#again(invocation, rule, invocation.startedAtMs + rule.timeoutMs);
      return;
    }
    this.#endInvocation(invocation, 'ok');
  }

  /** The rule was missed by an attempt that still runs, or will have been at `atMs`. */
  #again(invocation: Invocation, rule: RerunRow, atMs: number): void {
    const { session, row } = invocation;
    if (invocation.reruns >= RERUN_ATTEMPTS_MAX) {
      const bucket = session.tables.buckets[rule.bucket]?.name ?? '';
      this.#failForGood(invocation, {
        code: 'E_TIMEOUT',
        message: `${row.name} did not send what bucket ${bucket} expects within ${rule.timeoutMs} ms, in ${invocation.reruns + 1} attempts`,
      });
      return;
    }
    invocation.reruns++;
    const base = Math.min(RERUN_BACKOFF_MAX_MS, RERUN_BACKOFF_MIN_MS * 2 ** (invocation.reruns - 1));
    const pause = base * (1 + BACKOFF_JITTER * this.#ports.random.float());
    this.#retryAt(invocation, Math.max(atMs, this.#now.monotonicMs) + pause);
  }

  #ruleTime(invocation: Invocation, fence: number, rule: RerunRow): void {
    if (invocation.place !== 'running' || invocation.fence !== fence || isMet(invocation, rule)) return;
    const error: ErrorData = {
      code: 'E_TIMEOUT',
      message: `overtaken: a rerun rule of ${rule.timeoutMs} ms was missed`,
    };
    this.#effects.push({ type: 'abort', invocation, fence, slot: invocation.slot, error });
    this.#leave(invocation, this.#now.monotonicMs, 'timeout');
    this.#again(invocation, rule, this.#now.monotonicMs);
  }

  /** The attempt is over, whatever comes next for its invocation. */
  #leave(invocation: Invocation, atMs: number, outcome: 'ok' | 'error' | 'timeout' | 'lost'): void {
    const { session } = invocation;
    session.running--;
    session.meteredMs += Math.max(0, atMs - invocation.startedAtMs);
    invocation.slot = -1;
    const record = invocation.history.at(-1);
    if (record !== undefined) {
      record.endedAtMs = atMs;
      record.outcome = outcome;
    }
  }

  #attemptFailed(invocation: Invocation, error: ErrorData): void {
    const { retries } = invocation.row;
    invocation.failures++;
    const hopeless = error.terminal === true || (error.code !== 'E_FUNCTION_FAILED' && error.code !== 'E_TIMEOUT');
    if (hopeless || invocation.failures > retries.max) {
      this.#failForGood(invocation, error);
      return;
    }
    const base = Math.min(retries.maxMs, retries.minMs * 2 ** (invocation.failures - 1));
    this.#retryAt(invocation, this.#now.monotonicMs + base * (1 + BACKOFF_JITTER * this.#ports.random.float()));
  }

  #attemptLost(invocation: Invocation, why: 'lost' | 'timeout', error: ErrorData): void {
    if (invocation.place !== 'running') return;
    const { session } = invocation;
    // A handler of an ending session was told to stop already and may still read its objects: it is over when it is over.
    if (session.state !== 'running' && why === 'timeout') return;
    this.#leave(invocation, this.#now.monotonicMs, why);
    if (session.state !== 'running') {
      invocation.place = 'ended';
      this.#releaseWhenIdle(session);
      return;
    }
    if (why === 'timeout') {
      this.#attemptFailed(invocation, error);
      return;
    }
    invocation.losses++;
    if (invocation.losses > LOST_RETRIES_MAX) {
      this.#failForGood(invocation, error);
      return;
    }
    this.#retryAt(invocation, this.#now.monotonicMs);
  }

  /** Another attempt, under a higher fence (SM2). */
  #retryAt(invocation: Invocation, atMs: number): void {
    invocation.fence++;
    invocation.hostEvaluates = true;
    invocation.sendError = undefined;
    invocation.place = 'backoff';
    if (atMs <= this.#now.monotonicMs) this.#enqueue(invocation);
    else this.#timers.add(atMs, { kind: 'retry', invocation, fence: invocation.fence });
  }

  #failForGood(invocation: Invocation, error: ErrorData): void {
    const { session } = invocation;
    session.firstError ??= error;
    if (session.failures.length < FAILURES_MAX) {
      session.failures.push({ invocation: hexOf(invocation.id), function: invocation.row.name, error });
    }
    this.#endInvocation(invocation, 'failed');
  }

  /** Its successors were queued before: ending and queuing are one event (interface.md, Triggers). */
  #endInvocation(invocation: Invocation, outcome: 'ok' | 'failed'): void {
    const { session } = invocation;
    invocation.place = 'ended';
    session.live--;
    for (const machine of session.triggers.values()) machine.onProducerEnded(invocation.row.name, outcome);
    this.#settle(session);
  }

  // ── objects and firings ────────────────────────────────────────────────────────────────────────────────────────

  #objectSent(event: SessionEvent & { type: 'object-sent' }): void {
    const sender = this.#find(event);
    const { object } = event;
    if (sender === undefined || sender.place === 'ended' || sender.session.state !== 'running') {
      this.#effects.push({ type: 'discard', object });
      return;
    }
    const { session } = sender;
    const bucket = session.tables.buckets[object.bucket] as BucketRow;
    if (event.firings !== undefined) {
      this.#record(session, sender, object);
      for (const firing of event.firings) this.#madeByInstance(sender, bucket, object, firing, event);
      return;
    }
    if (object.name === undefined) {
      if (sender.attempts > 1 && sender.out.some((made) => made.step === object.step)) {
        this.#effects.push({ type: 'discard', object });
        return;
      }
    } else {
      const there = session.named.get(object.bucket)?.get(object.name);
      if (there !== undefined) {
        this.#effects.push({ type: 'discard', object });
        if (!sameProducer(there, object)) {
          sender.sendError ??= {
            code: 'E_OBJECT_EXISTS',
            message: `bucket ${bucket.name} has an object ${object.name} of another invocation already: choose another name`,
          };
        }
        return;
      }
    }
    try {
      this.#refuseClosed(session, bucket);
      if (session.objects.length >= SESSION_OBJECTS_MAX) {
        throw new PlatformError('E_QUOTA_EXCEEDED', `a session has at most ${SESSION_OBJECTS_MAX} objects`);
      }
    } catch (refusal) {
      sender.sendError ??= toErrorData(refusal);
      this.#effects.push({ type: 'discard', object });
      return;
    }
    this.#take(session, sender, bucket, object, event.output, event.persist);
  }

  /** The object counts from now on. */
  #record(session: Session, sender: Invocation | undefined, object: StoredObject): void {
    session.objects.push(object);
    session.bytes += sizeOf(object);
    sender?.out.push(object);
    if (object.name === undefined) return;
    let names = session.named.get(object.bucket);
    if (names === undefined) {
      names = new Map();
      session.named.set(object.bucket, names);
    }
    names.set(object.name, object);
  }

  /** Claims the name (SM5), then lets every trigger of the bucket see it. */
  #take(
    session: Session,
    sender: Invocation | undefined,
    bucket: BucketRow,
    object: StoredObject,
    output: boolean,
    persist: boolean,
  ): void {
    this.#record(session, sender, object);
    if (output) {
      session.outputs++;
      this.#effects.push({ type: 'output', session, object });
    }
    if (persist) this.#effects.push({ type: 'persist', session, seq: this.#expectAck(session, sender), object });
    let elsewhere = false;
    for (const trigger of bucket.triggers) {
      if (scopeOf(trigger.spec) === 'bucket') {
        elsewhere = true;
        continue;
      }
      if (isStateless(trigger.spec)) {
        if (!matchesName(trigger.spec, nameOf(object))) continue;
        trigger.run.forEach((target, run) => {
          const id = objectFiringId(object, trigger.index, run);
          this.#fire(session, sender, bucket, trigger, nameOf(object), id, target, [object]);
        });
        continue;
      }
      this.#showTo(session, sender, bucket, trigger, object);
    }
    if (elsewhere) {
      this.#effects.push({ type: 'copy-object', session, seq: this.#expectAck(session, sender), object });
    }
  }

  #expectAck(session: Session, sender: Invocation | undefined): number {
    const seq = session.nextAck++;
    session.acks.set(seq, sender);
    return seq;
  }

  #showTo(
    session: Session,
    sender: Invocation | undefined,
    bucket: BucketRow,
    trigger: TriggerRow,
    object: StoredObject,
  ): void {
    const machine = this.#machine(session, bucket, trigger);
    const key = keyOf(bucket, trigger);
    const name = nameOf(object);
    const held = session.heldObjects.get(key) as Map<string, StoredObject>;
    held.set(name, object);
    try {
      const firings = machine.onObject({ key: name, name, group: object.group, session: session.id }, this.#now);
      this.#fireAll(session, sender, bucket, trigger, machine, firings);
    } catch (refusal) {
      held.delete(name);
      const error = toErrorData(refusal);
      if (sender !== undefined) sender.sendError ??= error;
      else session.firstError ??= error;
    }
  }

  #machine(session: Session, bucket: BucketRow, trigger: TriggerRow): TriggerMachine {
    const key = keyOf(bucket, trigger);
    let machine = session.triggers.get(key);
    if (machine === undefined) {
      machine = createTrigger(withoutSource(trigger), this.#now);
      session.triggers.set(key, machine);
      session.heldObjects.set(key, new Map());
    }
    return machine;
  }

  #fireAll(
    session: Session,
    sender: Invocation | undefined,
    bucket: BucketRow,
    trigger: TriggerRow,
    machine: TriggerMachine,
    firings: readonly Firing[],
  ): void {
    const key = keyOf(bucket, trigger);
    const held = session.heldObjects.get(key) as Map<string, StoredObject>;
    for (const firing of firings) {
      const inputs: StoredObject[] = [];
      for (const name of firing.objects) {
        const object = held.get(name);
        assert(object !== undefined, 'a firing names objects that the trigger was shown');
        inputs.push(object);
        held.delete(name);
      }
      trigger.run.forEach((target, run) => {
        const id = firingId(bucket.index, trigger.index, firing.index, run);
        this.#fire(session, sender, bucket, trigger, firing.index, id, target, inputs);
      });
    }
    this.#watchTimer(session, key, machine);
  }

  /** One entry per due time, however many objects arrive before it. */
  #watchTimer(session: Session, key: number, machine: TriggerMachine): void {
    const due = machine.nextTimerMs();
    if (due === undefined || session.timedAtMs.get(key) === due) return;
    session.timedAtMs.set(key, due);
    this.#timers.add(due, { kind: 'trigger', session, key });
  }

  #fire(
    session: Session,
    sender: Invocation | undefined,
    bucket: BucketRow,
    trigger: TriggerRow,
    index: string,
    id: Hash64,
    target: number,
    inputs: readonly StoredObject[],
  ): void {
    // (SM3)
    if (findInvocation(session, id) !== undefined) return;
    session.firings++;
    const invocation = this.#makeInvocation(session, {
      id,
      row: session.tables.functions[target] as FunctionRow,
      firing: { bucket: bucket.index, trigger: trigger.name, index },
      parent: sender?.id,
      inputs,
      fence: sender?.fence ?? 1,
      wantsResult: false,
    });
    this.#enqueue(invocation);
  }

  /** A successor that its sender's instance holds or offers. */
  #madeByInstance(
    sender: Invocation,
    bucket: BucketRow,
    object: StoredObject,
    firing: MadeFiring,
    by: { readonly slot: number; readonly atMs: number },
  ): void {
    const { session } = sender;
    if (findInvocation(session, firing.id) !== undefined) return;
    session.firings++;
    const trigger = bucket.index === CALL_BUCKET_INDEX ? '$call' : (bucket.triggers[firing.trigger]?.name ?? '');
    const invocation = this.#makeInvocation(session, {
      id: firing.id,
      row: session.tables.functions[firing.function] as FunctionRow,
      firing: { bucket: bucket.index, trigger, index: nameOf(object) },
      parent: sender.id,
      inputs: [object],
      fence: sender.fence,
      wantsResult: false,
    });
    invocation.place = 'held';
    invocation.slot = by.slot;
    invocation.queuedAtMs = by.atMs;
  }

  #refuseClosed(session: Session, bucket: BucketRow): void {
    for (const trigger of bucket.triggers) {
      if (session.triggers.get(keyOf(bucket, trigger))?.closed === true) {
        throw new PlatformError(
          'E_SESSION_ENDED',
          `bucket ${bucket.name} was closed in this session: send before ctx.closeGroup`,
        );
      }
    }
  }

  #close(session: Session, bucketIndex: number): void {
    const bucket = session.tables.buckets[bucketIndex] as BucketRow;
    let elsewhere = false;
    for (const trigger of bucket.triggers) {
      if (isStateless(trigger.spec)) continue;
      if (scopeOf(trigger.spec) === 'bucket') {
        elsewhere ||= trigger.spec.kind === 'dynamicGroup';
        continue;
      }
      const machine = this.#machine(session, bucket, trigger);
      this.#fireAll(session, undefined, bucket, trigger, machine, machine.onClose(this.#now));
    }
    if (elsewhere) {
      this.#effects.push({
        type: 'close-copy',
        session,
        seq: this.#expectAck(session, undefined),
        bucket: bucketIndex,
      });
    }
    if (session.open !== undefined) session.open.closed = true;
  }

  #join(
    session: Session,
    bucketIndex: number,
    join: { readonly names?: readonly string[]; readonly count?: number },
    by: string,
  ): void {
    const bucket = session.tables.buckets[bucketIndex] as BucketRow;
    const trigger = bucket.triggers.find((row) => row.spec.kind === 'dynamicJoin');
    if (trigger === undefined) {
      throw new PlatformError('E_REQUEST_INVALID', `bucket ${bucket.name} has no dynamicJoin trigger to join`);
    }
    const machine = this.#machine(session, bucket, trigger);
    const wanted = {
      ...(join.names === undefined ? {} : { names: join.names }),
      ...(join.count === undefined ? {} : { count: join.count }),
    };
    this.#fireAll(session, undefined, bucket, trigger, machine, machine.onJoin(wanted, by, this.#now));
    if (session.open !== undefined) session.open.closed = true;
  }

  #fromInvocation(which: Which, act: (session: Session) => void): void {
    const invocation = this.#find(which);
    if (invocation === undefined || invocation.place === 'ended' || invocation.session.state !== 'running') return;
    try {
      act(invocation.session);
    } catch (refusal) {
      invocation.sendError ??= toErrorData(refusal);
    }
  }

  #fromOutside(sessionId: string, now: Now, act: (session: Session) => void): SessionEffect[] {
    const session = this.#running(sessionId);
    this.#effects = [];
    this.#now = now;
    this.#touch(session);
    act(session);
    this.#settle(session);
    return this.#effects;
  }

  #running(sessionId: string): Session {
    const session = this.#byId.get(sessionId);
    if (session === undefined || session.state !== 'running') {
      throw new PlatformError('E_SESSION_ENDED', `session ${sessionId} has ended`);
    }
    return session;
  }

  #acknowledged(sessionId: string, seq: number, error: ErrorData | undefined): void {
    const session = this.#byId.get(sessionId);
    if (session === undefined || !session.acks.has(seq)) return;
    const sender = session.acks.get(seq);
    session.acks.delete(seq);
    if (error !== undefined && session.state === 'running') {
      if (sender !== undefined && sender.place === 'running') sender.sendError ??= error;
      else {
        session.firstError ??= error;
        if (session.failures.length < FAILURES_MAX) {
          session.failures.push({
            invocation: sender === undefined ? '' : hexOf(sender.id),
            function: sender?.row.name ?? '',
            error,
          });
        }
      }
    }
    if (session.state === 'running') this.#settle(session);
    else this.#releaseWhenIdle(session);
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #timePassed(): void {
    for (;;) {
      const due = this.#timers.takeDue(this.#now.monotonicMs);
      if (due === undefined) return;
      if (due.kind === 'retry') {
        const { invocation } = due;
        if (invocation.place !== 'backoff' || invocation.fence !== due.fence) continue;
        const { missed } = invocation;
        invocation.missed = undefined;
        if (missed !== undefined && isMet(invocation, missed)) this.#endInvocation(invocation, 'ok');
        else this.#enqueue(invocation);
      } else if (due.kind === 'rerun') {
        if (due.invocation.session.state === 'running') this.#ruleTime(due.invocation, due.fence, due.rule);
      } else if (due.session.state !== 'running') {
        // Nothing: the session ended in the meantime.
      } else if (due.kind === 'idle') {
        this.#settle(due.session);
      } else {
        this.#triggerTimer(due.session, due.key);
      }
    }
  }

  #triggerTimer(session: Session, key: number): void {
    const machine = session.triggers.get(key);
    const next = machine?.nextTimerMs();
    if (machine === undefined || next === undefined) return;
    if (next > this.#now.monotonicMs) {
      this.#watchTimer(session, key, machine);
      return;
    }
    const bucket = session.tables.buckets[Math.floor(key / 0x1_0000)] as BucketRow;
    const trigger = bucket.triggers[key % 0x1_0000] as TriggerRow;
    this.#fireAll(session, undefined, bucket, trigger, machine, machine.onTimer(this.#now));
    this.#settle(session);
  }

  #touch(session: Session): void {
    if (session.open === undefined) return;
    session.open.idleSinceMs = this.#now.monotonicMs;
    this.#timers.add(this.#now.monotonicMs + session.open.idleTimeoutMs, { kind: 'idle', session });
  }

  // ── ending ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends the session if nothing of it can happen any more (SM4). */
  #settle(session: Session): void {
    while (session.state === 'running' && session.live === 0) {
      const before = session.invocationCount;
      for (const [key, machine] of session.triggers) {
        const bucket = session.tables.buckets[Math.floor(key / 0x1_0000)] as BucketRow;
        const trigger = bucket.triggers[key % 0x1_0000] as TriggerRow;
        const firings = machine.onQuiet(this.#now);
        if (firings.length > 0) this.#fireAll(session, undefined, bucket, trigger, machine, firings);
      }
      if (session.invocationCount > before) return;
      if (session.acks.size > 0) return;
      for (const machine of session.triggers.values()) if (machine.nextTimerMs() !== undefined) return;
      const { open } = session;
      if (open !== undefined && !open.closed && this.#now.monotonicMs < open.idleSinceMs + open.idleTimeoutMs) return;
      const failed = session.outputs === 0 && session.firstError !== undefined;
      this.#end(session, failed ? 'failed' : 'completed', failed ? session.firstError : undefined);
      return;
    }
  }

  #cancel(sessionId: string, error: ErrorData): void {
    const session = this.#byId.get(sessionId);
    if (session === undefined || session.state !== 'running') return;
    for (const one of invocationsOf(session)) {
      if (one.place === 'running') {
        this.#effects.push({ type: 'abort', invocation: one, fence: one.fence, slot: one.slot, error });
      } else if (one.place !== 'ended') {
        const held = one.place === 'held';
        if (one.place !== 'backoff') this.#effects.push({ type: 'withdraw', invocation: one });
        // What an instance holds may be begun any moment: it stays known until it is told otherwise.
        if (!held) one.place = 'ended';
      }
    }
    this.#effects.push({ type: 'stop-session', session, error });
    session.firstError = error;
    this.#end(session, error.code === 'E_CANCELLED' ? 'cancelled' : 'failed', error);
  }

  #end(session: Session, state: 'completed' | 'failed' | 'cancelled', error: ErrorData | undefined): void {
    assert(session.state === 'running', 'a session ends once');
    session.state = 'ending';
    session.endedAtMs = this.#now.monotonicMs;
    this.#effects.push({ type: 'session-ended', session, state, error });
    this.#releaseWhenIdle(session);
  }

  #releaseWhenIdle(session: Session): void {
    if (session.state !== 'ending' || session.running > 0 || session.acks.size > 0) return;
    session.state = 'ended';
    this.#byId.delete(session.id);
    this.#byNo.delete(session.no);
    this.#effects.push({ type: 'release', session });
  }
}

function isMet(invocation: Invocation, rule: RerunRow): boolean {
  if (rule.names === undefined) return invocation.out.some((object) => object.bucket === rule.bucket);
  const named = invocation.session.named.get(rule.bucket);
  return rule.names.every((name) => named?.has(name) === true);
}

function keyOf(bucket: BucketRow, trigger: TriggerRow): number {
  return bucket.index * 0x1_0000 + trigger.index;
}

function sameProducer(a: StoredObject, b: StoredObject): boolean {
  return a.producer.hi === b.producer.hi && a.producer.lo === b.producer.lo;
}

function withoutSource(trigger: TriggerRow): Parameters<typeof createTrigger>[0] {
  const { source: _, ...spec } = trigger.spec;
  return spec as Parameters<typeof createTrigger>[0];
}
