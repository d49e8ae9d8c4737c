// The coordinator's driver: feeds the session table, and does what it decides.
//
// Owns: links to ready hosts, what is written when a session ends, which key has started which session.
// Does not own: decisions about sessions (SessionTable), bucket-scoped triggers (Firings, with CO3), objects that hosts hand
// in (HostObjects), who waits (SessionWaits), writes that are under way (SessionWrites), dead letters (DeadLetters).
//
// CO1. A promise that something is kept resolves only after its transaction is durable.
// CO2. The start of an ephemeral session, and its end, touch no disk, set no timer and make one promise each.

import { type ErrorData, fromErrorData, type MonotonicMs, PlatformError, sessionIdOf } from '../../base/index.ts';
import type { CancelTimer } from '../../platform/index.ts';
import type { FinalFailure, HostToServer } from '../../protocol/index.ts';
import type { Now } from '../../trigger/index.ts';
import { Archive } from './archive.ts';
import type { BucketTriggers } from './bucket-triggers.ts';
import { DeadLetters } from './dead-letters.ts';
import { Firings } from './firings.ts';
import { HostObjects, owned } from './host-objects.ts';
import { SWEEP_INTERVAL_MS } from './limits.ts';
import { PersistedObjects, type PersistedOptions } from './persisted-objects.ts';
import type { CoordinatorPorts, HostLink } from './ports.ts';
import type { RecordChange } from './record-store.ts';
import { restoreCoordinator } from './restore.ts';
import { type FailedInvocation, laneEnd, Session, type SessionEnd, type SessionSpec } from './session.ts';
import { keys, outputChange } from './session-codec.ts';
import { sendStart } from './session-start.ts';
import { type LostHost, SessionTable, type SessionTableEffect, type SessionTableEvent } from './session-table.ts';
import { SessionWaits } from './session-waits.ts';
import { SessionWrites } from './session-writes.ts';
import { Watchdog } from './watchdog.ts';

const NO_BYTES = new Uint8Array(0);

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

export class Coordinator {
  readonly ports: CoordinatorPorts;
  readonly table: SessionTable;
  readonly archive: Archive;
  readonly persisted: PersistedObjects;
  readonly letters: DeadLetters;
  readonly writes: SessionWrites;
  readonly waits: SessionWaits;
  readonly firings: Firings;
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
  readonly #links = new Map<string, Map<string, HostLink>>();
  readonly #linkWaiters = new Map<string, { resolve: (link: HostLink) => void; reject: (error: unknown) => void }[]>();
  readonly #hostObjects: HostObjects;
  readonly #watchdog: Watchdog;
  readonly #idempotency = new Map<string, Session>();
  #tableTimer: { readonly atMs: number; readonly cancel: CancelTimer } | undefined;
  #sweepTimer: CancelTimer | undefined;
  #accepting = true;
  #closed = false;

  /** @param bootEpoch greater than at every earlier start with the same store. */
  constructor(ports: CoordinatorPorts, bootEpoch: number, persisted?: PersistedOptions) {
    this.ports = ports;
    this.#bootEpoch = bootEpoch;
    this.table = new SessionTable(ports.admission);
    this.archive = new Archive(ports.records);
    this.persisted = new PersistedObjects(ports.records, () => ports.clock.epochMs(), persisted);
    this.letters = new DeadLetters(ports.records);
    this.writes = new SessionWrites(ports);
    this.waits = new SessionWaits(ports, this.writes, (app, version) => this.linkOf(app, version));
    this.firings = new Firings(this, this.writes);
    this.#hostObjects = new HostObjects(this);
    this.#watchdog = new Watchdog(this);
  }

  get triggers(): BucketTriggers {
    return this.firings.triggers;
  }

  get bootEpoch(): number {
    return this.#bootEpoch;
  }

  get accepting(): boolean {
    return this.#accepting;
  }

  now(): Now {
    return { monotonicMs: this.ports.clock.monotonicMs(), epochMs: this.ports.clock.epochMs() };
  }

  /** Takes up what an earlier server left: once, before anything else. */
  async restore(): Promise<void> {
    await restoreCoordinator(this);
    this.#sweepLater();
    this.#watchdog.start();
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
    const { app, entries, priority } = session.spec;
    const entry = this.ports.apps.current(app)?.manifest.functions[entries[0]?.function ?? ''];
    session.rank = priority + (entry?.options?.priority ?? 0);
    const scope = session.spec.idempotency?.scope;
    if (scope !== undefined) this.#idempotency.set(scope, session);
    if (session.spec.letter !== undefined) this.letters.retriedBy(session.spec.letter, session.id);
    this.handle(
      startAtMs === undefined
        ? { type: 'session-accepted', session }
        : { type: 'session-accepted', session, startAtMs },
    );
  }

