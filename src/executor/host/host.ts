// The app host: what the server and the instances of one app version say to it.
//
// Owns: requests of the server and their answers, announcing that the app is loaded.
// Does not own: what comes of them (driver), objects that handlers ask for (ObjectRequests), values to check
// and what user code is asked otherwise (Questions, Evaluations).

import { type ErrorData, nearMiss, PlatformError, refusalData } from '../../base/index.ts';
import type { StoredObject } from '../../bucket/index.ts';
import type { HostBoot, HostToServer, Manifest, ObjectHeader, ServerToHost } from '../../protocol/index.ts';
import { START_BACKOFF_MIN_MS, START_FAILURES_MAX } from '../../scheduler/local/index.ts';
import { type InstanceToHost, withUserStack } from '../shared/index.ts';
import { Driver } from './driver.ts';
import type { RunningInstance } from './instances.ts';
import { LentObjects } from './lent-objects.ts';
import { PREWARMED_INSTANCES } from './limits.ts';
import { hostObjects } from './object-accounts.ts';
import { ObjectReaders } from './object-readers.ts';
import { ObjectRequests } from './object-requests.ts';
import type { HostPorts } from './ports.ts';
import { progressOf } from './session-messages.ts';
import { traceOf } from './trace.ts';

const EMPTY = new Uint8Array(0);

export class Host {
  readonly #boot: HostBoot;
  readonly #ports: HostPorts;
  readonly #driver: Driver;
  readonly #objectRequests: ObjectRequests;
  readonly #objectReaders: ObjectReaders;
  #announced = false;
  #hasFailed = false;
  /** Instances that ended before any was ready. */
  #failedStarts = 0;

  constructor(boot: HostBoot, manifest: Manifest, ports: HostPorts) {
    this.#boot = boot;
    this.#ports = ports;
    const lent = new LentObjects();
    const onMessage = (running: RunningInstance, message: InstanceToHost) => this.#fromInstance(running, message);
    this.#driver = new Driver(boot, manifest, ports, lent, onMessage, (error) => this.#instanceGone(error));
    this.#objectRequests = new ObjectRequests(this.#driver, lent);
    this.#objectReaders = new ObjectReaders(this.#driver);
  }

  /** Starts the first instance; `ready` or `load-failed` follows. */
  start(): void {
    this.#driver.prewarm(this.#driver.entryPool, 'first of its pool');
    this.#driver.sleep();
  }

  /** Ends all instances; for who lives in the same process. */
  stop(): void {
    this.#driver.stop();
  }

  /** Asserts what must hold between two turns. Tests and the simulator call it. */
  checkInvariants(): void {
    this.#driver.sessions.checkInvariants();
    this.#driver.scheduler.checkInvariants();
  }

  /** Memory for a blob of the server's: large ones go straight into the object store. */
  allocateBlob(_header: unknown, _index: number, size: number): Uint8Array {
    return this.#driver.bytes.allocateBlob(size);
  }

  // ── from the server ────────────────────────────────────────────────────────────────────────────────────────────

