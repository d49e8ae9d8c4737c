// The app host: drives sessions, instances and the object store of one app version.
//
// Owns: the order in which events reach the machines, and carrying out their effects.
// Decides nothing: sessions (SessionMachine), queue and instances (LocalScheduler), triggers (trigger/).
//
// HO1. What an instance told is read in its order; news of an invocation that is not known yet is read after the rings of
//      all others, because whoever made it told so first.
// HO2. An instance's death is handled after its whole ring was read.
// HO3. Bytes are freed when their session is released and the socket has taken what is still to be written.

import { type ErrorData, nearMiss, PlatformError, Prng, toErrorData } from '../../base/index.ts';
import {
  type AppTables,
  ByteWriter,
  buildTables,
  createSlabMemory,
  isSlabRef,
  nameOf,
  Slab,
  type SlabRef,
  type StoredContent,
  type StoredObject,
  sizeOf,
  type TriggersByBucket,
} from '../../bucket/index.ts';
import type {
  HostBoot,
  HostStats,
  HostToServer,
  LogEntry,
  Manifest,
  ObjectHeader,
  PayloadHeader,
  ServerToHost,
} from '../../protocol/index.ts';
import {
  ABORT_GRACE_MS,
  findInvocation,
  type Invocation,
  invocationsOf,
  LocalScheduler,
  type SchedulerEffect,
  type Session,
  type SessionEffect,
  type SessionEvent,
  SessionMachine,
} from '../../scheduler/local/index.ts';
import {
  type EventRecord,
  type InstanceToHost,
  readRecord,
  TICKET_BYTES,
  type Ticket,
  ticketBytesMax,
  withUserStack,
  writeTicket,
} from '../shared/index.ts';
import { HopSamples } from './hop-samples.ts';
import { HOST_OWNER, Instances, type PoolMemory, type RunningInstance } from './instances.ts';
import {
  BODY_WEIGHT,
  LOGS_PER_MESSAGE_MAX,
  PREWARMED_INSTANCES,
  SERVER_REQUESTS_MAX,
  VALIDATE_MS_MAX,
  WAKE_WORTH_MS,
  WATCH_MS,
} from './limits.ts';
import type { HostPorts } from './ports.ts';
import { EndedSessions, traceOf } from './trace.ts';
import { Validations } from './validations.ts';

const OUTSIDE = { hi: 0, lo: 0 };

export class Host {
  readonly #boot: HostBoot;
  readonly #manifest: Manifest;
  readonly #ports: HostPorts;
  readonly #slab: Slab;
  readonly #sessions: SessionMachine;
  readonly #scheduler: LocalScheduler;
  readonly #instances: Instances;
  readonly #ended = new EndedSessions();
  readonly #hops: HopSamples[];
  readonly #startKinds: Record<string, number> = {};
  readonly #requests = new Map<
    number,
    (reply: ServerToHost & { type: 'reply' }, blobs: readonly Uint8Array[]) => void
  >();
  readonly #validations: Validations;
  #tables: AppTables;
  #triggers: TriggersByBucket = {};
  #nextRequest = 1;
  #sleeping = false;
  #timerAtMs = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;
  #actualCount = 0;
  #draining = false;
  #announced = false;
  /** Somebody was woken: it will tell something, or must be looked after. */
  #expectsNews = false;
  readonly #toWake = new Set<PoolMemory>();
  readonly #bodyMsOf = new Map<string, number>();
  #zeroCopyHandOffs = 0;
  #objectBytesMoved = 0;
  #logs: Omit<LogEntry, 'app' | 'version'>[] = [];