  /** The session that a key started within the window, live or in the ring. */
  startedWith(scope: string): Session | undefined {
    return this.#idempotency.get(scope);
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
        if (session.spec.durable) void this.writes.write(session, [outputChange(session.id, output)]).catch(() => {});
        this.waits.tellFollowers(session.id);
        return;
      }
      case 'outcome': {
        const { session, outcome } = effect;
        if (!session.spec.durable) this.waits.settle(session, outcome);
        // The end of the same event is written first, so that what is answered is on disk (CO1).
        else queueMicrotask(() => this.waits.settleDurable(session, outcome));
        return;
      }
      case 'parked': {
        const { session, error } = effect;
        this.linkOf(session.spec.app, session.spec.version)?.lanes.done(session.id);
        this.waits.settle(session, session.outcome ?? { ok: false, error });
        this.ports.report(`session ${session.id} of app '${session.spec.app}' is parked`, fromErrorData(error));
        return;
      }
      case 'ended':
        this.linkOf(effect.session.spec.app, effect.session.spec.version)?.lanes.done(effect.session.id);
        this.#finish(effect.session);
        return;
    }
  }

  #sendStart(session: Session): void {
    sendStart(this.linkOf(session.spec.app, session.spec.version), session, this.ports.clock);
    if (session.run > 1) this.counters.executedAgain++;
  }

  #finish(session: Session): void {
    this.waits.accountArrived(session.id);
    const { id, spec, end } = session;
    if (end === undefined) return;
    this.counters[end.state]++;
    const taken = session.marked ? this.triggers.takenOf(spec.app, id) : [];
    this.triggers.sessionEnded(spec.app, id);
    this.#hostObjects.sessionEnded(id);
    const changes = this.#bury(session, end);
    if (spec.durable) {
      changes.push(...this.archive.changesOf(session));
      if (session.marked) {
        // What was written last may not be on disk yet; of an app that is being removed only the disk knows.
        const marks = new Set(taken.map(({ bucket, name }) => keys.taken(spec.app, id, bucket, name)));
        for (const key of this.ports.records.keys(`k/${spec.app}/${id}/`)) marks.add(key);
        for (const key of marks) changes.push({ delete: key });
      }
      for (let n = 0; n < session.outsideCount; n++) changes.push({ delete: keys.outside(id, n) });
      for (const key of spec.consumes ?? []) changes.push({ delete: key });
      const { trace: _written, ...rest } = session.end ?? end;
      session.end = rest;
      const written = this.writes.write(session, changes);
      this.letters.follow(written);
      void written
        .then(
          () => this.archive.arrived(session),
          () => {},
        )
        .then(() => this.#forgetKey(session));
    } else {
      for (const key of spec.consumes ?? []) changes.push({ delete: key });
      if (changes.length > 0) {
        const written = this.ports.records.write(changes);
        this.letters.follow(written);
        this.writes.supervise(written, 'dead letters and consumed objects');
      }
      for (const old of this.archive.keep(session)) this.#forgetKey(old);
    }
    this.waits.tellFollowers(id);
    this.releaseIfUnused(spec.app, spec.version);
  }

  #forgetKey(session: Session): void {
    const scope = session.spec.idempotency?.scope;
    if (scope !== undefined && this.#idempotency.get(scope)?.id === session.id) this.#idempotency.delete(scope);
  }

  /** What failed for good and nobody was told becomes letters; the session itself lets go of it. */
  #bury(session: Session, said: SessionEnd): RecordChange[] {
    if (said.failures === undefined && said.state !== 'failed' && session.spec.letter === undefined) return [];
    const { failures, failuresDropped, ...end } = said;
    const changes = this.letters.changesOf(session, failures ?? [], failuresDropped ?? 0);
    session.end = end;
    return changes;
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
    this.firings.evaluations.hostReady(app, version);
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
    this.firings.evaluations.hostLost(app, version);
  }

  hostMessage(app: string, version: string, message: HostToServer, blobs: readonly Uint8Array[]): void {
    if (this.#closed) return;
    switch (message.type) {
      case 'session-ended': {
        const { session, run, state, error } = message;
        if (state !== 'parked') this.handle({ type: 'host-ended', session, run, end: endOf(message, state, blobs) });
        else
          this.handle({
            type: 'stuck',
            session,
            run,
            error: error ?? { code: 'E_PARKED', message: 'It cannot go on.' },
          });
        return;
      }
      case 'session-outcome': {
        const { session, run, final, payload: header, account } = message;
        const payload =
          header === undefined ? undefined : { contentType: header.contentType, bytes: blobs[0] ?? NO_BYTES };
        const lanes = this.linkOf(app, version)?.lanes;
        lanes?.learn(session, message.busyMs);
        if (account !== undefined) this.handle({ type: 'host-ended', session, run, end: laneEnd(account, payload) });
        else this.handle({ type: 'host-outcome', session, run, final, payload });
        if (final) lanes?.done(session);
        return;
      }
      case 'sessions-begun':
        this.handle({ type: 'host-begun', sessions: message.sessions });
        return;
      case 'session-output': {
        const { session, run, object } = message;
        this.handle({ type: 'host-output', session, run, object, bytes: blobs[0] ?? NO_BYTES });
        return;
      }
      case 'bucket-object':
      case 'bucket-close':
      case 'object-persist':
      case 'persisted-get':
        this.#hostObjects.receive(app, version, message, blobs);
        return;
      case 'traces':
        for (const [n, session] of message.sessions.entries()) {
          for (const old of this.archive.keepTrace(session, owned(blobs[n]))) this.#forgetKey(old);
        }
        return;
      case 'hello':
      case 'lane-hello':
      case 'ready':
      case 'load-failed':
      case 'logs':
      case 'reply':
        return; // the supervisor's
    }
  }

  /** Asserts what must hold between two events. Tests and the simulator call it. */
  checkInvariants(): void {
    this.table.checkInvariants();
    this.triggers.checkInvariants();
  }

  // ── Apps ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The app has another current version or other triggers. */
  configure(app: string): void {
    this.firings.configure(app);
  }

  removeTrigger(app: string, bucket: string, trigger: string): void {
    this.firings.remove(app, bucket, trigger);
  }

  /** Cancels everything of an app and forgets what it left. Resolves when that is durable. */
  async removeApp(app: string): Promise<void> {
    // Triggers first: a version that falls idle fires what its drained triggers hold.
    this.firings.removeApp(app);
    const error: ErrorData = { code: 'E_CANCELLED', message: `App '${app}' was deleted.` };
    for (const session of this.table.sessionsOf(app)) this.handle({ type: 'cancel', session: session.id, error });
    await Promise.all(this.table.sessionsOf(app).map((session) => this.waits.ended(session)));
    this.triggers.removeApp(app, []);
    await this.writes.settled();
    await this.archive.removeApp(app);
    await this.persisted.removeApp(app);
    await this.letters.removeApp(app);
    for (const [scope, session] of this.#idempotency) if (session.spec.app === app) this.#idempotency.delete(scope);
    this.table.forgetApp(app);
  }

  /** Lets go of a version that is not current and has no session: what drains under it fires its rest. */
  releaseIfUnused(app: string, version: string): void {
    if (this.table.usedBy(app, version) > 0) return;
    if (this.ports.apps.current(app)?.version === version) return;
    this.firings.versionUnused(app, version);
    if (this.table.usedBy(app, version) > 0 || this.triggers.usesVersion(app, version)) return;
    this.ports.hosts.unused(app, version);
  }

  // ── End ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** New sessions are refused with E_SHUTTING_DOWN; timers of triggers stand still. */
  drain(): void {
    this.#accepting = false;
    this.firings.stop();
  }

  /** Durable sessions stay on disk as they are; whoever waits for another is told E_SHUTTING_DOWN. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.drain();
    this.#closed = true;
    this.#tableTimer?.cancel();
    this.#sweepTimer?.();
    this.#watchdog.stop();
    const error: ErrorData = { code: 'E_SHUTTING_DOWN', message: 'The server shut down before the session ended.' };
    this.waits.close(error);
    await this.writes.settled();
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
        .then(() => this.persisted.sweep())
        .catch((error) => this.ports.report('old records could not be removed', error))
        .finally(() => this.#sweepLater());
    });
  }
}

function endOf(
  message: HostToServer & { type: 'session-ended' },
  state: SessionEnd['state'],
  blobs: readonly Uint8Array[],
): SessionEnd {
  const { type: _type, session: _session, run: _run, result, failures, trace, ...end } = message;
  let next = 0;
  const blob = () => blobs[next++] ?? NO_BYTES;
  return {
    ...end,
    state,
    ...(result === undefined ? {} : { result: { contentType: result.contentType, bytes: blob() } }),
    ...(failures === undefined ? {} : { failures: failures.map((failure) => withInputs(failure, blob)) }),
    ...(trace === undefined ? {} : { trace: blob() }),
  };
}

function withInputs(failure: FinalFailure, blob: () => Uint8Array): FailedInvocation {
  if (failure.inputs === undefined) return failure;
  return { ...failure, inputObjects: failure.inputs.map((header) => ({ header, bytes: blob() })) };
}
