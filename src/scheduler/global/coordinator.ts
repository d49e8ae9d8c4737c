// The coordinator's driver: feeds the session table and the bucket-scoped triggers, and does what they decide.
//
// Owns: links to ready hosts, who waits for which outcome, what is written when. Decides nothing about sessions.
//
// CO1. A promise that something is kept resolves only after its transaction is durable.
// CO2. The start of an ephemeral session, and its end, touch no disk, set no timer and make one promise each.
// CO3. Objects that a firing takes and the start of its session go to disk in one transaction.

import { type ErrorData, type MonotonicMs, PlatformError, type SessionId, sessionIdOf } from '../../base/index.ts';
import type { CancelTimer } from '../../platform/index.ts';
import type { HostToServer, ObjectHeader, ServerToHost, SyncOutcome } from '../../protocol/index.ts';
import { functionsOf, type Now } from '../../trigger/index.ts';
import { Archive } from './archive.ts';
import { BucketTriggers, type BucketTriggersEffect, type Placement } from './bucket-triggers.ts';
import { CAUSES_MAX, DEAD_LETTERS_MAX, LANE_INPUT_BYTES_MAX, SETTLED_WAIT_MS, SWEEP_INTERVAL_MS } from './limits.ts';
import { PersistedObjects } from './persisted-objects.ts';
import type { CoordinatorPorts, DeadLetter, HostLink } from './ports.ts';
import type { RecordChange } from './record-store.ts';
import { restoreCoordinator } from './restore.ts';
import { Session, type SessionEnd, type SessionSpec, type StoredObject } from './session.ts';
import { keys, outputChange, sessionChange } from './session-codec.ts';
import { type LostHost, SessionTable, type SessionTableEffect, type SessionTableEvent } from './session-table.ts';

export interface CoordinatorCounters {
  accepted: number;
  refused: number;
  completed: number;
  failed: number;
  cancelled: number;
  executedAgain: number;
  firings: number;
  outputs: number;
}

interface Waiter {
  readonly promise: Promise<SyncOutcome>;
  readonly resolve: (outcome: SyncOutcome) => void;
}

export class Coordinator {
  readonly ports: CoordinatorPorts;
  readonly table = new SessionTable();
  readonly triggers = new BucketTriggers();
  readonly archive: Archive;
  readonly persisted: PersistedObjects;
  readonly counters: CoordinatorCounters = {
    accepted: 0,
    refused: 0,
    completed: 0,
    failed: 0,
    cancelled: 0,
    executedAgain: 0,
    firings: 0,
    outputs: 0,
  };
  readonly #bootEpoch: number;
  #sessionCount = 0;
  /** Who waits for the account of a session that is over. */
  readonly #accountWaiters = new Map<string, (() => void)[]>();
  readonly #links = new Map<string, Map<string, HostLink>>();
  readonly #linkWaiters = new Map<string, { resolve: (link: HostLink) => void; reject: (error: unknown) => void }[]>();
  readonly #waiters = new Map<string, Waiter>();
  /** Who follows a live session's outputs: called at each output and at the end. */
  readonly #followers = new Map<string, Set<() => void>>();
  /** The last write of a session that is not durable yet. */
  readonly #writes = new Map<string, Promise<void>>();
  readonly #idempotency = new Map<string, Session>();
  readonly #triggerTimers = new Map<Placement, CancelTimer>();
  readonly #persistedNames = new Map<string, Set<string>>();
  readonly #deadLetters: DeadLetter[] = [];
  #tableTimer: { readonly atMs: number; readonly cancel: CancelTimer } | undefined;
  #sweepTimer: CancelTimer | undefined;
  #accepting = true;
  #closed = false;

  /** @param bootEpoch greater than at every earlier start with the same store. */
  constructor(ports: CoordinatorPorts, bootEpoch: number) {
    this.ports = ports;
    this.#bootEpoch = bootEpoch;
    this.archive = new Archive(ports.records);
    this.persisted = new PersistedObjects(ports.records);
  }

  get bootEpoch(): number {
    return this.#bootEpoch;
  }