  constructor(boot: HostBoot, manifest: Manifest, ports: HostPorts) {
    this.#boot = boot;
    this.#manifest = manifest;
    this.#ports = ports;
    this.#tables = buildTables(manifest);
    this.#slab = new Slab(createSlabMemory(boot.limits.objectBytesMax), HOST_OWNER);
    const random = new Prng(ports.seed);
    this.#sessions = new SessionMachine({ random, sameContent: (a, b) => this.#sameContent(a, b) });
    const pools = Array.from(new Set(this.#tables.functions.map((row) => row.pool)));
    this.#scheduler = new LocalScheduler({ instancesMax: boot.limits.instancesMax, pools }, random);
    this.#hops = this.#tables.functions.map(() => new HopSamples());
    this.#instances = new Instances(boot, manifest, this.#tables, this.#slab, ports, {
      onMessage: (running, message) => this.#fromInstance(running, message),
      onLine: (running, stream, line) =>
        this.#log({
          at: this.#iso(),
          level: stream === 'stdout' ? 'info' : 'error',
          message: line,
          instance: running.instance.id,
        }),
      onExit: (running, error) => this.#instanceExited(running, withUserStack(error, boot.folder)),
    });
    this.#validations = new Validations({
      instances: () => this.#instances.all(),
      post: (slot, message) => this.#instances.post(slot, message),
      startInstance: () =>
        this.#schedule(this.#scheduler.prewarm(this.#entryPool(), 'a value waits to be checked', this.#now())),
      answer: (requestId, error) =>
        this.#reply({ type: 'reply', requestId, ...(error === undefined ? {} : { error }) }),
    });
  }

  /** Starts the first instance; `ready` or `load-failed` follows. */
  start(): void {
    this.#schedule(this.#scheduler.prewarm(this.#entryPool(), 'first of its pool', this.#now()));
    this.#sleep();
  }

  #entryPool(): string {
    return this.#tables.functionByName.get(this.#manifest.entry)?.pool ?? this.#tables.functions[0]?.pool ?? '';
  }

  /** Ends all instances; for who lives in the same process. */
  stop(): void {
    this.#cancelTimer?.();
    this.#draining = true;
    for (const running of this.#instances.all()) running.thread.terminate();
  }

  /** Memory for a blob of the server's: large ones go straight into the object store. */
  allocateBlob(_header: unknown, _index: number, size: number): Uint8Array {
    if (size <= this.#boot.limits.inlineBytesMax) return new Uint8Array(size);
    try {
      return this.#slab.view(this.#slab.allocate(size));
    } catch {
      // The store is full: whoever wants to store it will say so.
      return new Uint8Array(size);
    }
  }

  // ── from the server ────────────────────────────────────────────────────────────────────────────────────────────

  receive(message: ServerToHost, blobs: readonly Uint8Array[]): void {
    switch (message.type) {
      case 'session-start':
        // What instances have claimed makes room for what comes now.
        if (this.#anythingTold()) this.#drain();
        this.#startSession(message, blobs);
        break;
      case 'session-cancel':
        this.#drain();
        this.#apply({ type: 'session-cancelled', session: message.session, error: message.error });
        break;
      case 'session-put':
        this.#drain();
        this.#answer(message.requestId, () => {
          const object = this.#objectOf(message.object, blobs[0] ?? EMPTY, message.session);
          try {
            const { duplicate, effects } = this.#sessions.put(message.session, object, this.#clock());
            this.#carryOut(effects);
            return { duplicate };
          } catch (refusal) {
            this.#discard(object);
            throw refusal;
          }
        });
        break;
      case 'session-close':
        this.#answer(message.requestId, () => {
          this.#drain();
          this.#carryOut(
            this.#sessions.closeFromOutside(message.session, this.#bucketIndex(message.bucket), this.#clock()),
          );
          return {};
        });
        break;
      case 'session-join':
        this.#answer(message.requestId, () => {
          this.#drain();
          const { names, count } = message;
          const join = { ...(names === undefined ? {} : { names }), ...(count === undefined ? {} : { count }) };
          this.#carryOut(
            this.#sessions.joinFromOutside(message.session, this.#bucketIndex(message.bucket), join, this.#clock()),
          );
          return {};
        });
        break;
      case 'object-get':
        this.#sendObject(message);
        break;
      case 'object-ack':
        this.#apply({ type: 'acknowledged', session: message.session, seq: message.seq, error: message.error });
        break;
      case 'validate':
        this.#validate(message, blobs[0] ?? EMPTY);
        break;
      case 'triggers-set':
        this.#setTriggers(message);
        break;
      case 'trace-get':
        this.#answer(message.requestId, () => {
          this.#drain();
          const session = this.#sessions.session(message.session) ?? this.#ended.get(message.session);
          if (session === undefined) {
            throw new PlatformError('E_OBJECT_GONE', `the trace of session ${message.session} is no longer kept`);
          }
          return {
            trace: traceOf(session, {
              app: this.#boot.app,
              node: this.#boot.node,
              epochOffsetMs: this.#ports.epochMs() - this.#now(),
            }),
          };
        });
        break;
      case 'stats-get':
        this.#answer(message.requestId, () => {
          this.#drain();
          return { stats: this.#stats() };
        });
        break;
      case 'reply': {
        const take = this.#requests.get(message.requestId);
        this.#requests.delete(message.requestId);
        take?.(message, blobs);
        break;
      }
      case 'flush':
        this.#drain();
        break;
      case 'drain':
        this.#draining = true;
        this.#exitWhenDrained();
        break;
    }
    this.#arm();
  }

  #startSession(message: ServerToHost & { type: 'session-start' }, blobs: readonly Uint8Array[]): void {
    if (this.#isKnownRun(message.session, message.run)) {
      // An instance was given it, and its connection ended before the server heard of it.
      for (const unused of blobs) this.#freeBlob(unused);
      return;
    }
    const entries: { function: number; inputs: StoredObject[] }[] = [];
    let blob = 0;
    let refusal: ErrorData | undefined;
    if (message.run === 1 && this.#scheduler.waitingEntries >= this.#boot.limits.queueMax) {
      refusal = {
        code: 'E_QUEUE_FULL',
        message: `${this.#scheduler.waitingEntries} invocations of app ${this.#boot.app} wait already`,
        retryAfterMs: 1_000,
      };
    }
    const stored: StoredObject[] = [];
    const store = (header: ObjectHeader): StoredObject => {
      const object = this.#objectOf(header, blobs[blob++] ?? EMPTY, message.session);
      stored.push(object);
      return object;
    };
    let objects: StoredObject[] = [];
    try {
      for (const entry of message.entries) {
        const row = this.#tables.functionByName.get(entry.function);
        if (row === undefined) throw new PlatformError('E_FUNCTION_UNKNOWN', `no function ${entry.function}`);
        entries.push({ function: row.index, inputs: entry.inputs.map(store) });
      }
      objects = (message.objects ?? []).map(store);
    } catch (error) {
      refusal ??= toErrorData(error);
    }
    if (refusal !== undefined) {
      for (const object of stored) this.#discard(object);
      for (const unused of blobs.slice(blob)) this.#freeBlob(unused);
      this.#ports.send({
        type: 'session-ended',
        session: message.session,
        run: message.run,
        state: 'failed',
        error: refusal,
        unfired: [],
        counts: { invocations: 0, attempts: 0, objects: 0, bytes: 0, firings: 0 },
        meteredMs: 0,
      });
      return;
    }
    this.#apply({
      type: 'session-started',
      id: message.session,
      run: message.run,
      durable: message.durable,
      priority: message.priority,
      deadlineMs: message.deadlineInMs === undefined ? 0 : this.#now() + message.deadlineInMs,
      tables: this.#tables,
      entries,
      objects,
      open: message.open,
    });
  }

  #objectOf(header: ObjectHeader, bytes: Uint8Array, session: string): StoredObject {
    const bucket = this.#bucketIndex(header.bucket);
    let content: StoredContent = bytes;
    if (bytes.length > this.#boot.limits.inlineBytesMax) {
      let ref = this.#slab.refOf(bytes);
      if (ref === undefined) {
        ref = this.#slab.allocate(bytes.length);
        this.#slab.view(ref).set(bytes);
      }
      content = ref;
    }
    return {
      bucket,
      name: header.name,
      producer: OUTSIDE,
      step: 0,
      group: header.group,
      session: header.session === session ? undefined : header.session,
      contentType: header.contentType,
      content,
    };
  }

  #bucketIndex(name: string): number {
    const row = this.#tables.bucketByName.get(name);
    if (row !== undefined) return row.index;
    const near = nearMiss(name, this.#tables.bucketByName.keys());
    throw new PlatformError('E_BUCKET_UNKNOWN', `app ${this.#boot.app} has no bucket ${name}`, {
      details: near === undefined ? {} : { didYouMean: near },
    });
  }

  #setTriggers(message: ServerToHost & { type: 'triggers-set' }): void {
    this.#triggers = { ...this.#triggers, [message.bucket]: message.triggers };
    const version = this.#tables.version + 1;
    this.#tables = buildTables(this.#manifest, this.#triggers, version);
    for (const running of this.#instances.all()) {
      this.#instances.post(running.slot, { type: 'triggers', triggers: this.#triggers, version });
    }
  }

  #validate(message: ServerToHost & { type: 'validate' }, bytes: Uint8Array): void {
    const { requestId, target } = message;
    const pool = 'function' in target ? this.#tables.functionByName.get(target.function)?.pool : undefined;
    const question = {
      ...('function' in target ? { function: target.function } : { bucket: target.bucket }),
      contentType: message.payload.contentType,
      bytes: Uint8Array.from(bytes),
    };
    this.#validations.ask(requestId, question, pool, this.#now());
    this.#freeBlob(bytes);
  }

  /** A blob that nobody stores. */
  #freeBlob(bytes: Uint8Array): void {
    const ref = this.#slab.refOf(bytes);
    if (ref !== undefined) this.#slab.free(ref);
  }

  #sendObject(message: ServerToHost & { type: 'object-get' }): void {
    const { requestId } = message;
    this.#drain();
    const session = this.#sessions.session(message.session);
    const bucket = this.#tables.bucketByName.get(message.bucket);
    const object =
      session === undefined || bucket === undefined
        ? undefined
        : this.#sessions.object(session, bucket.index, message.name);
    if (object === undefined) {
      const gone = session === undefined;
      this.#reply({
        type: 'reply',
        requestId,
        error: gone
          ? { code: 'E_OBJECT_GONE', message: `session ${message.session} has ended: its objects were freed` }
          : {
              code: 'E_OBJECT_UNKNOWN',
              message: `no object ${message.bucket}/${message.name} in session ${message.session}`,
            },
      });
      return;
    }
    const bytes = this.#bytesOf(object);
    // The session may end before the socket has taken it all: a copy, since nobody waits for this on a hot path.
    const part = Uint8Array.from(bytes.subarray(message.range?.start ?? 0, message.range?.end ?? bytes.length));
    this.#reply({ type: 'reply', requestId, payload: { contentType: object.contentType, size: bytes.length } }, [part]);
  }

  #answer(requestId: number, act: () => Omit<HostToServer & { type: 'reply' }, 'type' | 'requestId'>): void {
    try {
      this.#reply({ type: 'reply', requestId, ...act() });
    } catch (refusal) {
      if (!(refusal instanceof PlatformError)) throw refusal;
      this.#reply({ type: 'reply', requestId, error: toErrorData(refusal) });
    }
  }

  #reply(message: HostToServer & { type: 'reply' }, blobs?: readonly Uint8Array[]): void {
    this.#ports.send(message, blobs);
  }

  // ── from instances ─────────────────────────────────────────────────────────────────────────────────────────────

  #fromInstance(running: RunningInstance, message: InstanceToHost): void {
    switch (message.type) {
      case 'ready':
        this.#instances.admit(running);
        this.#schedule(this.#scheduler.handle({ type: 'instance-ready', slot: running.slot }, this.#now()));
        if (!this.#announced) this.#announce(running.instance.pool);
        this.#validations.instanceReady(this.#now());
        break;
      case 'load-failed':
        if (!this.#announced) {
          this.#ports.send({ type: 'load-failed', error: withUserStack(message.error, this.#boot.folder) });
          this.#ports.exit(1);
        }
        break;
      case 'get-object':
        this.#getObject(running, message);
        break;
      case 'validated':
        this.#validations.answered(message.requestId, message.error);
        break;
      case 'logs':
        for (const entry of message.entries) this.#log(entry);
        break;
      case 'lane-base':
        this.#instances.post(running.slot, { type: 'lane-base', base: this.#instances.nextLaneBase() });
        break;
      case 'retired':
        running.thread.terminate();
        break;
    }
    this.#arm();
  }

  #announce(pool: string): void {
    this.#announced = true;
    this.#ports.send({ type: 'ready' });
    for (let i = 1; i < PREWARMED_INSTANCES; i++) {
      this.#schedule(this.#scheduler.prewarm(pool, `reserve of ${PREWARMED_INSTANCES} per pool`, this.#now()));
    }
  }

  #getObject(running: RunningInstance, message: InstanceToHost & { type: 'get-object' }): void {
    this.#drain();
    const { requestId } = message;
    const session = this.#sessions.sessionByNo(message.sessionNo);
    const object = session === undefined ? undefined : this.#sessions.object(session, message.bucket, message.name);
    if (object !== undefined) {
      this.#instances.post(running.slot, { type: 'object', requestId, object });
      return;
    }
    const bucket = this.#tables.buckets[message.bucket]?.name ?? '';
    const unknown: ErrorData = {
      code: 'E_OBJECT_UNKNOWN',
      message: `no object ${bucket}/${message.name}, neither in this session nor persisted`,
    };
    if (this.#requests.size >= SERVER_REQUESTS_MAX) {
      this.#instances.post(running.slot, {
        type: 'object',
        requestId,
        error: {
          code: 'E_QUOTA_EXCEEDED',
          message: `${SERVER_REQUESTS_MAX} requests wait for the server`,
          retryAfterMs: 100,
        },
      });
      return;
    }
    const ask = this.#nextRequest++;
    const { sessionNo } = message;
    this.#requests.set(ask, (reply, blobs) => {
      const { payload } = reply;
      if (payload === undefined || payload === null) {
        const error = reply.error === undefined || reply.error.code === 'E_OBJECT_UNKNOWN' ? unknown : reply.error;
        this.#instances.post(running.slot, { type: 'object', requestId, error });
        return;
      }
      const owner = this.#sessions.sessionByNo(sessionNo);
      const header: ObjectHeader = { ...payload, bucket, name: message.name, group: '', session: '' };
      const got = this.#objectOf(header, blobs[0] ?? EMPTY, '');
      if (owner === undefined) this.#discard(got);
      else {
        // It lives as long as the session that asked for it; no trigger sees it.
        owner.objects.push(got);
        this.#instances.post(running.slot, { type: 'object', requestId, object: got });
      }
    });
    this.#ports.send({ type: 'persisted-get', requestId: ask, bucket, name: message.name });
  }

  #instanceExited(running: RunningInstance, error: ErrorData): void {
    // (HO2)
    this.#drain();
    const attempts = running.actual.splice(0);
    this.#actualCount -= attempts.length;
    const blocks = this.#instances.remove(running);
    for (const block of blocks) this.#slab.free(block);
    const owner = running.slot + 2;
    const { tickets } = this.#instances.pool(running.instance.pool);
    for (const attempt of attempts) {
      const session = this.#sessions.sessionByNo(attempt.sessionNo);
      const invocation = session === undefined ? undefined : findInvocation(session, attempt.id);
      if (invocation === undefined || invocation.fence !== attempt.fence) continue;
      this.#apply({ type: 'attempt-lost', invocation, why: 'lost', error });
    }
    for (const session of this.#sessions.sessions()) {
      for (const invocation of invocationsOf(session)) {
        if (invocation.place !== 'held' || invocation.slot !== running.slot) continue;
        if (tickets.holds(session.no, invocation.id.hi, invocation.id.lo, owner)) continue;
        this.#apply({ type: 'offer-lost', invocation });
      }
    }
    this.#slab.sweep(owner, this.#knownPlaces());
    for (const attempt of attempts) this.#noLongerRead(attempt.sessionNo);
    this.#schedule(this.#scheduler.handle({ type: 'instance-gone', slot: running.slot, error }, this.#now()));
    this.#validations.instanceGone(running.slot, error, attempts.length > 0, this.#now());
    this.#arm();
  }

  *#knownPlaces(): Generator<SlabRef> {
    for (const session of this.#sessions.sessions()) {
      for (const object of session.objects)
        if (isSlabRef(object.content) && object.alias !== true) yield object.content;
    }
    for (const pool of this.#instances.pools.values()) yield* pool.tickets.blocks();
  }

  // ── rings ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #sleep(): void {
    if (this.#sleeping) return;
    const asleep = this.#instances.sleep(
      () => this.#anythingTold(),
      () => {
        this.#sleeping = false;
        this.#drain();
        this.#sleep();
        this.#arm();
      },
    );
    if (asleep) this.#sleeping = true;
    else {
      this.#drain();
      this.#sleep();
    }
  }

  #anythingTold(): boolean {
    for (const running of this.#instances.all()) if (running.reader.peek() !== undefined) return true;
    return false;
  }

  /** Reads everything that was told. */
  #drain(): void {
    this.#expectsNews = false;
    for (const running of this.#instances.all()) {
      this.#drainOne(running);
      if (running.ready && !this.#instances.bells.isSleeping(running.slot)) this.#expectsNews = true;
    }
    for (const pool of this.#instances.pools.values()) {
      const offers = pool.tickets.readyCount;
      this.#schedule(this.#scheduler.handle({ type: 'demand', pool: pool.name, offers }, this.#now()));
      pool.tickets.backlog = this.#scheduler.backlogOf(pool.name);
    }
    this.#flushLogs();
  }

  #drainOne(running: RunningInstance): void {
    // Whoever reads it further up goes on; what it waits for cannot lie behind what it reads (HO1).
    if (running.beingRead) return;
    running.beingRead = true;
    const { reader } = running;
    for (;;) {
      const bytes = reader.peek();
      if (bytes === undefined) break;
      const record = readRecord(bytes);
      if (record.type === 'started' && this.#isUnheardOf(record)) {
        for (const other of this.#instances.all()) this.#drainOne(other);
      }
      reader.advance();
      this.#heard(running, record);
    }
    running.beingRead = false;
  }

  /** Its firing, or its session when an instance was given that, may still be in another ring. */
  #isUnheardOf(record: EventRecord): boolean {
    const session = this.#sessions.sessionByNo(record.sessionNo);
    return session === undefined || findInvocation(session, record.id) === undefined;
  }

  #heard(running: RunningInstance, record: EventRecord): void {
    const { slot } = running;
    switch (record.type) {
      case 'started': {
        running.actual.push({
          sessionNo: record.sessionNo,
          id: record.id,
          fence: record.fence,
          startedAtMs: record.atMs,
          replaceAtMs: 0,
        });
        this.#actualCount++;
        this.#startKinds[record.start] = (this.#startKinds[record.start] ?? 0) + 1;
        this.#apply({ ...record, type: 'attempt-started', slot, instance: running.instance.id });
        const session = this.#sessions.sessionByNo(record.sessionNo);
        const invocation = session === undefined ? undefined : findInvocation(session, record.id);
        const counts = invocation !== undefined && invocation.fence === record.fence && invocation.place === 'running';
        this.#schedule(
          this.#scheduler.handle({ type: 'claimed', invocation: counts ? invocation : undefined, slot }, this.#now()),
        );
        if (!counts) {
          this.#abort(slot, record, OVERTAKEN);
          return;
        }
        if (invocation.firing !== undefined) {
          this.#hops[invocation.row.index]?.add(record.atMs - invocation.queuedAtMs);
          for (const input of invocation.inputs) {
            this.#objectBytesMoved += sizeOf(input);
            if (isSlabRef(input.content)) this.#zeroCopyHandOffs++;
          }
        }
        return;
      }
      case 'sent':
        this.#apply({ ...record, type: 'object-sent', slot });
        return;
      case 'ended': {
        const at = running.actual.findIndex((one) => same(one, record));
        if (at >= 0) {
          this.#learnBody(running.instance.pool, record.atMs - (running.actual[at]?.startedAtMs ?? record.atMs));
          running.actual.splice(at, 1);
          this.#actualCount--;
        }
        const error =
          record.error === undefined
            ? undefined
            : withUserStack(JSON.parse(record.error) as ErrorData, this.#boot.folder);
        this.#apply({ ...record, type: 'attempt-ended', error });
        this.#schedule(this.#scheduler.handle({ type: 'attempt-over', slot }, this.#now()));
        if (this.#lingering.size > 0) this.#noLongerRead(record.sessionNo);
        return;
      }
      case 'note': {
        const { note } = record;
        const which = { sessionNo: record.sessionNo, id: record.id, fence: record.fence };
        if (note.kind === 'close') this.#apply({ type: 'group-closed', bucket: note.bucket, ...which });
        else {
          this.#apply({
            type: 'joined',
            bucket: note.bucket,
            ...which,
            ...(note.names === undefined ? {} : { names: note.names }),
            ...(note.count === undefined ? {} : { count: note.count }),
          });
        }
        return;
      }
      case 'lane':
        this.#laneSession(slot, record);
        return;
      case 'handed-over':
        this.#apply({ ...record, type: 'handed-over' });
        return;
    }
  }

  /** A session that the server gave to an instance itself. */
  #laneSession(slot: number, record: EventRecord & { type: 'lane' }): void {
    const { ticket, priority, queue } = record;
    if (this.#isKnownRun(ticket.session, ticket.run)) return;
    this.#apply({
      type: 'session-started',
      id: ticket.session,
      run: ticket.run,
      durable: false,
      priority,
      deadlineMs: ticket.deadlineMs,
      tables: this.#tables,
      entries: [{ function: ticket.function, inputs: ticket.inputs }],
      objects: [],
      open: undefined,
      lane: { no: ticket.sessionNo, slot, queue },
    });
  }

  #isKnownRun(session: string, run: number): boolean {
    return (this.#sessions.session(session) ?? this.#ended.get(session))?.run === run;
  }

  // ── effects ────────────────────────────────────────────────────────────────────────────────────────────────────

  #apply(event: SessionEvent): void {
    this.#carryOut(this.#sessions.handle(event, this.#clock()));
  }

  #carryOut(effects: readonly SessionEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'enqueue':
          this.#schedule(this.#scheduler.handle({ type: 'waiting', invocation: effect.invocation }, this.#now()));
          break;
        case 'withdraw':
          this.#withdraw(effect.invocation);
          break;
        case 'abort':
          this.#abort(
            effect.slot,
            { sessionNo: effect.invocation.session.no, id: effect.invocation.id, fence: effect.fence },
            effect.error,
          );
          break;
        case 'output':
          this.#sendOut(effect.session, effect.object, (object, run) => ({
            type: 'session-output',
            session: effect.session.id,
            run,
            object,
          }));
          break;
        case 'copy-object':
          this.#sendOut(effect.session, effect.object, (object) => ({
            type: 'bucket-object',
            session: effect.session.id,
            seq: effect.seq,
            object,
            durable: effect.session.durable,
          }));
          break;
        case 'close-copy':
          this.#ports.send({
            type: 'bucket-close',
            session: effect.session.id,
            seq: effect.seq,
            bucket: effect.session.tables.buckets[effect.bucket]?.name ?? '',
          });
          break;
        case 'persist':
          this.#sendOut(effect.session, effect.object, (object) => ({
            type: 'object-persist',
            session: effect.session.id,
            seq: effect.seq,
            object,
          }));
          break;
        case 'session-ended':
          this.#sessionEnded(effect);
          break;
        case 'release':
          this.#release(effect.session);
          break;
        case 'discard':
          this.#discard(effect.object);
          break;
      }
    }
  }

  #schedule(effects: readonly SchedulerEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'offer':
          this.#offer(effect.invocation);
          break;
        case 'start-instance': {
          const { instance } = effect;
          const memoryMb = this.#tables.functions.find((row) => row.pool === instance.pool)?.memoryMb ?? 0;
          this.#instances.start(instance, memoryMb, this.#triggers, this.#tables.version);
          break;
        }
        case 'retire':
          this.#instances.dismiss(effect.instance.slot);
          break;
        case 'pool-broken':
          this.#failPool(effect.pool, effect.error);
          break;
      }
    }
  }

  #offer(invocation: Invocation): void {
    const pool = this.#instances.pool(invocation.row.pool);
    const slot = pool.tickets.take();
    if (slot === undefined) {
      this.#schedule(this.#scheduler.handle({ type: 'offer-refused', invocation }, this.#now()));
      return;
    }
    const { session } = invocation;
    const ticket: Ticket = {
      sessionNo: session.no,
      session: session.id,
      run: session.run,
      id: invocation.id,
      function: invocation.row.index,
      fence: invocation.fence,
      attempt: invocation.attempts + 1,
      tableVersion: session.tables.version,
      inline: !invocation.hostEvaluates,
      wantsResult: invocation.wantsResult,
      direct: isDirect(invocation),
      deadlineMs: session.deadlineMs,
      queuedAtMs: invocation.queuedAtMs,
      inputs: invocation.inputs,
    };
    const key = { function: ticket.function, sessionNo: session.no, hi: ticket.id.hi, lo: ticket.id.lo };
    const bytesMax = ticketBytesMax(ticket);
    if (bytesMax <= TICKET_BYTES) {
      const writer = new ByteWriter(slot.body);
      writeTicket(writer, ticket);
      pool.tickets.publish(slot.slot, key, writer.at);
    } else {
      let block: SlabRef;
      try {
        block = this.#slab.allocate(bytesMax);
      } catch (refusal) {
        pool.tickets.done(slot.slot);
        this.#schedule(this.#scheduler.handle({ type: 'offer-ended', invocation }, this.#now()));
        this.#apply({ type: 'offer-failed', invocation, error: toErrorData(refusal) });
        return;
      }
      writeTicket(new ByteWriter(this.#slab.buffer(block)), ticket);
      pool.tickets.publish(slot.slot, key, 0, block);
    }
    this.#wakeSoon(pool);
  }

  /**
   * Wakes when the turn has offered all it has: a wake costs as much as several short invocations, so as many instances
   * are woken as the work is worth, not one per offer.
   */
  #wakeSoon(pool: PoolMemory): void {
    if (this.#toWake.size === 0) queueMicrotask(this.#wakeAll);
    this.#toWake.add(pool);
  }

  readonly #wakeAll = (): void => {
    for (const pool of this.#toWake) {
      pool.tickets.backlog = this.#scheduler.backlogOf(pool.name);
      const offers = pool.tickets.readyCount;
      const wakes = Math.min(offers, Math.max(1, Math.ceil((offers * this.#bodyMs(pool)) / WAKE_WORTH_MS)));
      for (let i = 0; i < wakes && this.#instances.wakeOne(pool); i++) this.#expectsNews = true;
    }
    this.#toWake.clear();
    this.#arm();
  };

  /** Estimated time of one attempt in the pool, ms. */
  #bodyMs(pool: PoolMemory): number {
    return this.#bodyMsOf.get(pool.name) ?? WAKE_WORTH_MS;
  }

  #learnBody(pool: string, ms: number): void {
    const old = this.#bodyMsOf.get(pool) ?? ms;
    this.#bodyMsOf.set(pool, old + BODY_WEIGHT * (ms - old));
  }

  #withdraw(invocation: Invocation): void {
    const { session, id } = invocation;
    const block = this.#instances.pool(invocation.row.pool).tickets.withdraw(session.no, id.hi, id.lo);
    if (block !== undefined && block !== null) this.#slab.free(block);
    if (invocation.place === 'held') {
      this.#abort(invocation.slot, { sessionNo: session.no, id, fence: invocation.fence }, OVERTAKEN);
    } else {
      this.#schedule(this.#scheduler.handle({ type: 'withdrawn', invocation }, this.#now()));
    }
  }

  /** Tells the handler to stop; if it runs alone on its instance and does not, the instance is replaced. */
  #abort(
    slot: number,
    which: { sessionNo: number; id: { hi: number; lo: number }; fence: number },
    error: ErrorData,
  ): void {
    const running = this.#instances.at(slot);
    if (running === undefined) return;
    this.#instances.post(slot, {
      type: 'abort',
      sessionNo: which.sessionNo,
      hi: which.id.hi,
      lo: which.id.lo,
      fence: which.fence,
      error,
    });
    const actual = running.actual.find((one) => same(one, which));
    if (actual === undefined || actual.replaceAtMs > 0) return;
    actual.replaceAtMs = this.#now() + ABORT_GRACE_MS;
    this.#arm();
  }

  #failPool(pool: string, error: ErrorData): void {
    for (const session of this.#sessions.sessions()) {
      for (const invocation of invocationsOf(session)) {
        if (invocation.row.pool === pool && invocation.place === 'queued') {
          this.#withdraw(invocation);
          this.#apply({ type: 'offer-failed', invocation, error });
        }
      }
    }
  }

  #sendOut(session: Session, object: StoredObject, message: (header: ObjectHeader, run: number) => HostToServer): void {
    const bytes = this.#bytesOf(object);
    const header: ObjectHeader = {
      bucket: session.tables.buckets[object.bucket]?.name ?? '',
      name: nameOf(object),
      group: object.group,
      session: session.id,
      contentType: object.contentType,
      size: bytes.length,
    };
    this.#ports.send(message(header, session.run), [bytes], this.#holding(session, object.content));
  }

  readonly #unwritten = new Map<Session, number>();
  /** Released, but an overtaken handler still runs. */
  readonly #lingering = new Map<number, Session>();

  /** (HO3): a callback that lets go of the session's bytes; undefined for what is copied anyway. */
  #holding(session: Session, content: StoredContent): (() => void) | undefined {
    if (!isSlabRef(content)) return undefined;
    this.#unwritten.set(session, (this.#unwritten.get(session) ?? 0) + 1);
    return () => {
      const left = (this.#unwritten.get(session) ?? 1) - 1;
      if (left > 0) this.#unwritten.set(session, left);
      else {
        this.#unwritten.delete(session);
        if (session.state === 'ended') this.#freeWhenUnread(session);
      }
    };
  }

  #sessionEnded(effect: SessionEffect & { type: 'session-ended' }): void {
    const { session, state, error } = effect;
    const result = error === undefined ? session.result : undefined;
    const bytes = result === undefined ? undefined : this.#bytesOf(result);
    const header: PayloadHeader | undefined =
      result === undefined || bytes === undefined ? undefined : { contentType: result.contentType, size: bytes.length };
    this.#ports.send(
      {
        type: 'session-ended',
        session: session.id,
        run: session.run,
        state,
        ...(header === undefined ? {} : { result: header }),
        ...(error === undefined ? {} : { error }),
        unfired: unfiredOf(session),
        counts: {
          invocations: session.invocationCount,
          attempts: session.attempts,
          objects: session.objects.length - (session.result === undefined ? 0 : 1),
          bytes: session.bytes,
          firings: session.firings,
        },
        meteredMs: Math.round(session.meteredMs * 1000) / 1000,
        ...(session.failures.length > (error === undefined ? 0 : 1) ? { failures: session.failures } : {}),
      },
      bytes === undefined ? [] : [bytes],
      result === undefined ? undefined : this.#holding(session, result.content),
    );
  }

  #release(session: Session): void {
    if (!this.#unwritten.has(session)) this.#freeWhenUnread(session);
    this.#exitWhenDrained();
  }

  /** Overtaken handlers may still read the objects: they are told to stop, and then replaced. */
  #freeWhenUnread(session: Session): void {
    for (const running of this.#instances.all()) {
      if (!running.actual.some((one) => one.sessionNo === session.no)) continue;
      this.#lingering.set(session.no, session);
      return;
    }
    this.#free(session);
  }

  #noLongerRead(sessionNo: number): void {
    const session = this.#lingering.get(sessionNo);
    if (session === undefined) return;
    this.#lingering.delete(sessionNo);
    this.#freeWhenUnread(session);
  }

  #free(session: Session): void {
    for (const object of session.objects) this.#discard(object);
    this.#ended.add(session);
  }

  #discard(object: StoredObject): void {
    if (isSlabRef(object.content) && object.alias !== true) this.#slab.free(object.content);
  }

  #bytesOf(object: StoredObject): Uint8Array {
    const { content } = object;
    if (typeof content === 'string') return Buffer.from(content);
    return isSlabRef(content) ? this.#slab.view(content) : content;
  }

  #sameContent(a: StoredObject, b: StoredObject): boolean {
    return a.contentType === b.contentType && Buffer.compare(this.#bytesOf(a), this.#bytesOf(b)) === 0;
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #now(): number {
    return this.#ports.monotonicMs();
  }

  #clock(): { monotonicMs: number; epochMs: number } {
    return { monotonicMs: this.#ports.monotonicMs(), epochMs: this.#ports.epochMs() };
  }

  #iso(): string {
    return new Date(this.#ports.epochMs()).toISOString();
  }

  /** One timer for everything: the earliest of what the machines wait for, and a watch while anything runs. */
  #arm(): void {
    let at = this.#sessions.nextTimerMs() ?? Number.POSITIVE_INFINITY;
    const scheduler = this.#scheduler.nextTimerMs();
    if (scheduler !== undefined && scheduler < at) at = scheduler;
    if (this.#actualCount > 0) at = Math.min(at, this.#nextDeadlineMs());
    else if (this.#expectsNews || this.#validations.pending) at = Math.min(at, this.#now() + WATCH_MS);
    if (at >= this.#timerAtMs) return;
    this.#cancelTimer?.();
    this.#timerAtMs = at;
    this.#cancelTimer = this.#ports.setTimer(at, () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.#cancelTimer = undefined;
      this.#onTimer();
    });
  }

  #nextDeadlineMs(): number {
    const now = this.#now();
    let next = now + WATCH_MS;
    for (const running of this.#instances.all()) {
      for (const actual of running.actual) {
        if (actual.replaceAtMs > 0) next = Math.min(next, actual.replaceAtMs);
        const timeoutMs = this.#timeoutOf(actual);
        if (timeoutMs > 0 && actual.replaceAtMs === 0) next = Math.min(next, actual.startedAtMs + timeoutMs);
      }
    }
    return Math.max(next, now + 1);
  }

  #timeoutOf(actual: { sessionNo: number; id: { hi: number; lo: number } }): number {
    const session = this.#sessions.sessionByNo(actual.sessionNo);
    return session === undefined ? 0 : (findInvocation(session, actual.id)?.row.timeoutMs ?? 0);
  }

  #onTimer(): void {
    this.#drain();
    this.#apply({ type: 'time-passed' });
    this.#schedule(this.#scheduler.handle({ type: 'time-passed' }, this.#now()));
    const now = this.#now();
    for (const running of this.#instances.all()) {
      for (const actual of [...running.actual]) this.#checkDeadline(running, actual, now);
    }
    for (const slot of this.#validations.overdue(now)) {
      const running = this.#instances.at(slot);
      const message = `it did not end within ${VALIDATE_MS_MAX} ms`;
      if (running !== undefined) this.#instances.terminate(running, { code: 'E_TIMEOUT', message });
    }
    this.#arm();
  }

  #checkDeadline(running: RunningInstance, actual: RunningInstance['actual'][number], now: number): void {
    if (actual.replaceAtMs > 0) {
      // Others on the same instance would pay for it: with `concurrency` the instance goes on as long as it answers.
      if (now >= actual.replaceAtMs && running.actual.length === 1) {
        this.#instances.terminate(running, {
          code: 'E_TIMEOUT',
          message: 'its handler did not stop when it was told to',
        });
      }
      return;
    }
    const timeoutMs = this.#timeoutOf(actual);
    if (timeoutMs === 0 || now < actual.startedAtMs + timeoutMs) return;
    const session = this.#sessions.sessionByNo(actual.sessionNo);
    const invocation = session === undefined ? undefined : findInvocation(session, actual.id);
    if (invocation === undefined || invocation.fence !== actual.fence) return;
    const error: ErrorData = {
      code: 'E_TIMEOUT',
      message: `function ${invocation.row.name} ran longer than its timeoutMs of ${timeoutMs}`,
    };
    this.#apply({ type: 'attempt-lost', invocation, why: 'timeout', error });
    this.#abort(running.slot, actual, error);
  }

  // ── the rest ───────────────────────────────────────────────────────────────────────────────────────────────────

  #log(entry: Omit<LogEntry, 'app' | 'version'>): void {
    this.#logs.push(entry);
    if (this.#logs.length >= LOGS_PER_MESSAGE_MAX || this.#actualCount === 0) this.#flushLogs();
    else this.#arm();
  }

  #flushLogs(): void {
    if (this.#logs.length === 0) return;
    this.#ports.send({ type: 'logs', entries: this.#logs });
    this.#logs = [];
  }

  #exitWhenDrained(): void {
    if (!this.#draining || this.#sessions.sessionCount > 0) return;
    this.#flushLogs();
    this.#ports.exit(0);
  }

  #stats(): HostStats {
    let objects = 0;
    for (const session of this.#sessions.sessions()) objects += session.objects.length;
    const iso = (ms: number) => new Date(this.#ports.epochMs() + ms - this.#now()).toISOString();
    return {
      memoryBytes: this.#slab.usedBytes,
      memoryBytesMax: this.#slab.budgetBytes,
      objects,
      sessions: this.#sessions.sessionCount,
      queued: this.#scheduler.waiting,
      running: this.#actualCount,
      zeroCopyHandOffs: this.#zeroCopyHandOffs,
      objectBytesMoved: this.#objectBytesMoved,
      startKinds: { ...this.#startKinds },
      instances: Array.from(this.#scheduler.instances(), (instance) => ({
        instance: instance.id,
        pool: instance.pool,
        state: instance.state,
        startedAt: iso(instance.startedAtMs),
        useCount: instance.useCount,
        whyStarted: instance.whyStarted,
        whyKept: this.#scheduler.whyKept(instance),
      })),
      hops: this.#tables.functions
        .map((row) => ({ row, samples: this.#hops[row.index] as HopSamples }))
        .filter(({ samples }) => samples.count > 0)
        .map(({ row, samples }) => ({
          function: row.name,
          count: samples.count,
          p50Ms: samples.percentile(0.5),
          p99Ms: samples.percentile(0.99),
        })),
    };
  }
}

const EMPTY = new Uint8Array(0);
const OVERTAKEN: ErrorData = { code: 'E_FENCED', message: 'this attempt was overtaken: what it still does is dropped' };

function same(
  a: { sessionNo: number; id: { hi: number; lo: number }; fence: number },
  b: { sessionNo: number; id: { hi: number; lo: number }; fence: number },
): boolean {
  return a.sessionNo === b.sessionNo && a.id.lo === b.id.lo && a.id.hi === b.id.hi && a.fence === b.fence;
}

/** Whoever sees such a session to its end may answer for it: nobody else has a say in its outcome. */
function isDirect({ session, wantsResult, attempts }: Invocation): boolean {
  return (
    wantsResult && attempts === 0 && session.entries.length === 1 && !session.durable && session.open === undefined
  );
}

function unfiredOf(session: Session): { bucket: string; trigger: string; held: number; waitsFor: string }[] {
  const unfired: { bucket: string; trigger: string; held: number; waitsFor: string }[] = [];
  for (const [key, machine] of session.triggers) {
    const waitsFor = machine.waitsFor();
    if (machine.held === 0 || waitsFor === undefined) continue;
    const bucket = session.tables.buckets[Math.floor(key / 0x1_0000)];
    unfired.push({
      bucket: bucket?.name ?? '',
      trigger: bucket?.triggers[key % 0x1_0000]?.name ?? '',
      held: machine.held,
      waitsFor,
    });
  }
  return unfired;
}
