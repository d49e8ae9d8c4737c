// The app host: what the server and the instances of one app version say to it.
//
// Owns: requests of the server and their answers, announcing that the app is loaded.
// Does not own: what comes of them (driver), objects that handlers ask for (ObjectRequests), values to check
// and what user code is asked otherwise (Questions, Evaluations).

import { type ErrorData, nearMiss, PlatformError, toErrorData } from '../../base/index.ts';
import type { StoredObject } from '../../bucket/index.ts';
import type { HostBoot, HostToServer, Manifest, ObjectHeader, ServerToHost } from '../../protocol/index.ts';
import { type InstanceToHost, withUserStack } from '../shared/index.ts';
import { Driver } from './driver.ts';
import type { RunningInstance } from './instances.ts';
import { PREWARMED_INSTANCES } from './limits.ts';
import { ObjectRequests } from './object-requests.ts';
import type { HostPorts } from './ports.ts';
import { traceOf } from './trace.ts';

const EMPTY = new Uint8Array(0);

export class Host {
  readonly #boot: HostBoot;
  readonly #ports: HostPorts;
  readonly #driver: Driver;
  readonly #objectRequests: ObjectRequests;
  #announced = false;

  constructor(boot: HostBoot, manifest: Manifest, ports: HostPorts) {
    this.#boot = boot;
    this.#ports = ports;
    this.#driver = new Driver(boot, manifest, ports, (running, message) => this.#fromInstance(running, message));
    this.#objectRequests = new ObjectRequests(this.#driver);
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
        // What instances have claimed makes room for what comes now.
        if (this.#driver.rings.anythingTold()) this.#driver.drain();
        this.#startSession(message, blobs);
        break;
      case 'session-cancel':
        this.#driver.cancel(message.session, message.error);
        break;
      case 'session-put':
        this.#driver.drain();
        this.#answer(message.requestId, () => {
          const object = this.#objectOf(message.object, blobs[0] ?? EMPTY, message.session);
          try {
            const { duplicate, effects } = this.#driver.sessions.put(message.session, object, this.#driver.clock());
            this.#driver.carryOut(effects);
            return { duplicate };
          } catch (refusal) {
            this.#driver.bytes.discard(object);
            throw refusal;
          }
        });
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
        this.#sendObject(message);
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
      case 'reply':
        this.#objectRequests.answered(message, blobs);
        break;
      case 'flush':
        this.#driver.drain();
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
      refusal = toErrorData(error);
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
    this.#driver.apply({
      type: 'session-started',
      id: message.session,
      run: message.run,
      durable: message.durable,
      priority: message.priority,
      deadlineMs: message.deadlineInMs === undefined ? 0 : this.#driver.now() + message.deadlineInMs,
      tables: this.#driver.tables,
      entries,
      objects,
      open: message.open,
    });
    this.#driver.cancelIfAsked(message.session);
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

  #sendObject(message: ServerToHost & { type: 'object-get' }): void {
    const { requestId } = message;
    this.#driver.drain();
    const session = this.#driver.sessions.session(message.session);
    const bucket = this.#driver.tables.bucketByName.get(message.bucket);
    const object =
      session === undefined || bucket === undefined
        ? undefined
        : this.#driver.sessions.object(session, bucket.index, message.name);
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
    const bytes = this.#driver.bytes.bytesOf(object);
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
        this.#driver.instances.admit(running);
        this.#driver.schedule(
          this.#driver.scheduler.handle({ type: 'instance-ready', slot: running.slot }, this.#driver.now()),
        );
        if (!this.#announced) this.#announce(running.instance.pool);
        this.#driver.questions.instanceReady(this.#driver.now());
        break;
      case 'load-failed':
        if (!this.#announced) {
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
      case 'lane-base':
        this.#driver.instances.post(running.slot, { type: 'lane-base', base: this.#driver.instances.nextLaneBase() });
        break;
      case 'retired':
        running.thread.terminate();
        break;
    }
    this.#driver.deadlines.arm();
  }

  #announce(pool: string): void {
    this.#announced = true;
    this.#ports.send({ type: 'ready' });
    for (let i = 1; i < PREWARMED_INSTANCES; i++) {
      this.#driver.prewarm(pool, `reserve of ${PREWARMED_INSTANCES} per pool`);
    }
  }
}