  get accepting(): boolean {
    return this.#accepting;
  }

  /** Takes up what an earlier server left: once, before anything else. */
  async restore(): Promise<void> {
    await restoreCoordinator(this);
    this.#sweepLater();
  }

  // ── Sessions ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** A session that nobody knows yet. */
  create(spec: SessionSpec, delayed = false): Session {
    const { clock, random } = this.ports;
    const id = sessionIdOf(spec.durable ? 'd' : 'e', this.#bootEpoch, this.#sessionCount++, random.uint32());
    return new Session(id, spec, clock.epochMs(), delayed);
  }

  /** From here on it is live. */
  accept(session: Session, startAtMs?: MonotonicMs): void {
    this.counters.accepted++;
    const scope = session.spec.idempotency?.scope;
    if (scope !== undefined) this.#idempotency.set(scope, session);
    this.handle(
      startAtMs === undefined
        ? { type: 'session-accepted', session }
        : { type: 'session-accepted', session, startAtMs },
    );
  }

  /** The outcome when there is one, else a promise of it. */
  outcomeOf(session: Session): Promise<SyncOutcome> {
    const waiter = this.#waiters.get(session.id);
    if (waiter !== undefined) return waiter.promise;
    if (session.outcome !== undefined) {
      const { outcome } = session;
      const written = this.#writes.get(session.id);
      return written === undefined ? Promise.resolve(outcome) : afterWrite(written, outcome);
    }
    let resolve: (outcome: SyncOutcome) => void = () => {};
    const promise = new Promise<SyncOutcome>((done) => {
      resolve = done;
    });
    this.#waiters.set(session.id, { promise, resolve });
    return promise;
  }

  /** Calls at each output and at the end of a live session. */
  follow(id: string, callback: () => void): () => void {
    const callbacks = this.#followers.get(id) ?? new Set();
    this.#followers.set(id, callbacks.add(callback));
    return () => {
      callbacks.delete(callback);
      if (callbacks.size === 0 && this.#followers.get(id) === callbacks) this.#followers.delete(id);
    };
  }

  /** The session that a key started within the window, live or in the ring. */
  startedWith(scope: string): Session | undefined {
    return this.#idempotency.get(scope);
  }

  /** Writes and remembers that this session waits for it, until it is durable. */
  write(session: Session, changes: readonly RecordChange[]): Promise<void> {
    const done = this.ports.records.write(changes);
    this.#writes.set(session.id, done);
    const forget = () => {
      if (this.#writes.get(session.id) === done) this.#writes.delete(session.id);
    };
    done.then(forget, (error) => {
      forget();
      this.ports.report(`session ${session.id} could not be written`, error);
    });
    return done;
  }

  /** Until the last write of this session is durable. */
  written(id: string): Promise<void> {
    return this.#writes.get(id) ?? Promise.resolve();
  }

  handle(event: SessionTableEvent): void {
    const { clock } = this.ports;
    const effects = this.table.handle(event, clock.monotonicMs(), clock.epochMs());
    for (const effect of effects) this.#do(effect);
    this.#armTableTimer();
  }

  #do(effect: SessionTableEffect): void {
    switch (effect.type) {
      case 'need-host':
        this.ports.hosts.need(effect.app, effect.version);
        return;
      case 'send-start':
        this.#sendStart(effect.session);
        return;
      case 'send-cancel': {
        const { id, spec } = effect.session;
        this.linkOf(spec.app, spec.version)?.send({ type: 'session-cancel', session: id, error: effect.error });
        return;
      }
      case 'output': {
        this.counters.outputs++;
        const { session, output } = effect;
        if (session.spec.durable) void this.write(session, [outputChange(session.id, output)]).catch(() => {});
        this.#tellFollowers(session.id);
        return;
      }
      case 'outcome': {
        const { session, outcome } = effect;
        if (!session.spec.durable) this.#settle(session, outcome);
        // The end of the same event is written first, so that what is answered is on disk (CO1).
        else queueMicrotask(() => this.#settleDurable(session, outcome));
        return;
      }
      case 'ended':
        this.linkOf(effect.session.spec.app, effect.session.spec.version)?.lanes.done(effect.session.id);
        this.#finish(effect.session);
        return;
    }
  }

  /**
   * A small synchronous session goes straight to an instance that has nothing else from here, or has time for it soon. If
   * that one is not free after all, or older work waits in its host, it hands the session to the host.
   */
  #giveToLane(link: HostLink, session: Session, message: SessionStart, blobs: readonly Uint8Array[]): boolean {
    const { spec } = session;
    const entry = spec.entries[0];
    if (spec.durable || spec.detached || spec.entries.length !== 1 || entry === undefined) return false;
    if (session.outside !== undefined || session.inputBytes > LANE_INPUT_BYTES_MAX) return false;
    const giveToHost = () => {
      if (session.phase === 'running' && session.run === message.run) link.send(message, blobs);
    };
    return link.lanes.give(entry.function, message, blobs, giveToHost);
  }

  #settle(session: Session, outcome: SyncOutcome): void {
    const waiter = this.#waiters.get(session.id);
    if (waiter === undefined) return;
    this.#waiters.delete(session.id);
    waiter.resolve(outcome);
  }

  #settleDurable(session: Session, outcome: SyncOutcome): void {
    const written = this.#writes.get(session.id);
    if (written === undefined) this.#settle(session, outcome);
    else void afterWrite(written, outcome).then((settled) => this.#settle(session, settled));
  }

  #sendStart(session: Session): void {
    const { spec } = session;
    const blobs: Uint8Array[] = [];
    const entries = spec.entries.map((entry) => ({
      function: entry.function,
      inputs: entry.inputs.map(({ header, bytes }) => {
        blobs.push(bytes);
        return header;
      }),
    }));
    const message: { -readonly [K in keyof SessionStart]: SessionStart[K] } = {
      type: 'session-start',
      session: session.id,
      run: session.run,
      entries,
      priority: spec.priority,
      durable: spec.durable,
    };
    if (session.deadlineMs !== undefined) {
      message.deadlineInMs = Math.max(0, session.deadlineMs - this.ports.clock.monotonicMs());
    }
    if (spec.open !== undefined) message.open = spec.open;
    if (session.outside !== undefined) {
      const objects: ObjectHeader[] = [];
      for (const event of session.outside) {
        if (event.type !== 'object') continue;
        objects.push(event.object.header);
        blobs.push(event.object.bytes);
      }
      message.objects = objects;
    }
    const link = this.linkOf(spec.app, spec.version);
    if (link === undefined || !this.#giveToLane(link, session, message, blobs)) link?.send(message, blobs);
    if (session.run > 1) this.counters.executedAgain++;
    for (const event of session.outside ?? []) {
      if (event.type === 'object' || link === undefined) continue;
      const { type, ...rest } = event;
      const request = type === 'close' ? { type: 'session-close' as const } : { type: 'session-join' as const };
      link.request({ ...request, ...rest, session: session.id } as Parameters<HostLink['request']>[0]).catch(() => {});
    }
  }

  /** Who looks at sessions that are over wants to see them ended: waits for the host's account, SETTLED_WAIT_MS at most. */
  async accounted(sessions: Iterable<Session>): Promise<void> {
    const missing: Session[] = [];
    for (const session of sessions) if (session.settled && session.phase === 'running') missing.push(session);
    if (missing.length === 0) return;
    for (const link of new Set(missing.map(({ spec }) => this.linkOf(spec.app, spec.version)))) {
      link?.send({ type: 'flush' });
    }
    await new Promise<void>((resolve) => {
      let left = missing.length;
      const atMs = (this.ports.clock.monotonicMs() + SETTLED_WAIT_MS) as MonotonicMs;
      const cancel = this.ports.timers.set(atMs, resolve);
      const arrived = () => {
        if (--left > 0) return;
        cancel();
        resolve();
      };
      for (const { id } of missing) {
        const waiters = this.#accountWaiters.get(id);
        if (waiters === undefined) this.#accountWaiters.set(id, [arrived]);
        else waiters.push(arrived);
      }
    });
  }

  #finish(session: Session): void {
    const waiters = this.#accountWaiters.get(session.id);
    if (waiters !== undefined) {
      this.#accountWaiters.delete(session.id);
      for (const arrived of waiters) queueMicrotask(arrived);
    }
    const { id, spec, end } = session;
    if (end === undefined) return;
    this.counters[end.state]++;
    this.triggers.sessionEnded(spec.app, id);
    this.#persistedNames.delete(id);
    this.#bury(session, end);
    if (spec.durable) {
      const changes = this.archive.changesOf(session);
      if (session.marked) {
        for (const key of this.ports.records.keys(`k/${spec.app}/${id}/`)) changes.push({ delete: key });
      }
      for (let n = 0; n < session.outsideCount; n++) changes.push({ delete: keys.outside(id, n) });
      for (const key of spec.consumes ?? []) changes.push({ delete: key });
      void this.write(session, changes)
        .then(
          () => this.archive.arrived(session),
          () => {},
        )
        .then(() => this.#forgetKey(session));
    } else {
      if (spec.consumes !== undefined && spec.consumes.length > 0) {
        this.#supervise(this.ports.records.write(spec.consumes.map((key) => ({ delete: key }))), 'consumed objects');
      }
      for (const old of this.archive.keep(session)) this.#forgetKey(old);
    }
    this.#tellFollowers(id);
    this.releaseIfUnused(spec.app, spec.version);
  }

  #forgetKey(session: Session): void {
    const scope = session.spec.idempotency?.scope;
    if (scope !== undefined && this.#idempotency.get(scope)?.id === session.id) this.#idempotency.delete(scope);
  }

  #bury(session: Session, end: SessionEnd): void {
    const { app, version, entries, detached } = session.spec;
    if (end.failures === undefined && end.state !== 'failed') return;
    const at = new Date(session.endedAtMs ?? 0).toISOString();
    const base = { session: session.id, app, version, at };
    for (const failure of end.failures ?? []) this.#deadLetters.push({ ...base, ...failure });
    if (end.state === 'failed' && detached && end.error !== undefined) {
      this.#deadLetters.push({ ...base, function: entries[0]?.function ?? '', invocation: '', error: end.error });
    }
    if (this.#deadLetters.length > DEAD_LETTERS_MAX) {
      this.#deadLetters.splice(0, this.#deadLetters.length - DEAD_LETTERS_MAX);
    }
  }