  receive(message: ServerToHost, blobs: readonly Uint8Array[]): void {
    switch (message.type) {
      case 'session-start':
        // An instance that was given it may have told so; of others, what was claimed makes room for what comes now.
        if (message.givenAtMs !== undefined) this.#driver.drain();
        else this.#driver.drainUnlessJustDone();
        this.#startSession(message, blobs);
        break;
      case 'session-cancel':
        this.#driver.cancel(message.session, message.error);
        break;
      case 'session-put':
        this.#driver.drain();
        this.#putWhenComparable(message, blobs[0] ?? EMPTY);
        break;
      case 'session-close':
        this.#answer(message.requestId, () => {
          this.#driver.drain();
          this.#driver.carryOut(
            this.#driver.sessions.closeFromOutside(
              message.session,
              this.#bucketIndex(message.bucket),
              this.#driver.clock(),
            ),
          );
          return {};
        });
        break;
      case 'session-join':
        this.#answer(message.requestId, () => {
          this.#driver.drain();
          const { names, count } = message;
          const join = { ...(names === undefined ? {} : { names }), ...(count === undefined ? {} : { count }) };
          this.#driver.carryOut(
            this.#driver.sessions.joinFromOutside(
              message.session,
              this.#bucketIndex(message.bucket),
              join,
              this.#driver.clock(),
            ),
          );
          return {};
        });
        break;
      case 'object-get':
        this.#driver.drain();
        this.#objectReaders.open(message);
        break;
      case 'object-read':
        this.#objectReaders.read(message);
        break;
      case 'object-close':
        this.#objectReaders.close(message.reader);
        break;
      case 'object-ack':
        this.#driver.apply({ type: 'acknowledged', session: message.session, seq: message.seq, error: message.error });
        break;
      case 'validate':
        this.#validate(message, blobs[0] ?? EMPTY);
        break;
      case 'evaluate':
        this.#evaluate(message, blobs);
        break;
      case 'triggers-set':
        this.#driver.setTriggers(message.bucket, message.triggers);
        break;
      case 'trace-get':
        this.#answer(message.requestId, () => {
          this.#driver.drain();
          const session = this.#driver.sessions.session(message.session) ?? this.#driver.ended.get(message.session);
          if (session === undefined) {
            throw new PlatformError('E_OBJECT_GONE', `the trace of session ${message.session} is no longer kept`);
          }
          return {
            trace: traceOf(session, this.#driver.traceNames()),
          };
        });
        break;
      case 'progress-get':
        this.#answer(message.requestId, () => {
          this.#driver.drain();
          const session = this.#driver.sessions.session(message.session);
          if (session === undefined) throw new PlatformError('E_OBJECT_GONE', `${message.session} does not run here`);
          return { progress: progressOf(session) };
        });
        break;
      case 'stats-get':
        this.#answer(message.requestId, () => {
          this.#driver.drain();
          return { stats: this.#driver.stats() };
        });
        break;
      case 'sessions-check':
        this.#answer(message.requestId, () => {
          this.#driver.drain();
          const unknown = message.sessions.filter(({ session, run }) => !this.#driver.isKnownRun(session, run));
          return { unknown: unknown.map(({ session }) => session) };
        });
        break;
      case 'objects-get':
        this.#answer(message.requestId, () => {
          this.#driver.drain();
          const { sessions, spiller } = this.#driver;
          return { objects: hostObjects(sessions.sessions(), spiller, message.session) };
        });
        break;
      case 'reply':
        this.#objectRequests.answered(message, blobs);
        break;
      case 'flush':
        this.#driver.drain(true);
        break;
      case 'drain':
        this.#driver.exitWhenDrained();
        break;
    }
    this.#driver.deadlines.arm();
  }

  #startSession(message: ServerToHost & { type: 'session-start' }, blobs: readonly Uint8Array[]): void {
    if (this.#driver.isKnownRun(message.session, message.run)) {
      // An instance was given it, and its connection ended before the server heard of it, or it is late.
      this.#driver.tellAgain(message.session, message.run);
      for (const unused of blobs) this.#driver.bytes.freeBlob(unused);
      return;
    }
    const entries: { function: number; inputs: StoredObject[] }[] = [];
    let blob = 0;
    let refusal: ErrorData | undefined;
    const stored: StoredObject[] = [];
    const store = (header: ObjectHeader): StoredObject => {
      const object = this.#objectOf(header, blobs[blob++] ?? EMPTY, message.session);
      stored.push(object);
      return object;
    };
    let objects: StoredObject[] = [];
    try {
      for (const entry of message.entries) {
        const row = this.#driver.tables.functionByName.get(entry.function);
        if (row === undefined) throw new PlatformError('E_FUNCTION_UNKNOWN', `no function ${entry.function}`);
        entries.push({ function: row.index, inputs: entry.inputs.map(store) });
      }
      objects = (message.objects ?? []).map(store);
    } catch (error) {
      refusal = refusalData(error);
    }
    if (refusal !== undefined) {
      for (const object of stored) this.#driver.bytes.discard(object);
      for (const unused of blobs.slice(blob)) this.#driver.bytes.freeBlob(unused);
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
    const { sessions, bytes } = this.#driver;
    const begin = {
      type: 'session-started' as const,
      id: message.session,
      run: message.run,
      durable: message.durable,
      priority: message.priority,
      deadlineMs: message.deadlineInMs === undefined ? 0 : this.#driver.now() + message.deadlineInMs,
      tables: this.#driver.tables,
      entries,
      objects,
      open: message.open,
    };
    const effects = sessions.handle(begin, this.#driver.clock());
    for (const object of stored) bytes.added(object, sessions.session(message.session));
    this.#driver.carryOut(effects);
    this.#driver.spiller.lookIfShort();
    this.#driver.cancelIfAsked(message.session);
  }

  /** An object of that name that was spilled is brought back first, to see whether it is the same. */
  #putWhenComparable(message: ServerToHost & { type: 'session-put' }, blob: Uint8Array): void {
    const { sessions, spiller, tables } = this.#driver;
    const session = sessions.session(message.session);
    const bucket = tables.bucketByName.get(message.object.bucket);
    const there =
      session === undefined || bucket === undefined
        ? undefined
        : sessions.object(session, bucket.index, message.object.name);
    const waits =
      there === undefined
        ? undefined
        : spiller.load([there], true, (error) => {
            if (error === undefined) this.#put(message, blob);
            else {
              this.#driver.bytes.freeBlob(blob);
              this.#reply({ type: 'reply', requestId: message.requestId, error });
            }
          });
    if (waits === undefined) this.#put(message, blob);
  }

  #put(message: ServerToHost & { type: 'session-put' }, blob: Uint8Array): void {
    const { sessions, bytes, spiller } = this.#driver;
    this.#answer(message.requestId, () => {
      const object = this.#objectOf(message.object, blob, message.session);
      try {
        const { duplicate, effects } = sessions.put(message.session, object, this.#driver.clock());
        bytes.added(object, sessions.session(message.session));
        this.#driver.carryOut(effects);
        spiller.lookIfShort();
        return { duplicate };
      } catch (refusal) {
        bytes.discard(object);
        throw refusal;
      }
    });
  }

  #objectOf(header: ObjectHeader, bytes: Uint8Array, session: string): StoredObject {
    return this.#driver.bytes.objectOf(header, bytes, this.#bucketIndex(header.bucket), session);
  }

  #bucketIndex(name: string): number {
    const row = this.#driver.tables.bucketByName.get(name);
    if (row !== undefined) return row.index;
    const near = nearMiss(name, this.#driver.tables.bucketByName.keys());
    throw new PlatformError('E_BUCKET_UNKNOWN', `app ${this.#boot.app} has no bucket ${name}`, {
      details: near === undefined ? {} : { didYouMean: near },
    });
  }

  #validate(message: ServerToHost & { type: 'validate' }, bytes: Uint8Array): void {
    const { requestId, target } = message;
    const pool = 'function' in target ? this.#driver.tables.functionByName.get(target.function)?.pool : undefined;
    const question = {
      type: 'validate' as const,
      ...('function' in target ? { function: target.function } : { bucket: target.bucket }),
      contentType: message.payload.contentType,
      bytes: Uint8Array.from(bytes),
    };
    const whose = 'function' in target ? `function ${target.function}` : `bucket ${target.bucket}`;
    this.#driver.questions.ask(question, pool, this.#driver.now(), ({ error, noAnswer }) => {
      if (error === undefined) this.#reply({ type: 'reply', requestId });
      else {
        const told = noAnswer === undefined ? '' : `the validator of ${whose} gave no answer: `;
        this.#reply({ type: 'reply', requestId, error: { ...error, message: `${told}${error.message}` } });
      }
    });
    this.#driver.bytes.freeBlob(bytes);
  }

  #evaluate(message: ServerToHost & { type: 'evaluate' }, blobs: readonly Uint8Array[]): void {
    const values = blobs.map((bytes) => Uint8Array.from(bytes));
    for (const bytes of blobs) this.#driver.bytes.freeBlob(bytes);
    this.#driver.evaluations.ask(message.evaluation, values, (result) =>
      this.#reply({ type: 'reply', requestId: message.requestId, evaluation: result }),
    );
  }

  #answer(requestId: number, act: () => Omit<HostToServer & { type: 'reply' }, 'type' | 'requestId'>): void {
    try {
      this.#reply({ type: 'reply', requestId, ...act() });
    } catch (refusal) {
      if (!(refusal instanceof PlatformError)) throw refusal;
      this.#reply({ type: 'reply', requestId, error: refusalData(refusal) });
    }
  }

  #reply(message: HostToServer & { type: 'reply' }, blobs?: readonly Uint8Array[]): void {
    this.#ports.send(message, blobs);
  }

  // ── from instances ─────────────────────────────────────────────────────────────────────────────────────────────

  #fromInstance(running: RunningInstance, message: InstanceToHost): void {
    switch (message.type) {
      case 'ready':
        this.#driver.instances.admit(running);
        // It takes what is on offer by itself, and may be at it: it is looked after whether or not it tells.
        this.#driver.rings.expectsNews = true;
        this.#driver.schedule(
          this.#driver.scheduler.handle({ type: 'instance-ready', slot: running.slot }, this.#driver.now()),
        );
        if (!this.#announced) this.#announce(running.instance.pool);
        this.#driver.questions.instanceReady(this.#driver.now());
        break;
      case 'load-failed':
        if (!this.#announced) {
          this.#hasFailed = true;
          this.#ports.send({ type: 'load-failed', error: withUserStack(message.error, this.#boot.folder) });
          this.#ports.exit(1);
        }
        break;
      case 'get-object':
        this.#objectRequests.get(running, message);
        break;
      case 'validated':
        this.#driver.questions.answered(message.requestId, { error: message.error });
        break;
      case 'evaluated':
        this.#driver.questions.answered(message.requestId, { result: message.result });
        break;
      case 'logs':
        for (const entry of message.entries) this.#driver.log(entry);
        break;
      case 'stopped':
        this.#driver.drain();
        this.#driver.bytes.stopped(message.sessionNo, running.slot);
        break;
      case 'lane-base':
        this.#driver.instances.post(running.slot, { type: 'lane-base', base: this.#driver.instances.nextLaneBase() });
        break;
      case 'retired':
        running.thread.terminate();
        break;
    }
    this.#driver.deadlines.arm();
  }

  /** Until one is ready nobody has work for this host: it is the host itself that needs another. */
  #instanceGone(error: ErrorData): void {
    if (this.#announced || this.#hasFailed) return;
    this.#failedStarts++;
    if (this.#failedStarts >= START_FAILURES_MAX) {
      this.#hasFailed = true;
      this.#ports.send({ type: 'load-failed', error: withUserStack(error, this.#boot.folder) });
      this.#ports.exit(1);
      return;
    }
    this.#ports.setTimer(this.#driver.now() + START_BACKOFF_MIN_MS * 2 ** (this.#failedStarts - 1), () => {
      if (!this.#announced) this.#driver.prewarm(this.#driver.entryPool, 'the first one ended before it was ready');
    });
  }

  #announce(pool: string): void {
    this.#announced = true;
    this.#ports.send({ type: 'ready' });
    for (let i = 1; i < PREWARMED_INSTANCES; i++) {
      this.#driver.prewarm(pool, `reserve of ${PREWARMED_INSTANCES} per pool`);
    }
  }
}
