// The driver of the machines of one app host: turns what happens into events, and carries out their effects.
//
// Owns: the order in which events reach the machines, the tables in force, the end of the process when it drains.
// Decides nothing: sessions (SessionMachine), queue and instances (LocalScheduler), triggers (trigger/).
// Parts with a file of their own: reading rings (HO1), bytes (HO3), spilled objects (HO5), offers, deadlines, questions to
// user code.
//
// HO2. An instance's death is handled after its whole ring was read.

import { assert, type ErrorData, type Hash64, hexOf, Prng, toErrorData } from '../../base/index.ts';
import {
  type AppTables,
  buildTables,
  createSlabMemory,
  Slab,
  type StoredObject,
  sizeOf,
  type TriggersByBucket,
} from '../../bucket/index.ts';
import type { HostBoot, HostStats, HostToServer, LogEntry, Manifest, PayloadHeader } from '../../protocol/index.ts';
import {
  findInvocation,
  type Invocation,
  isKnown,
  LocalScheduler,
  liveInvocationsOf,
  type SchedulerEffect,
  type Session,
  type SessionEffect,
  type SessionEvent,
  SessionMachine,
  sessionAlone,
} from '../../scheduler/local/index.ts';
import {
  type EndedRecord,
  type EventRecord,
  type InstanceToHost,
  type LaneRecord,
  type Speaker,
  withUserStack,
} from '../shared/index.ts';
import { Deadlines } from './deadlines.ts';
import { Evaluations } from './evaluations.ts';
import { HostCounts } from './host-stats.ts';
import { HOST_OWNER, Instances, type RunningInstance, sameAttempt } from './instances.ts';
import type { LentObjects } from './lent-objects.ts';
import {
  CANCELLED_EARLY_MAX,
  CLOCK_SET_MS_MIN,
  FAILURE_LOG_CHARS_MAX,
  HOST_SLICE_MS,
  LOGS_PER_MESSAGE_MAX,
} from './limits.ts';
import { Offers } from './offers.ts';
import type { HostPorts } from './ports.ts';
import { Questions } from './questions.ts';
import { Rings } from './rings.ts';
import { isWhole, SessionBytes } from './session-bytes.ts';
import { endMessage, failuresOf, objectMessage, type SentEffect } from './session-messages.ts';
import { Spiller } from './spiller.ts';
import { ToldEnds, toldEndMessage } from './told-ends.ts';
import { EndedSessions, type TraceNames, traceText } from './trace.ts';

type HostLog = Omit<LogEntry, 'app' | 'version'>;

const OVERTAKEN: ErrorData = { code: 'E_FENCED', message: 'this attempt was overtaken: what it still does is dropped' };

export class Driver {
  readonly boot: HostBoot;
  readonly ports: HostPorts;
  readonly sessions: SessionMachine;
  readonly scheduler: LocalScheduler;
  readonly instances: Instances;
  readonly bytes: SessionBytes;
  readonly spiller: Spiller;
  readonly rings: Rings;
  readonly questions: Questions;
  readonly evaluations: Evaluations;
  readonly deadlines: Deadlines;
  readonly ended = new EndedSessions();
  readonly toldEnds = new ToldEnds();
  readonly #manifest: Manifest;
  readonly #slab: Slab;
  readonly #offers: Offers;
  readonly #counts: HostCounts;
  #tables: AppTables;
  #triggers: TriggersByBucket = {};
  #logs: HostLog[] = [];
  #draining = false;
  readonly #onGone: (error: ErrorData) => void;
  #drainedAtMs = 0;
  /** Number of the session whose end is being read and was told to the server by its instance. */
  #told: number | undefined;
  #epochOffsetMs = 0;
  /** On offer as soon as their inputs are back in memory; how to give that up. */
  readonly #loading = new Map<Invocation, () => void>();
  /** Its inputs were brought back although there was no room for them. */
  #overBudget: Invocation | undefined;
  /** Ends of sessions that wait for the disk. */
  #endsUnderWay = 0;
  readonly #lent: LentObjects;
  readonly #cancelledEarly = new Map<string, ErrorData>();
  /** Their first attempt has begun, and the server does not know it. */
  #begun: Session[] = [];
  /** Sessions that could not go on when the watchdog looked last. */
  #suspects = new Set<Session>();