  get deadLetters(): readonly DeadLetter[] {
    return this.#deadLetters;
  }

  #tellFollowers(id: string): void {
    const callbacks = this.#followers.get(id);
    if (callbacks !== undefined) for (const callback of [...callbacks]) callback();
  }

  #armTableTimer(): void {
    const atMs = this.table.nextTimerMs();
    if (atMs === this.#tableTimer?.atMs) return;
    this.#tableTimer?.cancel();
    this.#tableTimer = undefined;
    if (atMs === undefined || this.#closed) return;
    const cancel = this.ports.timers.set(atMs, () => {
      this.#tableTimer = undefined;
      this.handle({ type: 'timer-fired' });
    });
    this.#tableTimer = { atMs, cancel };
  }

  // ── Hosts ─────────────────────────────────────────────────────────────────────────────────────────────────────

  linkOf(app: string, version: string): HostLink | undefined {
    return this.#links.get(app)?.get(version);
  }

  /** The link of a version, starting its host if need be. */
  link(app: string, version: string): Promise<HostLink> {
    const link = this.linkOf(app, version);
    if (link !== undefined) return Promise.resolve(link);
    return new Promise((resolve, reject) => {
      const key = `${app}/${version}`;
      const waiters = this.#linkWaiters.get(key) ?? [];
      this.#linkWaiters.set(key, waiters);
      waiters.push({ resolve, reject });
      this.ports.hosts.need(app, version);
    });
  }

  hostReady(app: string, version: string, link: HostLink): void {
    if (this.#closed) return;
    let links = this.#links.get(app);
    if (links === undefined) {
      links = new Map();
      this.#links.set(app, links);
    }
    links.set(version, link);
    const key = `${app}/${version}`;
    const waiters = this.#linkWaiters.get(key) ?? [];
    this.#linkWaiters.delete(key);
    for (const waiter of waiters) waiter.resolve(link);
    this.handle({ type: 'host-ready', app, version });
  }

  hostLost(app: string, version: string, lost: LostHost): void {
    if (this.#closed) return;
    this.#links.get(app)?.delete(version);
    const key = `${app}/${version}`;
    const waiters = this.#linkWaiters.get(key) ?? [];
    this.#linkWaiters.delete(key);
    for (const waiter of waiters) {
      const { message, details } = lost.error;
      waiter.reject(new PlatformError('E_NODE_LOST', message, details === undefined ? {} : { details }));
    }
    this.handle({ type: 'host-lost', app, version, lost });
  }

  hostMessage(app: string, version: string, message: HostToServer, blobs: readonly Uint8Array[]): void {
    if (this.#closed) return;
    switch (message.type) {
      case 'session-ended': {
        const { session, run, result, ...rest } = message;
        const { type: _type, ...end } = rest;
        const payload =
          result === undefined ? {} : { result: { contentType: result.contentType, bytes: blobs[0] ?? NO_BYTES } };
        this.handle({ type: 'host-ended', session, run, end: { ...end, ...payload } });
        return;
      }
      case 'session-outcome': {
        const { session, run, final, payload } = message;
        const bytes = blobs[0] ?? NO_BYTES;
        this.handle({
          type: 'host-outcome',
          session,
          run,
          final,
          payload: payload === undefined ? undefined : { contentType: payload.contentType, bytes },
        });
        const lanes = this.linkOf(app, version)?.lanes;
        lanes?.learn(session, message.busyMs);
        if (final) lanes?.done(session);
        return;
      }
      case 'session-output': {
        const { session, run, object } = message;
        this.handle({ type: 'host-output', session, run, object, bytes: blobs[0] ?? NO_BYTES });
        return;
      }
      case 'bucket-object': {
        const object = { header: message.object, bytes: owned(blobs[0]) };
        this.#acknowledge(app, version, message, () => {
          const source = this.#senderOf(message.session);
          // What a session gives whose start was durable survives as long as it does.
          return this.take(source, version, object, message.durable || source.spec.durable);
        });
        return;
      }
      case 'bucket-close':
        this.#acknowledge(app, version, message, () => {
          this.#senderOf(message.session);
          this.closeBucketGroup(app, version, message.bucket);
        });
        return;
      case 'object-persist': {
        const object = { header: message.object, bytes: owned(blobs[0]) };
        this.#acknowledge(app, version, message, () => {
          const session = this.#senderOf(message.session);
          const names = this.#persistedNames.get(session.id) ?? new Set();
          const name = `${object.header.bucket}\u0000${object.header.name}`;
          // A second execution must not put an old value over what others persisted meanwhile.
          if (names.has(name)) return undefined;
          this.#persistedNames.set(session.id, names.add(name));
          return this.persisted.put(app, object, this.ports.clock.epochMs());
        });
        return;
      }
      case 'persisted-get': {
        const { requestId, bucket, name } = message;
        const link = this.linkOf(app, version);
        this.persisted.get(app, bucket, name).then(
          ({ payload: { contentType, bytes } }) =>
            link?.send({ type: 'reply', requestId, payload: { contentType, size: bytes.length } }, [bytes]),
          (error) => link?.send({ type: 'reply', requestId, error: errorData(error) }),
        );
        return;
      }
      case 'hello':
      case 'lane-hello':
      case 'ready':
      case 'load-failed':
      case 'logs':
      case 'reply':
        return; // the supervisor's
    }
  }

  #senderOf(id: string): Session {
    const session = this.table.get(id);
    if (session === undefined || session.phase !== 'running') {
      throw new PlatformError('E_CANCELLED', `Session '${id}' does not run any more; its sends are dropped.`);
    }
    return session;
  }

  /** Answers with `object-ack` when the work is done, or with its error. */
  #acknowledge(
    app: string,
    version: string,
    { session, seq }: { readonly session: string; readonly seq: number },
    work: () => Promise<void> | undefined | void,
  ): void {
    const link = this.linkOf(app, version);
    const refuse = (error: unknown) => {
      const data = errorData(error);
      if (data.code === 'E_INTERNAL') this.ports.report(`an object of session ${session} was not kept`, error);
      link?.send({ type: 'object-ack', session, seq, error: data });
    };
    let done: Promise<void> | undefined | void;
    try {
      done = work();
    } catch (error) {
      refuse(error);
      return;
    }
    if (done === undefined) link?.send({ type: 'object-ack', session, seq });
    else done.then(() => link?.send({ type: 'object-ack', session, seq }), refuse);
  }

  // ── Bucket-scoped triggers ────────────────────────────────────────────────────────────────────────────────────

  now(): Now {
    return { monotonicMs: this.ports.clock.monotonicMs(), epochMs: this.ports.clock.epochMs() };
  }

  /**
   * Gives an object to the bucket-scoped triggers of its bucket.
   * @returns a promise when it has to become durable first. @throws the trigger's refusal.
   */
  take(producer: Session, version: string, object: StoredObject, durable: boolean): Promise<void> | undefined {
    const { app } = producer.spec;
    const effects: BucketTriggersEffect[] = [];
    const result = this.triggers.take({ app, version, object, durable }, this.now(), effects);
    if (result.type === 'refused') {
      this.fire(effects);
      const { message, details, code } = result.error;
      throw new PlatformError(code, message, details === undefined ? {} : { details });
    }
    if (result.type === 'duplicate') return this.#writes.get(producer.id);
    const changes: RecordChange[] = [];
    if (durable && producer.spec.durable && result.type === 'taken') {
      const { session, bucket, name } = object.header;
      changes.push({ put: keys.taken(app, session, bucket, name), header: null });
      producer.marked = true;
    }
    const written = this.fire(effects, changes);
    if (written !== undefined) {
      // A repeat by a second execution is acknowledged no earlier than the first.
      this.#writes.set(producer.id, written);
      const forget = () => {
        if (this.#writes.get(producer.id) === written) this.#writes.delete(producer.id);
      };
      written.then(forget, forget);
    }
    return written;
  }

  closeBucketGroup(app: string, version: string, bucket: string): boolean {
    const effects: BucketTriggersEffect[] = [];
    const found = this.triggers.close(app, bucket, version, this.now(), effects);
    this.#supervise(this.fire(effects), 'a firing');
    return found;
  }

  /** The app has another current version or other triggers. */
  configure(app: string): void {
    const current = this.ports.apps.current(app);
    if (current === undefined) return;
    const effects: BucketTriggersEffect[] = [];
    this.triggers.configure(app, current.version, current.manifest.buckets, this.now(), effects);
    this.#supervise(this.fire(effects), 'a moved trigger');
    for (const version of new Set(effects.map(({ placement }) => placement.version))) {
      this.releaseIfUnused(app, version);
    }
  }

  removeTrigger(app: string, bucket: string, trigger: string): void {
    const effects: BucketTriggersEffect[] = [];
    this.triggers.remove(app, bucket, trigger, effects);
    this.#supervise(this.fire(effects), 'a removed trigger');
  }

  /** Cancels everything of an app and forgets what it left. Resolves when that is durable. */
  async removeApp(app: string): Promise<void> {
    // Triggers first: a version that falls idle fires what its drained triggers hold.
    const effects: BucketTriggersEffect[] = [];
    this.triggers.removeApp(app, effects);
    this.#supervise(this.fire(effects), 'removed triggers');
    const error: ErrorData = { code: 'E_CANCELLED', message: `App '${app}' was deleted.` };
    for (const session of this.table.sessionsOf(app)) this.handle({ type: 'cancel', session: session.id, error });
    await Promise.all(this.table.sessionsOf(app).map((session) => this.ended(session)));
    this.triggers.removeApp(app, []);
    await Promise.allSettled(this.#writes.values());
    await this.archive.removeApp(app);
    await this.persisted.removeApp(app);
    for (const [scope, session] of this.#idempotency) if (session.spec.app === app) this.#idempotency.delete(scope);
    this.table.forgetApp(app);
  }

  /** Until a live session has ended. */
  ended(session: Session): Promise<void> {
    if (session.phase === 'ended') return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.follow(session.id, () => {
        if (session.phase !== 'ended') return;
        stop();
        resolve();
      });
    });
  }

  /**
   * Does what the triggers decided; `changes` go into the same transaction (CO3).
   * @returns a promise when something had to be written.
   */
  fire(effects: readonly BucketTriggersEffect[], changes: RecordChange[] = []): Promise<void> | undefined {
    const starts: Session[] = [];
    const touched = new Set<Placement>();
    for (const effect of effects) {
      const { placement } = effect;
      const { app, bucket, trigger } = placement;
      switch (effect.type) {
        case 'held':
          if (effect.held.durable) {
            changes.push(heldChange(placement, effect.held));
            touched.add(placement);
          }
          break;
        case 'placed':
          for (const held of effect.objects) if (held.durable) changes.push(heldChange(placement, held));
          break;
        case 'dropped':
          for (const held of effect.objects) {
            if (held.durable) changes.push({ delete: keys.held(app, bucket, trigger, held.seq) });
          }
          touched.add(placement);
          break;
        case 'fire': {
          const session = this.#firingSession(placement, effect.index, effect.objects);
          if (session.spec.durable) {
            for (const held of effect.objects) changes.push({ delete: keys.held(app, bucket, trigger, held.seq) });
            changes.push(sessionChange(session));
          }
          touched.add(placement);
          starts.push(session);
          break;
        }
        case 'set-timer':
          this.#setTriggerTimer(placement, effect.atMs);
          break;
        case 'removed':
          if (hasSnapshot(placement)) changes.push({ delete: keys.snapshot(app, bucket, trigger) });
          break;
      }
    }
    for (const placement of touched) {
      if (changes.length === 0 || !hasSnapshot(placement) || placement.draining) continue;
      const snapshot = this.triggers.snapshotOf(placement, this.now());
      if (snapshot === undefined) continue;
      changes.push({ put: keys.snapshot(placement.app, placement.bucket, placement.trigger), header: snapshot });
    }
    const written = changes.length === 0 ? undefined : this.ports.records.write(changes);
    for (const session of starts) {
      this.counters.firings++;
      if (session.spec.durable && written !== undefined) {
        this.#writes.set(session.id, written);
        const forget = () => {
          if (this.#writes.get(session.id) === written) this.#writes.delete(session.id);
        };
        written.then(forget, forget);
      }
      this.accept(session);
    }
    return written;
  }

  #firingSession(
    placement: Placement,
    index: string,
    objects: readonly { readonly object: StoredObject; readonly durable: boolean; readonly seq: number }[],
  ): Session {
    const { app, version, bucket, trigger, spec, path } = placement;
    const causes = new Set<string>();
    for (const { object } of objects) causes.add(object.header.session);
    const durable = objects.length > 0 && objects.every((held) => held.durable);
    const inputs = objects.map(({ object }) => object);
    const consumes = durable
      ? []
      : objects.filter((held) => held.durable).map((held) => keys.held(app, bucket, trigger, held.seq));
    return this.create({
      app,
      version,
      entries: functionsOf(spec).map((name) => ({ function: name, inputs })),
      durable,
      detached: true,
      priority: 0,
      tags: {},
      causes: [...causes].slice(0, CAUSES_MAX),
      ...(causes.size > CAUSES_MAX ? { causesCount: causes.size } : {}),
      firing: `${path}/${index}`,
      ...(consumes.length > 0 ? { consumes } : {}),
    });
  }

  #setTriggerTimer(placement: Placement, atMs: number | undefined): void {
    this.#triggerTimers.get(placement)?.();
    this.#triggerTimers.delete(placement);
    if (atMs === undefined || this.#closed) return;
    const cancel = this.ports.timers.set(atMs as MonotonicMs, () => {
      this.#triggerTimers.delete(placement);
      const effects: BucketTriggersEffect[] = [];
      this.triggers.timerFired(placement, this.now(), effects);
      this.#supervise(this.fire(effects), 'a firing');
    });
    this.#triggerTimers.set(placement, cancel);
  }

  /** Lets go of a version that is not current and has no session: what drains under it fires its rest. */
  releaseIfUnused(app: string, version: string): void {
    if (this.table.usedBy(app, version) > 0) return;
    if (this.ports.apps.current(app)?.version === version) return;
    const effects: BucketTriggersEffect[] = [];
    this.triggers.versionUnused(app, version, effects);
    this.#supervise(this.fire(effects), 'a drained trigger');
    if (this.table.usedBy(app, version) > 0 || this.triggers.usesVersion(app, version)) return;
    this.ports.hosts.unused(app, version);
  }

  // ── End ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** New sessions are refused with E_SHUTTING_DOWN; timers of triggers stand still. */
  drain(): void {
    this.#accepting = false;
    for (const cancel of this.#triggerTimers.values()) cancel();
    this.#triggerTimers.clear();
  }

  /** Durable sessions stay on disk as they are; whoever waits for another is told E_SHUTTING_DOWN. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.drain();
    this.#closed = true;
    this.#tableTimer?.cancel();
    this.#sweepTimer?.();
    const error: ErrorData = { code: 'E_SHUTTING_DOWN', message: 'The server shut down before the session ended.' };
    for (const waiter of this.#waiters.values()) waiter.resolve({ ok: false, error });
    this.#waiters.clear();
    for (const id of [...this.#followers.keys()]) this.#tellFollowers(id);
    await Promise.allSettled([...this.#writes.values()]);
  }

  get closed(): boolean {
    return this.#closed;
  }

  #sweepLater(): void {
    if (this.#closed) return;
    const atMs = (this.ports.clock.monotonicMs() + SWEEP_INTERVAL_MS) as MonotonicMs;
    this.#sweepTimer = this.ports.timers.set(atMs, () => {
      this.archive
        .sweep(this.ports.clock.epochMs())
        .catch((error) => this.ports.report('old records could not be removed', error))
        .finally(() => this.#sweepLater());
    });
  }

  #supervise(work: Promise<void> | undefined, what: string): void {
    work?.catch((error) => this.ports.report(`${what} could not be written`, error));
  }
}

type SessionStart = Extract<ServerToHost, { type: 'session-start' }>;

const NO_BYTES = new Uint8Array(0);

/** A small part of a large receive buffer would keep all of it in memory. */
function owned(bytes: Uint8Array | undefined): Uint8Array {
  if (bytes === undefined) return NO_BYTES;
  return bytes.byteLength * 2 < bytes.buffer.byteLength ? new Uint8Array(bytes) : bytes;
}

/** Kinds whose state is more than the objects that they hold. */
function hasSnapshot(placement: Placement): boolean {
  return placement.spec.kind === 'redundant' || placement.spec.kind === 'dynamicGroup';
}

function heldChange(placement: Placement, held: { seq: number; object: StoredObject }): RecordChange {
  const { app, version, bucket, trigger, spec, draining } = placement;
  return {
    put: keys.held(app, bucket, trigger, held.seq),
    header: { seq: held.seq, object: held.object.header, version, spec, draining },
    blobs: [held.object.bytes],
  };
}

function afterWrite(written: Promise<void>, outcome: SyncOutcome): Promise<SyncOutcome> {
  return written.then(
    () => outcome,
    (error) => ({
      ok: false as const,
      error: { code: 'E_INTERNAL' as const, message: `The outcome could not be written: ${(error as Error).message}` },
    }),
  );
}

function errorData(error: unknown): ErrorData {
  if (error instanceof PlatformError) {
    const { code, message, details } = error;
    return Object.keys(details).length === 0 ? { code, message } : { code, message, details };
  }
  return { code: 'E_INTERNAL', message: error instanceof Error ? error.message : String(error) };
}

export type { SessionId };