  /**
   * @param lent objects that handlers have asked for.
   * @param onMessage gets what an instance says otherwise than through its ring.
   */
  constructor(
    boot: HostBoot,
    manifest: Manifest,
    ports: HostPorts,
    lent: LentObjects,
    onMessage: (running: RunningInstance, message: InstanceToHost) => void,
    onGone: (error: ErrorData) => void,
  ) {
    this.#onGone = onGone;
    this.boot = boot;
    this.ports = ports;
    this.#manifest = manifest;
    this.#tables = buildTables(manifest);
    const { objectBytesMax, objectOverBytesMax, spillBytesMax } = boot.limits;
    this.#slab = new Slab(createSlabMemory(objectBytesMax, objectOverBytesMax), HOST_OWNER);
    this.#counts = new HostCounts(this.#tables.functions.length);
    const random = new Prng(ports.seed);
    this.sessions = new SessionMachine({ random, sameContent: (a, b) => this.bytes.sameContent(a, b) });
    const pools = Array.from(new Set(this.#tables.functions.map((row) => row.pool)));
    this.scheduler = new LocalScheduler({ instancesMax: boot.limits.instancesMax, pools }, random);
    this.instances = new Instances(boot, manifest, this.#tables, this.#slab, ports, {
      onMessage,
      onLine: (running, stream, line) => this.#logLine(running, stream, line),
      onExit: (running, error) => this.#instanceExited(running, withUserStack(error, boot.folder)),
    });
    this.#lent = lent;
    this.spiller = new Spiller(this.#slab, spillBytesMax, {
      monotonicMs: ports.monotonicMs,
      afterTurn: ports.afterTurn,
      openFile: ports.openSpillFile,
      markUses: (used, queued) => this.#markUses(used, queued),
      isOverBudgetInUse: () => this.#isOverBudgetInUse(),
      report: (message) => this.#report(message),
      onTimer: () => this.deadlines.arm(),
    });
    this.bytes = new SessionBytes(this.#slab, boot.limits.inlineBytesMax, this.instances, this.ended, this.spiller);
    this.rings = new Rings(this.instances, {
      isUnheardOf: (record) => this.#isUnheardOf(record),
      now: () => this.now(),
      onRecord: (running, record) => this.#heard(running, record),
      hasMore: () => this.spiller.hasNews,
      onRung: () => {
        this.drain(true);
        this.sleep();
        this.deadlines.arm();
      },
    });
    this.#offers = new Offers(this.instances, this.#slab, {
      backlogOf: (pool) => this.scheduler.backlogOf(pool),
      onRefused: (invocation) =>
        this.schedule(this.scheduler.handle({ type: 'offer-refused', invocation }, this.now())),
      onFailed: (invocation, error) => this.#offerFailed(invocation, error),
      onWoken: (anybody) => {
        if (anybody) this.rings.expectsNews = true;
        this.deadlines.arm();
      },
    });
    this.questions = new Questions({
      instances: () => this.instances.all(),
      post: (slot, message) => this.instances.post(slot, message),
      startInstance: (why) => this.prewarm(this.entryPool, why),
    });
    this.evaluations = new Evaluations(boot.folder, this.questions, this.bytes, () => this.now());
    this.deadlines = new Deadlines({
      clock: ports,
      sessions: this.sessions,
      scheduler: this.scheduler,
      instances: this.instances,
      rings: this.rings,
      questions: this.questions,
      nextOtherMs: () => Math.min(this.spiller.nextTimerMs, this.ended.tellAtMs),
      onTimePassed: () => {
        this.drain(true);
        if (this.now() >= this.spiller.nextTimerMs) this.spiller.look();
        if (this.now() >= this.ended.tellAtMs) this.#tellTraces(false);
        this.apply({ type: 'time-passed' });
        this.schedule(this.scheduler.handle({ type: 'time-passed' }, this.now()));
      },
      onWatch: () => this.#watch(),
      onTimeout: (invocation, error) => this.apply({ type: 'attempt-lost', invocation, why: 'timeout', error }),
    });
  }

  get tables(): AppTables {
    return this.#tables;
  }

  /** Pool of the entry's function. */
  get entryPool(): string {
    return this.#tables.functionByName.get(this.#manifest.entry)?.pool ?? this.#tables.functions[0]?.pool ?? '';
  }

  now(): number {
    return this.ports.monotonicMs();
  }

  clock(): { monotonicMs: number; epochMs: number } {
    return { monotonicMs: this.ports.monotonicMs(), epochMs: this.ports.epochMs() };
  }

  /** Epoch minus monotonic, ms. The same from call to call unless the machine's clock was set. */
  epochOffsetMs(): number {
    const offsetMs = this.ports.epochMs() - this.now();
    if (Math.abs(offsetMs - this.#epochOffsetMs) > CLOCK_SET_MS_MIN) this.#epochOffsetMs = offsetMs;
    return this.#epochOffsetMs;
  }

  // ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────

  apply(event: SessionEvent): void {
    this.carryOut(this.sessions.handle(event, this.clock()));
  }

  /** Whether this execution of the session has begun already, or is over. */
  isKnownRun(session: string, run: number): boolean {
    const known = this.#knownSession(session);
    return known === undefined ? this.toldEnds.find(session, run) !== undefined : known.run === run;
  }

  /** It lives, or somebody still reads what it left, or its record is kept. */
  #knownSession(session: string): Session | undefined {
    return this.sessions.session(session) ?? this.bytes.unfreed(session) ?? this.ended.get(session);
  }

  /** The server asks for an execution that is known: if it is over and an instance said so, the server may not have heard. */
  tellAgain(session: string, run: number): void {
    const end = this.toldEnds.find(session, run);
    if (end === undefined) return;
    const bytes = end.result === undefined ? undefined : this.bytes.bytesOf(end.result);
    this.ports.send(toldEndMessage(end, bytes), bytes === undefined ? [] : [bytes]);
  }

  cancel(session: string, error: ErrorData): void {
    // An instance may have told of it only now, or not yet (#laneSession). One that is known is stopped at once: reading
    // first what a session without end has told would let it go on for as long.
    if (this.sessions.session(session) === undefined) this.drain(true);
    if (this.#knownSession(session) === undefined) {
      this.#cancelledEarly.set(session, error);
      for (const [oldest] of this.#cancelledEarly) {
        if (this.#cancelledEarly.size <= CANCELLED_EARLY_MAX) break;
        this.#cancelledEarly.delete(oldest);
      }
    }
    this.apply({ type: 'session-cancelled', session, error });
  }

  /** It has begun: somebody may have cancelled it before. */
  cancelIfAsked(session: string): void {
    const error = this.#cancelledEarly.get(session);
    if (error === undefined) return;
    this.#cancelledEarly.delete(session);
    this.apply({ type: 'session-cancelled', session, error });
  }

  /** @returns whether one is started: not when there are as many as there may be. */
  prewarm(pool: string, why: string): boolean {
    const effects = this.scheduler.prewarm(pool, why, this.now());
    this.schedule(effects);
    return effects.some(({ type }) => type === 'start-instance');
  }

  setTriggers(bucket: string, triggers: TriggersByBucket[string]): void {
    this.#triggers = { ...this.#triggers, [bucket]: triggers };
    const version = this.#tables.version + 1;
    this.#tables = buildTables(this.#manifest, this.#triggers, version);
    for (const running of this.instances.all()) {
      this.instances.post(running.slot, { type: 'triggers', triggers: this.#triggers, version });
    }
  }

  /** Sleeps until an instance rings. */
  sleep(): void {
    const sliceEndsMs = this.now() + HOST_SLICE_MS;
    while (!this.rings.sleep()) {
      if (this.now() >= sliceEndsMs) {
        // (HO4)
        this.ports.afterTurn(() => {
          this.drain(true);
          this.sleep();
          this.deadlines.arm();
        });
        return;
      }
      this.drain(true);
    }
  }

  /** Reads a slice of what was told by now, unless that was done a moment ago. */
  drainUnlessJustDone(): void {
    if (this.now() - this.#drainedAtMs >= HOST_SLICE_MS && this.rings.anythingTold()) this.drain(true);
  }

  /** Reads everything that was told by now. @param slice no longer than HOST_SLICE_MS (HO4). */
  drain(slice = false): void {
    this.rings.readAll(slice);
    this.#drainedAtMs = this.now();
    for (const pool of this.instances.pools.values()) {
      const offers = pool.tickets.readyCount;
      this.schedule(this.scheduler.handle({ type: 'demand', pool: pool.name, offers }, this.now()));
      pool.tickets.backlog = this.scheduler.backlogOf(pool.name);
    }
    this.spiller.lookIfShort();
    this.#tellBegun();
    this.#flushLogs();
  }

  #isUnheardOf(record: EventRecord): boolean {
    const session = this.sessions.sessionByNo(record.sessionNo);
    // Of a session that is over nobody will hear more.
    if (session === undefined) return !this.ended.hasNumber(record.sessionNo);
    return session.state === 'running' && !isKnown(session, record.id);
  }

  #heard(running: RunningInstance, record: EventRecord): void {
    const { slot } = running;
    switch (record.type) {
      case 'started': {
        this.instances.attemptBegun(running, record, record.atMs);
        this.#counts.attemptStarted(record.start);
        this.apply({ ...record, type: 'attempt-started', slot, instance: running.instance.id });
        const session = this.sessions.sessionByNo(record.sessionNo);
        const invocation = session === undefined ? undefined : findInvocation(session, record.id);
        if (session?.attempts === 1) this.#begun.push(session);
        const counts = invocation !== undefined && invocation.fence === record.fence && invocation.place === 'running';
        this.schedule(
          this.scheduler.handle({ type: 'claimed', invocation: counts ? invocation : undefined, slot }, this.now()),
        );
        if (!counts) this.deadlines.abort(slot, record, OVERTAKEN);
        else if (invocation.firing !== undefined) this.#counts.handedOn(invocation, record.atMs);
        return;
      }
      case 'sent':
        this.bytes.added(record.object, this.sessions.sessionByNo(record.sessionNo));
        this.apply({ ...record, type: 'object-sent', slot });
        return;
      case 'ended': {
        this.#told = record.told ? record.sessionNo : undefined;
        const actual = this.instances.attemptOver(running, record);
        if (actual !== undefined) this.#offers.learnBody(running.instance.pool, record.atMs - actual.startedAtMs);
        const error =
          record.error === undefined
            ? undefined
            : withUserStack(JSON.parse(record.error) as ErrorData, this.boot.folder);
        if (record.result !== undefined) {
          this.bytes.added(record.result, this.sessions.sessionByNo(record.sessionNo));
        }
        this.apply({ ...record, type: 'attempt-ended', error });
        this.#told = undefined;
        this.schedule(this.scheduler.handle({ type: 'attempt-over', slot }, this.now()));
        this.#lent.attemptOver(running, record.sessionNo);
        this.questions.instanceFree(this.now());
        this.bytes.noLongerRead(record.sessionNo);
        return;
      }
      case 'note':
        this.#noted(record);
        return;
      case 'lane':
        this.#laneSession(running, record);
        return;
      case 'handed-over':
        this.apply({ ...record, type: 'handed-over' });
        return;
    }
  }

  #noted(record: EventRecord & { type: 'note' }): void {
    const { note } = record;
    const which = { sessionNo: record.sessionNo, id: record.id, fence: record.fence };
    if (note.kind === 'close') this.apply({ type: 'group-closed', bucket: note.bucket, ...which });
    else if ('namesAt' in note) {
      const names = JSON.parse(Buffer.from(this.#slab.view(note.namesAt)).toString()) as readonly string[];
      this.#slab.free(note.namesAt);
      this.apply({ type: 'joined', bucket: note.bucket, ...which, names });
    } else {
      this.apply({
        type: 'joined',
        bucket: note.bucket,
        ...which,
        ...(note.names === undefined ? {} : { names: note.names }),
        ...(note.count === undefined ? {} : { count: note.count }),
      });
    }
  }

  /** A session that the server gave to an instance itself. */
  #laneSession(running: RunningInstance, record: LaneRecord): void {
    const { slot } = running;
    const { ticket, startedAtMs } = record;
    const begun = startedAtMs !== undefined;
    const isKnown = this.isKnownRun(ticket.session, ticket.run);
    if (begun && !isKnown) {
      const end = this.rings.takeToldEnd(running, ticket.sessionNo);
      if (end !== undefined) {
        this.#laneSessionOver(running, record, startedAtMs, end);
        return;
      }
    }
    if (!isKnown) this.#beginLaneSession(slot, record);
    if (begun) {
      const { sessionNo, id, fence } = record;
      this.#heard(running, { type: 'started', sessionNo, id, fence, start: 'warm', atMs: startedAtMs });
    }
  }

  /** It was over by the time it was read, and the server knows: what remains is to count it, and to keep its trace. */
  #laneSessionOver(running: RunningInstance, record: LaneRecord, startedAtMs: number, end: EndedRecord): void {
    const { slot, instance } = running;
    const { ticket } = record;
    const now = this.now();
    this.#cancelledEarly.delete(ticket.session);
    this.#counts.attemptStarted('warm');
    this.schedule(this.scheduler.handle({ type: 'claimed', invocation: undefined, slot }, now));
    this.schedule(this.scheduler.handle({ type: 'attempt-over', slot }, now));
    this.#offers.learnBody(instance.pool, end.atMs - startedAtMs);
    const session = sessionAlone({
      no: ticket.sessionNo,
      id: ticket.session,
      run: ticket.run,
      priority: ticket.priority,
      deadlineMs: ticket.deadlineMs,
      tables: this.#tables,
      entry: ticket.id,
      function: ticket.function,
      inputs: ticket.inputs,
      result: end.result,
      slot,
      instance: instance.id,
      startedAtMs,
      endedAtMs: end.atMs,
    });
    this.toldEnds.add(slot, session);
    this.ended.add(session);
  }

  #beginLaneSession(slot: number, { ticket, startedAtMs }: LaneRecord): void {
    this.apply({
      type: 'session-started',
      id: ticket.session,
      run: ticket.run,
      durable: false,
      priority: ticket.priority,
      deadlineMs: ticket.deadlineMs,
      tables: this.#tables,
      entries: [{ function: ticket.function, inputs: ticket.inputs }],
      objects: [],
      open: undefined,
      lane: { no: ticket.sessionNo, slot, queue: startedAtMs === undefined },
    });
    this.cancelIfAsked(ticket.session);
  }

  /** An instance died between claiming it and telling that it began it, whoever had offered it. */
  #claimLost(sessionNo: number, id: Hash64): void {
    const session = this.sessions.sessionByNo(sessionNo);
    const invocation = session === undefined ? undefined : findInvocation(session, id);
    if (invocation?.place === 'held') this.apply({ type: 'offer-lost', invocation });
    else if (invocation?.place === 'queued') {
      this.schedule(this.scheduler.handle({ type: 'offer-refused', invocation }, this.now()));
    }
  }

  #instanceExited(running: RunningInstance, error: ErrorData): void {
    // (HO2)
    do this.drain();
    while (running.reader.peek() !== undefined);
    const attempts = this.instances.allAttemptsOver(running);
    const claimed = this.instances.remove(running);
    for (const { block } of claimed) if (block !== undefined) this.#slab.free(block);
    const owner = running.slot + 2;
    const pool = this.instances.pool(running.instance.pool);
    // First: what it had begun, and not yet taken out of its slot, is running until it is lost.
    for (const { sessionNo, hi, lo } of claimed) this.#claimLost(sessionNo, { hi, lo });
    for (const attempt of attempts) {
      const session = this.sessions.sessionByNo(attempt.sessionNo);
      const invocation = session === undefined ? undefined : findInvocation(session, attempt.id);
      if (invocation === undefined || invocation.fence !== attempt.fence) continue;
      this.apply({ type: 'attempt-lost', invocation, why: 'lost', error });
    }
    const missing: Invocation[] = [];
    for (const session of this.sessions.sessions()) {
      for (const invocation of liveInvocationsOf(session)) {
        if (invocation.place !== 'held' || invocation.slot !== running.slot) continue;
        const { tickets } = this.instances.pool(invocation.row.pool);
        if (!tickets.holds(session.no, invocation.id.hi, invocation.id.lo, owner)) missing.push(invocation);
      }
    }
    // Another may have begun one just now: then it has told so before it left the slot (TK3).
    if (missing.length > 0) this.rings.readAll();
    for (const invocation of missing) {
      if (invocation.place === 'held' && invocation.slot === running.slot)
        this.apply({ type: 'offer-lost', invocation });
    }
    this.#lent.instanceGone(running);
    this.bytes.sweep(owner);
    for (const attempt of attempts) this.bytes.noLongerRead(attempt.sessionNo);
    this.bytes.instanceGone(running.slot);
    this.schedule(this.scheduler.handle({ type: 'instance-gone', slot: running.slot, error }, this.now()));
    this.questions.instanceGone(running.slot, error, attempts.length > 0, this.now());
    // It may have been woken for what is on offer, and have died before it woke.
    if (pool.tickets.readyCount > 0) this.#offers.wakeSoon(pool);
    this.#onGone(error);
    this.deadlines.arm();
  }

  /** (WD1) A session that could not go on twice in a row is parked: nothing was under way that would have helped it. */
  #watch(): void {
    this.drain();
    const waiting = this.scheduler.waitingInvocations();
    const stuck = this.sessions.stuck({
      isWaiting: (invocation) => waiting.has(invocation),
      isHeld: ({ slot }) => this.instances.at(slot) !== undefined,
      isRunning: ({ slot, session, id, fence }) => {
        const which = { sessionNo: session.no, id, fence };
        return this.instances.at(slot)?.actual.some((actual) => sameAttempt(actual, which)) === true;
      },
    });
    const suspects = this.#suspects;
    this.#suspects = new Set(stuck.map(({ session }) => session));
    for (const { session, reason } of stuck) {
      if (suspects.has(session)) this.apply({ type: 'session-stuck', session, reason });
    }
  }

  // ── effects ────────────────────────────────────────────────────────────────────────────────────────────────────

  carryOut(effects: readonly SessionEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'enqueue':
          this.schedule(this.scheduler.handle({ type: 'waiting', invocation: effect.invocation }, this.now()));
          break;
        case 'withdraw':
          this.#withdraw(effect.invocation, effect.slot);
          break;
        case 'abort':
          this.deadlines.abort(effect.slot, speakerOf(effect.invocation, effect.fence), effect.error);
          break;
        case 'attempt-failed':
          this.#logFailure(effect);
          break;
        case 'stop-session': {
          const { session, error } = effect;
          const slots = Array.from(this.instances.all(), ({ slot }) => slot);
          if (slots.length > 0) this.bytes.stopping(session.no, slots);
          for (const slot of slots) this.instances.post(slot, { type: 'stop-session', sessionNo: session.no, error });
          break;
        }
        case 'output':
        case 'copy-object':
        case 'persist':
          this.#sendOut(effect);
          break;
        case 'evaluate':
          this.evaluations.askOfSession(effect, (result) => {
            const { session, bucket, trigger, plan } = effect;
            this.apply({ type: 'evaluated', session, bucket, trigger, id: plan.id, result });
          });
          break;
        case 'close-copy':
          this.ports.send({
            type: 'bucket-close',
            session: effect.session.id,
            seq: effect.seq,
            bucket: effect.session.tables.buckets[effect.bucket]?.name ?? '',
          });
          break;
        case 'session-ended':
          this.#sessionEnded(effect);
          break;
        case 'release':
          this.bytes.release(effect.session);
          this.#exitWhenDrained();
          break;
        case 'discard':
          this.bytes.discard(effect.object);
          break;
      }
    }
  }

  schedule(effects: readonly SchedulerEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'offer':
          this.#offer(effect.invocation);
          break;
        case 'start-instance': {
          const { instance } = effect;
          const memoryMb = this.#tables.functions.find((row) => row.pool === instance.pool)?.memoryMb ?? 0;
          this.instances.start(instance, memoryMb, this.#triggers, this.#tables.version);
          break;
        }
        case 'retire':
          this.instances.dismiss(effect.instance.slot);
          break;
        case 'pool-broken':
          this.#failPool(effect.pool, effect.error);
          break;
      }
    }
  }

  /** Its inputs are in memory from here on until nobody runs it any more. */
  #offer(invocation: Invocation): void {
    let isDone = false;
    const giveUp = this.spiller.load(invocation.inputs, false, (error, isOverBudget) => {
      isDone = true;
      this.#loading.delete(invocation);
      if (error !== undefined) {
        this.#offerFailed(invocation, error);
        return;
      }
      if (isOverBudget) this.#overBudget = invocation;
      this.#offers.offer(invocation);
      this.deadlines.arm();
    });
    if (giveUp === undefined) this.#offers.offer(invocation);
    else if (!isDone) this.#loading.set(invocation, giveUp);
  }

  #offerFailed(invocation: Invocation, error: ErrorData): void {
    this.schedule(this.scheduler.handle({ type: 'offer-ended', invocation }, this.now()));
    this.apply({ type: 'offer-failed', invocation, error });
  }

  #isOverBudgetInUse(): boolean {
    const invocation = this.#overBudget;
    if (invocation === undefined) return false;
    const { place } = invocation;
    if (place === 'running' || place === 'held' || this.scheduler.isOnOffer(invocation)) return true;
    this.#overBudget = undefined;
    return false;
  }

  /** What attempts read or may begin to read at any moment, and what invocations that wait will read. */
  #markUses(used: (object: StoredObject) => void, queued: (object: StoredObject) => void): void {
    for (const session of this.sessions.sessions()) {
      if (session.storedObjects === 0) continue;
      for (const invocation of liveInvocationsOf(session)) {
        const { place, inputs } = invocation;
        const mayRun =
          place === 'running' ||
          place === 'held' ||
          (place === 'queued' && this.scheduler.isOnOffer(invocation) && !this.#loading.has(invocation));
        for (const input of inputs) (mayRun ? used : queued)(input);
      }
    }
    // Handlers that really run, overtaken ones too: their inputs, and what they created and may still look at.
    for (const { actual } of this.instances.all()) {
      for (const { sessionNo, id } of actual) {
        const session = this.sessions.sessionByNo(sessionNo);
        const invocation = session === undefined ? undefined : findInvocation(session, id);
        for (const input of invocation?.inputs ?? []) used(input);
        for (const made of invocation?.out ?? []) if (made.isSeen === true) used(made);
      }
    }
    for (const session of this.bytes.lingering) for (const object of session.objects) used(object);
    for (const object of this.#lent.objects()) used(object);
  }

  /** @param slot of the instance that holds it, -1 if it was queued. */
  #withdraw(invocation: Invocation, slot: number): void {
    this.#loading.get(invocation)?.();
    this.#loading.delete(invocation);
    // An instance may have put what it holds into a slot; of what waits here the scheduler knows.
    if (slot >= 0 || this.scheduler.isOnOffer(invocation)) this.#offers.withdraw(invocation);
    if (slot >= 0) {
      this.deadlines.abort(slot, speakerOf(invocation, invocation.fence), OVERTAKEN);
    } else {
      this.schedule(this.scheduler.handle({ type: 'withdrawn', invocation }, this.now()));
    }
  }

  #failPool(pool: string, error: ErrorData): void {
    for (const session of this.sessions.sessions()) {
      for (const invocation of liveInvocationsOf(session)) {
        if (invocation.row.pool === pool && invocation.place === 'queued') {
          this.#withdraw(invocation, -1);
          this.apply({ type: 'offer-failed', invocation, error });
        }
      }
    }
  }

  #sendOut(effect: SentEffect): void {
    const { session, object } = effect;
    const bytes = this.bytes.bytesOf(object);
    assert(bytes !== undefined, 'an object is in memory when it has just come');
    const message = objectMessage(effect, bytes.length);
    this.ports.send(message, [bytes], this.bytes.holding(session, object));
  }

  #sessionEnded(effect: SessionEffect & { type: 'session-ended' }): void {
    const { session, error } = effect;
    if (session.no === this.#told && effect.state === 'completed') {
      this.toldEnds.add(session.entries[0]?.history.at(-1)?.slot ?? 0, session);
      return;
    }
    const sent: StoredObject[] = [];
    const result = error === undefined ? session.result : undefined;
    let header: PayloadHeader | undefined;
    if (result !== undefined) {
      sent.push(result);
      header = { contentType: result.contentType, size: sizeOf(result) };
    }
    const failures = failuresOf(session, this.traceNames(), (input) => sent.push(input));
    const done = this.bytes.holdingAll(session, sent);
    const blobs = sent.map((object) => this.bytes.bytesOf(object));
    const message = endMessage(effect, header, failures);
    if (isWhole(blobs)) this.ports.send(...this.#withTrace(session, message, blobs), done);
    else void this.#endWithSpilled(effect, message, sent, done);
  }

  /** The session's end names objects that are on disk. */
  async #endWithSpilled(
    effect: SessionEffect & { type: 'session-ended' },
    message: ReturnType<typeof endMessage>,
    sent: readonly StoredObject[],
    done: (() => void) | undefined,
  ): Promise<void> {
    this.#endsUnderWay++;
    try {
      const blobs: Uint8Array[] = [];
      for (const object of sent) blobs.push(await this.bytes.copyOf(object));
      this.ports.send(...this.#withTrace(effect.session, message, blobs));
    } catch (thrown) {
      const error = effect.error ?? toErrorData(thrown);
      const failures = message.failures?.map(({ inputs: _, ...rest }) => rest) ?? [];
      this.ports.send(endMessage({ ...effect, state: 'failed', error }, undefined, failures));
    } finally {
      this.#endsUnderWay--;
      done?.();
      this.#exitWhenDrained();
    }
  }

  /** A session that others may ask for later leaves its trace; it costs less than the write that its end waits for. */
  #withTrace<M extends HostToServer & { type: 'session-ended' }>(
    session: Session,
    message: M,
    blobs: readonly Uint8Array[],
  ): [message: M, blobs: readonly Uint8Array[]] {
    if (!session.durable) return [message, blobs];
    const trace = Buffer.from(traceText(session, this.traceNames()));
    return [{ ...message, trace: true }, [...blobs, trace]];
  }

  #tellTraces(all: boolean): void {
    const sessions = this.ended.takeUntold(all);
    if (sessions.length === 0) return;
    const names = this.traceNames();
    this.ports.send(
      { type: 'traces', sessions: sessions.map(({ id }) => id) },
      sessions.map((session) => Buffer.from(traceText(session, names))),
    );
  }

  traceNames(): TraceNames {
    return { app: this.boot.app, node: this.boot.node, epochOffsetMs: this.epochOffsetMs() };
  }

  /** People find it where they look for what their functions say. */
  #logFailure({ invocation, error, final }: SessionEffect & { type: 'attempt-failed' }): void {
    const { session, row, attempts, history } = invocation;
    const instance = history.at(-1)?.instance;
    this.log({
      at: new Date(this.ports.epochMs()).toISOString(),
      level: final ? 'error' : 'warn',
      message: failureText(error).slice(0, FAILURE_LOG_CHARS_MAX),
      session: session.id,
      invocation: hexOf(invocation.id),
      function: row.name,
      ...(instance === undefined ? {} : { instance }),
      fields: { code: error.code, attempt: attempts, ...(final ? {} : { triedAgain: true }) },
    });
  }

  // ── the process ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends the process when the last session has ended. */
  exitWhenDrained(): void {
    this.#draining = true;
    this.#exitWhenDrained();
  }

  /** Ends all instances; for who lives in the same process. */
  stop(): void {
    this.deadlines.stop();
    this.#draining = true;
    for (const running of this.instances.all()) running.thread.terminate();
    void this.spiller.close();
  }

  stats(): HostStats {
    return this.#counts.stats({
      slab: this.#slab,
      spiller: this.spiller,
      sessions: this.sessions,
      scheduler: this.scheduler,
      tables: this.#tables,
      running: this.instances.actualCount,
      epochOffsetMs: this.epochOffsetMs(),
    });
  }

  #report(message: string): void {
    this.log({ at: new Date(this.ports.epochMs()).toISOString(), level: 'error', message });
  }

  log(entry: HostLog): void {
    this.#logs.push(entry);
    if (this.#logs.length >= LOGS_PER_MESSAGE_MAX || this.instances.actualCount === 0) this.#flushLogs();
    else this.deadlines.arm();
  }

  #logLine(running: RunningInstance, stream: 'stdout' | 'stderr', message: string): void {
    this.log({
      at: new Date(this.ports.epochMs()).toISOString(),
      level: stream === 'stdout' ? 'info' : 'error',
      message,
      instance: running.instance.id,
    });
  }

  /** The server gives more when it knows. Of those that are over it knows by their end. */
  #tellBegun(): void {
    if (this.#begun.length === 0) return;
    const sessions = this.#begun.filter(({ state }) => state === 'running').map(({ id }) => id);
    this.#begun = [];
    if (sessions.length > 0) this.ports.send({ type: 'sessions-begun', sessions });
  }

  #flushLogs(): void {
    if (this.#logs.length === 0) return;
    this.ports.send({ type: 'logs', entries: this.#logs });
    this.#logs = [];
  }

  #exitWhenDrained(): void {
    if (!this.#draining || this.sessions.sessionCount > 0 || this.#endsUnderWay > 0) return;
    this.#flushLogs();
    this.#tellTraces(true);
    this.ports.exit(0);
  }
}

/** Source-mapped stack if there is one, and why, as Node prints an error. */
function failureText(error: ErrorData): string {
  const own = error.stack ?? (error.name === undefined ? error.message : `${error.name}: ${error.message}`);
  return error.cause === undefined ? own : `${own}\ncaused by: ${failureText(error.cause)}`;
}

function speakerOf({ session, id }: Invocation, fence: number): Speaker {
  return { sessionNo: session.no, id, fence };
}
