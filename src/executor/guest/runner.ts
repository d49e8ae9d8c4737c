// Runs invocations inside one instance.
//
// Owns: which attempts run here, and the loop that takes the next one.
// Does not own: sessions, triggers with state, retries, deadlines (host); what becomes of successors (Successors).
//
// RU1. Nobody sleeps on work: before it sleeps, an instance looks at the slots again (Bells).
// RU2. Successors run in a loop, never recursively, and after SLICE_MS older offers and the event loop have their turn.

import { assert, type ErrorData, fromErrorData, hashInts, PlatformError } from '../../base/index.ts';
import {
  type AppTables,
  type BucketRow,
  ByteReader,
  buildTables,
  CALL_BUCKET_INDEX,
  type FunctionRow,
  isSlabRef,
  objectFiringId,
  Slab,
  type StoredObject,
} from '../../bucket/index.ts';
import { CONTENT_JSON, type LogEntry, type ServerToHost } from '../../protocol/index.ts';
import type { AppDefinition } from '../../sdk/index.ts';
import {
  ATOMICS_WAITS,
  Bells,
  CALL_TRIGGER,
  EventRingWriter,
  HOST_BELL,
  type HostToInstance,
  type InlineFiring,
  type InstanceBoot,
  type InstanceToHost,
  JOIN_INLINE_CHARS_MAX,
  type Note,
  readTicket,
  START_KINDS,
  type Ticket,
  type TicketBlock,
  Tickets,
  type WordWaits,
  writeEnded,
  writeLane,
  writeNote,
  writeSent,
  writeStarted,
} from '../shared/index.ts';
import { Attempt } from './attempt.ts';
import { checksumOf } from './checksum.ts';
import { Contents, type Encoded } from './content.ts';
import { Context, type SendOptions } from './context.ts';
import { DirectReplies, type SendToServer } from './direct-replies.ts';
import { failureJson } from './failure.ts';
import { GuestObject, type ObjectHome } from './guest-object.ts';
import { InstanceLog } from './instance-log.ts';
import { LaneNumbers, laneTicket } from './lane.ts';
import { HOP_MS, LANE_READ_MS_MAX, OFFERS_LOW, REQUESTS_MAX, SLICE_MS, STOPPED_SESSIONS_MAX } from './limits.ts';
import { Reporter } from './reporter.ts';
import { Successors } from './successors.ts';
import { TriggerClasses } from './trigger-classes.ts';
import { isThenable, validateFor, validateInput, validateSend } from './validation.ts';

/** What the runner needs of the thread that it lives in. */
export interface RunnerPorts {
  readonly monotonicMs: () => number;
  readonly epochMs: () => number;
  readonly post: (message: InstanceToHost) => void;
  readonly afterTurn: (callback: () => void) => void;
  readonly later: (delayMs: number, callback: () => void) => void;
  /** Default: Atomics. */
  readonly waits?: WordWaits;
}

const INLINE = START_KINDS.indexOf('inline');
const WARM = START_KINDS.indexOf('warm');
const TAKEOVER = START_KINDS.indexOf('takeover');
const PREWARMED = START_KINDS.indexOf('prewarmed');
const COLD = START_KINDS.indexOf('cold');

export class Runner {
  readonly boot: InstanceBoot;
  tables: AppTables;
  readonly #app: AppDefinition;
  readonly #ports: RunnerPorts;
  readonly #slab: Slab;
  readonly #tickets: Tickets;
  readonly #bells: Bells;
  readonly #reporter: Reporter;
  readonly #home: ObjectHome;
  readonly #contents: Contents;
  readonly #direct = new DirectReplies();
  readonly #successors: Successors;
  readonly #lane: LaneNumbers;
  readonly #log: InstanceLog;
  readonly #classes: TriggerClasses;
  /** Some trigger hears of starts: what an instance knows of a session is never all of it. */
  #watchesStarts: boolean;
  readonly #handlers: readonly ((ctx: unknown, inputs: unknown) => unknown)[];
  readonly #running = new Set<Attempt>();
  readonly #requests = new Map<number, (message: HostToInstance & { type: 'object' }) => void>();
  #nextRequest = 1;
  #pumping = false;
  #sleeping = false;
  /** A session from the server came while it slept: its sleep goes on, but nobody rings it. */
  #paused = false;
  #retiring = false;
  readonly #stopped = new Set<number>();
  #turnPending = false;
  /** Attempts that this instance has begun. */
  #used = 0;
  /** It has slept since its last attempt: the next claim is a warm start, not a takeover. */
  #rested = true;

  constructor(boot: InstanceBoot, app: AppDefinition, ports: RunnerPorts) {
    this.boot = boot;
    this.#app = app;
    this.#ports = ports;
    this.tables = buildTables(boot.manifest, boot.triggers, boot.tableVersion);
    const owner = boot.slot + 2;
    const pools = new Map(
      Object.entries(boot.pools).map(([name, { tickets, members }]) => [
        name,
        { tickets: new Tickets(tickets, owner), members: new Uint8Array(members) },
      ]),
    );
    const own = pools.get(boot.pool);
    assert(own !== undefined, 'an instance is of one of the pools of its host');
    this.#tickets = own.tickets;
    const bells = new Bells(boot.bells, ports.waits);
    this.#bells = bells;
    const { block } = ports.waits ?? ATOMICS_WAITS;
    this.#slab = new Slab(boot.slab, owner, { ring: () => void bells.ring(HOST_BELL), block });
    const ring = new EventRingWriter(boot.ring, () => bells.ring(HOST_BELL), ports.waits);
    this.#reporter = new Reporter(ring, bells, ports);
    this.#home = {
      app: boot.app,
      slab: this.#slab,
      bucketName: (index) => this.tables.buckets[index]?.name ?? '',
    };
    this.#contents = new Contents(this.#home, boot);
    this.#successors = new Successors({
      slot: boot.slot,
      tables: () => this.tables,
      slab: this.#slab,
      own,
      pools,
      bells,
      reporter: this.#reporter,
      direct: this.#direct,
    });
    this.#lane = new LaneNumbers(boot.laneBase, () => ports.post({ type: 'lane-base' }));
    this.#log = new InstanceLog(boot.instanceId, ports.epochMs, (entries) => ports.post({ type: 'logs', entries }));
    this.#classes = new TriggerClasses(app);
    this.#classes.check(boot.manifest);
    this.#watchesStarts = watchesStarts(this.tables);
    this.#handlers = this.tables.functions.map((row) => {
      const definition = app.functions[row.name];
      if (definition === undefined) throw new PlatformError('E_APP_INVALID', `the bundle has no function ${row.name}`);
      return definition.handler;
    });
  }

  /** Begins to take work. */
  start(): void {
    this.#pump();
  }

  /** The instance has (or no longer has) a connection of its own to the server. */
  connect(send: SendToServer | undefined): void {
    this.#direct.connect(send);
  }

  epochOf(monotonicMs: number): number {
    return this.#ports.epochMs() + (monotonicMs - this.#ports.monotonicMs());
  }

  receive(message: HostToInstance): void {
    switch (message.type) {
      case 'object': {
        const resolve = this.#requests.get(message.requestId);
        this.#requests.delete(message.requestId);
        resolve?.(message);
        break;
      }
      case 'abort':
        this.#abort(message);
        break;
      case 'stop-session':
        this.#stopSession(message.sessionNo, message.error);
        this.#ports.post({ type: 'stopped', sessionNo: message.sessionNo });
        break;
      case 'triggers':
        this.tables = buildTables(this.boot.manifest, message.triggers, message.version);
        this.#watchesStarts = watchesStarts(this.tables);
        break;
      case 'validate':
        void validateFor(this.#app, message).then((error) =>
          this.#ports.post({
            type: 'validated',
            requestId: message.requestId,
            ...(error === undefined ? {} : { error }),
          }),
        );
        break;
      case 'evaluate': {
        const result = this.#classes.evaluate(message.evaluation, message.values);
        this.#ports.post({ type: 'evaluated', requestId: message.requestId, result });
        break;
      }
      case 'lane-base':
        this.#lane.give(message.base);
        break;
      case 'retire':
        this.#retiring = true;
        if (this.#running.size === 0) this.#pump();
        break;
    }
  }

  /** A session that the server gave to this instance. If it is not free, the host queues it for whoever is. */
  receiveSession(message: ServerToHost & { type: 'session-start' }, blobs: readonly Uint8Array[]): void {
    const row = this.tables.functionByName.get(message.entries[0]?.function ?? '');
    const sessionNo = this.#lane.take();
    if (row === undefined || sessionNo === undefined) {
      // The server looks again when this connection ends, and asks the host.
      throw new PlatformError('E_PROTOCOL', 'this session cannot be begun here');
    }
    const now = this.#ports.monotonicMs();
    const ticket = laneTicket(message, blobs, row, sessionNo, this.tables.version, now);
    // Older offers first; if even older work waits in the host, this one waits there too.
    let startedAtMs = now;
    if (this.#tickets.readyCount > 0 || this.#successors.first !== undefined) {
      this.#pump();
      startedAtMs = this.#ports.monotonicMs();
    }
    const isLate = this.#ports.epochMs() - (message.givenAtMs ?? 0) > LANE_READ_MS_MAX;
    const free =
      !isLate &&
      this.#running.size === 0 &&
      this.#successors.first === undefined &&
      this.#tickets.backlog === 0 &&
      !this.#retiring;
    writeLane(this.#reporter.ring, ticket, free ? startedAtMs : undefined);
    this.#reporter.told(now, !free);
    if (!free) {
      this.#reporter.ringNow();
      return;
    }
    // While it runs nobody shall ring us for what we cannot take; who has done so already rang for somebody else.
    if (this.#sleeping && !this.#paused) {
      if (this.#bells.pause(this.boot.slot)) this.#paused = true;
      else this.#successors.passOn();
    }
    this.#run(this.#attemptOf(ticket), startedAtMs, true);
    this.#pump();
  }

  // ── what `ctx` does ────────────────────────────────────────────────────────────────────────────────────────────

  send(attempt: Attempt, bucket: BucketRow, value: unknown, options: SendOptions): void {
    this.#mustLive(attempt);
    if (bucket.validates) validateSend(this.#app, bucket.name, value);
    this.#send(attempt, bucket, this.#contents.encode(attempt, value, 'value'), options, attempt.step++);
  }

  call(attempt: Attempt, target: FunctionRow, value: unknown): void {
    this.#mustLive(attempt);
    const encoded = this.#contents.encode(attempt, value, 'value');
    const object = this.#contents.wire(attempt, CALL_BUCKET_INDEX, encoded, attempt.step++);
    const id = hashInts(attempt.id.hi, attempt.id.lo, object.step, CALL_TRIGGER);
    const firings = [{ trigger: CALL_TRIGGER, function: target.index, id }];
    // A repeated attempt may repeat itself: the host knows whether it was called before, and queues it if not.
    this.#tellSent(attempt, object, NO_FLAGS, firings, attempt.ticket.inline);
  }

  createObject(attempt: Attempt, bucket: BucketRow, name: string | undefined, content: unknown): GuestObject {
    this.#mustLive(attempt);
    return this.#contents.create(attempt, bucket.index, name, content, attempt.step++);
  }

  sendCreated(attempt: Attempt, object: GuestObject, options: SendOptions): void {
    this.#mustLive(attempt);
    const created = attempt.created?.find((candidate) => candidate.object === object);
    if (created === undefined || created.sent) {
      throw new PlatformError(
        'E_REQUEST_INVALID',
        created === undefined
          ? 'this object was not created by this invocation: send its value, or create a new one'
          : `object ${object.bucket}/${object.name} was sent already: it cannot change or go twice`,
      );
    }
    created.sent = true;
    const { wire } = object;
    const bucket = this.tables.buckets[wire.bucket] as BucketRow;
    if (bucket.validates) {
      validateSend(this.#app, bucket.name, wire.contentType === CONTENT_JSON ? object.json() : object.bytes);
    }
    const encoded = { contentType: wire.contentType, content: wire.content, alias: false, isSeen: true };
    this.#send(
      attempt,
      bucket,
      encoded,
      wire.name === undefined ? options : { ...options, name: wire.name },
      wire.step,
    );
  }

  join(attempt: Attempt, bucket: number, names: readonly string[]): void {
    this.#mustLive(attempt);
    const chars = names.reduce((sum, name) => sum + name.length, 3 * names.length);
    if (chars <= JOIN_INLINE_CHARS_MAX) this.note(attempt, { kind: 'join', bucket, names });
    else
      this.note(attempt, { kind: 'join', bucket, namesAt: this.#contents.copyIn(Buffer.from(JSON.stringify(names))) });
  }

  note(attempt: Attempt, note: Note): void {
    this.#mustLive(attempt);
    this.#direct.shared(attempt.sessionNo);
    writeNote(this.#reporter.ring, attempt, note);
    this.#reporter.told(this.#ports.monotonicMs(), true);
    if (!this.#pumping) this.#afterTurn();
  }

  async getObject(attempt: Attempt, bucket: BucketRow, name: string): Promise<GuestObject> {
    this.#mustLive(attempt);
    if (this.#requests.size >= REQUESTS_MAX) {
      throw new PlatformError('E_QUOTA_EXCEEDED', `more than ${REQUESTS_MAX} ctx.getObject wait at once`, {
        retryAfterMs: 100,
      });
    }
    const requestId = this.#nextRequest++;
    const answer = new Promise<HostToInstance & { type: 'object' }>((resolve) => {
      this.#requests.set(requestId, resolve);
    });
    this.#reporter.heard();
    this.#ports.post({ type: 'get-object', requestId, sessionNo: attempt.sessionNo, bucket: bucket.index, name });
    const { object, error } = await answer;
    if (object === undefined) throw fromErrorData(error ?? { code: 'E_OBJECT_UNKNOWN', message: `no object ${name}` });
    return new GuestObject(object, attempt.ticket.session, this.#home);
  }

  /** @param attempt undefined: whichever runs, if it is only one. */
  log(
    level: LogEntry['level'],
    message: string,
    fields: Readonly<Record<string, unknown>> | undefined,
    attempt: Attempt | undefined,
  ): void {
    const [only] = this.#running;
    this.#log.add(level, message, fields, attempt ?? (this.#running.size === 1 ? only : undefined));
    this.#afterTurn();
  }

  // ── the loop ───────────────────────────────────────────────────────────────────────────────────────────────────

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    const sliceEndsMs = this.#ports.monotonicMs() + SLICE_MS;
    for (;;) {
      if (!this.#takeOne()) break;
      if (this.#ports.monotonicMs() < sliceEndsMs) continue;
      // (RU2) Older offers first, then the event loop, then we go on.
      if (this.#tickets.readyCount > 0) this.#successors.offerKept();
      this.#pumping = false;
      this.#afterTurn();
      return;
    }
    this.#pumping = false;
    if (this.#running.size === 0) this.#rest();
    else this.#afterTurn();
  }

  /** @returns whether an attempt was begun. */
  #takeOne(): boolean {
    const kept = this.#successors.first;
    if (kept !== undefined && this.#accepts(kept.function)) {
      this.#successors.shift();
      this.#begin(kept, INLINE, -1);
      return true;
    }
    if (this.#retiring || this.#tickets.readyCount <= 0) return false;
    const claimed = this.#tickets.claim(this.#acceptsBound);
    if (claimed === undefined) return false;
    const { block } = claimed;
    // The host fills up while this one runs.
    if (this.#tickets.backlog > 0 && this.#tickets.readyCount <= OFFERS_LOW) this.#reporter.ringNow();
    const ticket = readTicket(new ByteReader(block === undefined ? claimed.body : this.#slab.buffer(block)));
    if (this.#stopped.has(ticket.sessionNo)) {
      this.#tickets.done(claimed.slot);
      if (block !== undefined) this.#slab.free(block);
    } else this.#begin(ticket, this.#startKind(ticket), claimed.slot, block);
    return true;
  }

  #startKind(ticket: Ticket): number {
    if (this.#used === 0) return ticket.queuedAtMs <= this.boot.requestedAtMs ? COLD : PREWARMED;
    return this.#rested ? WARM : TAKEOVER;
  }

  /** One invocation at a time, unless every one that would then run here allows more. */
  #accepts(functionIndex: number): boolean {
    const running = this.#running.size;
    if (running === 0) return true;
    if ((this.tables.functions[functionIndex]?.concurrency ?? 1) <= running) return false;
    return this.#mayAcceptMore();
  }

  readonly #acceptsBound = (functionIndex: number): boolean => this.#accepts(functionIndex);

  #mayAcceptMore(): boolean {
    for (const attempt of this.#running) if (attempt.row.concurrency <= this.#running.size) return false;
    return true;
  }

  /** @param slot what it was claimed from, with its block; -1: it was kept here. */
  #begin(ticket: Ticket, start: number, slot: number, block?: TicketBlock): void {
    const attempt = this.#attemptOf(ticket);
    const now = this.#ports.monotonicMs();
    writeStarted(this.#reporter.ring, attempt, start, now);
    if (slot >= 0) this.#tickets.done(slot);
    // Before the handler runs: it may end this thread.
    if (block !== undefined) this.#slab.free(block);
    this.#reporter.told(now, false);
    this.#run(attempt, now, false);
  }

  #attemptOf(ticket: Ticket): Attempt {
    const row = this.tables.functions[ticket.function] as FunctionRow;
    return new Attempt(
      ticket,
      row,
      ticket.inputs.map((wire) => new GuestObject(wire, ticket.session, this.#home)),
    );
  }

  /** Its beginning was told. @param given by the server itself. */
  #run(attempt: Attempt, nowMs: number, given: boolean): void {
    this.#used++;
    this.#rested = false;
    if (attempt.ticket.direct && !this.#watchesStarts) this.#direct.begun(attempt.ticket, nowMs, given);
    this.#running.add(attempt);
    try {
      const result = this.#invoke(attempt);
      if (isThenable(result)) {
        // A thenable of the user's may settle twice, or with another one: a promise does neither.
        Promise.resolve(result).then(
          (value) => this.#end(attempt, undefined, value),
          (thrown: unknown) => this.#end(attempt, thrown ?? new Error('rejected with nothing'), undefined),
        );
        return;
      }
      this.#finish(attempt, undefined, result);
    } catch (thrown) {
      this.#finish(attempt, thrown ?? new Error('thrown: nothing'), undefined);
    }
  }

  #invoke(attempt: Attempt): unknown {
    if (this.boot.verifyObjects) for (const input of attempt.inputs) verifyUnchanged(input);
    const handler = this.#handlers[attempt.ticket.function] as (ctx: unknown, inputs: unknown) => unknown;
    const checked = attempt.row.validates ? validateInput(this.#app, attempt) : undefined;
    if (checked !== undefined) return checked.then(() => handler(new Context(this, attempt), attempt.inputs));
    return handler(new Context(this, attempt), attempt.inputs);
  }

  /** An attempt ended in a later turn: go on with what waits. */
  #end(attempt: Attempt, thrown: unknown, value: unknown): void {
    this.#finish(attempt, thrown, value);
    this.#pump();
  }

  #finish(attempt: Attempt, thrown: unknown, value: unknown): void {
    const { ticket } = attempt;
    const now = this.#ports.monotonicMs();
    this.#running.delete(attempt);
    let error: string | undefined;
    let result: StoredObject | undefined;
    if (thrown !== undefined) error = failureJson(thrown);
    else if (ticket.wantsResult && value !== undefined) {
      try {
        result = this.#contents.resultOf(attempt, value);
      } catch (refused) {
        error = failureJson(refused);
      }
    }
    attempt.done = true;
    this.#contents.freeUnsent(attempt);
    this.#successors.learn(attempt, now);
    const isOpen = error !== undefined || attempt.aborted !== undefined || attempt.row.reruns.length > 0;
    const answer = this.#direct.ended(ticket, isOpen, result, now);
    const isAnswer = typeof answer === 'object';
    writeEnded(this.#reporter.ring, attempt, now, error, result, isAnswer && answer.message.account !== undefined);
    // After the record (RP1).
    if (isAnswer) this.#direct.send(answer);
    // A session does not end before its successors: whoever ends those that live rings, if they can have begun at all.
    const outlived =
      attempt.lastSendMs > 0 && (this.#successors.first !== undefined || now - attempt.lastSendMs < HOP_MS);
    const leavesNews = error !== undefined || !outlived;
    this.#reporter.told(now, leavesNews && answer === undefined);
  }

  /** Nothing runs and nothing can be taken. */
  #rest(): void {
    this.#reporter.turnEnds();
    this.#log.flush();
    if (this.#retiring) {
      this.#reporter.ringNow();
      this.#ports.post({ type: 'retired' });
      return;
    }
    this.#rested = true;
    if (!this.#sleep()) this.#ports.afterTurn(() => this.#pump());
  }

  /** @returns false when there are offers. */
  #sleep(): boolean {
    if (!this.#sleeping) {
      this.#sleeping = this.#bells.sleep(this.boot.slot, this.#hasOffers, this.#wake);
      return this.#sleeping;
    }
    if (!this.#paused) return true;
    if (!this.#bells.resume(this.boot.slot, this.#hasOffers)) return false;
    this.#paused = false;
    return true;
  }

  readonly #hasOffers = (): boolean => this.#tickets.readyCount > 0;

  readonly #wake = (): void => {
    this.#sleeping = false;
    this.#paused = false;
    this.#pump();
    if (this.#running.size > 0 && this.#tickets.readyCount > 0) this.#successors.passOn();
  };

  #afterTurn(): void {
    if (this.#turnPending) return;
    this.#turnPending = true;
    this.#ports.afterTurn(this.#onTurn);
  }

  /** The event loop has its turn: what could not be run here by now is for whoever can. */
  readonly #onTurn = (): void => {
    this.#turnPending = false;
    this.#log.flush();
    const kept = this.#successors.first;
    if (kept !== undefined && this.#running.size > 0 && !this.#accepts(kept.function)) this.#successors.offerKept();
    if (this.#running.size === 0) {
      this.#pump();
      return;
    }
    // The host hears soon what runs here, to watch over its time.
    this.#reporter.turnEnds();
    if (this.#mayAcceptMore()) this.#pumpAndDoze();
  };

  /** With `concurrency` above 1 an instance that awaits can take more: it must be woken for it. */
  #pumpAndDoze(): void {
    while (this.#takeOne()) {
      if (this.#mayAcceptMore()) continue;
      this.#afterTurn();
      return;
    }
    if (!this.#retiring) this.#sleep();
    // What is on offer may be of functions that this instance cannot take now: whoever ends first looks again.
  }

  // ── the rest ───────────────────────────────────────────────────────────────────────────────────────────────────

  #send(attempt: Attempt, bucket: BucketRow, encoded: Encoded, options: SendOptions, step: number): void {
    const object = this.#contents.wire(attempt, bucket.index, encoded, step, options);
    const output = options.output === true;
    const persist = options.persist === true;
    const { ticket } = attempt;
    // A name must be claimed first, and a repeated attempt may repeat itself: both need the host.
    const inline =
      bucket.inline &&
      options.name === undefined &&
      !output &&
      !persist &&
      ticket.inline &&
      ticket.tableVersion === this.tables.version;
    this.#tellSent(attempt, object, { output, persist }, inline ? firingsOf(bucket, object) : undefined);
  }

  #tellSent(
    attempt: Attempt,
    object: StoredObject,
    flags: { readonly output: boolean; readonly persist: boolean },
    firings: readonly InlineFiring[] | undefined,
    inline = firings !== undefined,
  ): void {
    const now = this.#ports.monotonicMs();
    writeSent(this.#reporter.ring, attempt, object, flags, now, firings);
    if (firings === undefined || !inline) {
      if (flags.output) this.#direct.output(attempt.sessionNo, object, now);
      else this.#direct.shared(attempt.sessionNo);
    } else {
      this.#direct.sent(attempt.sessionNo);
      // Whoever shall run it is woken before the host is.
      if (firings.length > 0) this.#successors.add(attempt, object, firings, now);
    }
    this.#reporter.told(now, !inline);
    // The loop itself sees to what comes after it.
    if (!this.#pumping) this.#afterTurn();
  }

  #mustLive(attempt: Attempt): void {
    if (attempt.aborted !== undefined) throw fromErrorData(attempt.aborted);
    if (attempt.done) {
      throw new PlatformError(
        'E_FENCED',
        `${attempt.row.name} has returned already: await what it starts before it returns`,
      );
    }
  }

  #abort(message: HostToInstance & { type: 'abort' }): void {
    this.#successors.withdraw((ticket) => same(ticket, message));
    for (const attempt of this.#running) {
      if (!same(attempt.ticket, message) || attempt.aborted !== undefined) continue;
      abort(attempt, message.error);
    }
  }

  #stopSession(sessionNo: number, error: ErrorData): void {
    this.#stopped.add(sessionNo);
    if (this.#stopped.size > STOPPED_SESSIONS_MAX) {
      for (const oldest of this.#stopped) {
        this.#stopped.delete(oldest);
        break;
      }
    }
    this.#successors.withdraw((ticket) => ticket.sessionNo === sessionNo);
    for (const attempt of this.#running) {
      if (attempt.sessionNo === sessionNo && attempt.aborted === undefined) abort(attempt, error);
    }
  }
}

function abort(attempt: Attempt, error: ErrorData): void {
  attempt.aborted = error;
  attempt.controller?.abort(fromErrorData(error));
}

function watchesStarts({ buckets }: AppTables): boolean {
  return buckets.some(({ triggers }) =>
    triggers.some(({ spec }) => spec.kind === 'custom' && spec.sources !== undefined),
  );
}

const NO_FLAGS = { output: false, persist: false };

function firingsOf(bucket: BucketRow, object: StoredObject): InlineFiring[] {
  const firings: InlineFiring[] = [];
  for (const trigger of bucket.triggers) {
    for (let i = 0; i < trigger.run.length; i++) {
      firings.push({
        trigger: trigger.index,
        function: trigger.run[i] as number,
        id: objectFiringId(object, trigger.index, i),
      });
    }
  }
  return firings;
}

function same(ticket: Ticket, message: { sessionNo: number; hi: number; lo: number; fence: number }): boolean {
  return (
    ticket.sessionNo === message.sessionNo &&
    ticket.id.hi === message.hi &&
    ticket.id.lo === message.lo &&
    ticket.fence <= message.fence
  );
}

function verifyUnchanged(input: GuestObject): void {
  const { checksum, content } = input.wire;
  if (checksum === undefined || checksum === 0 || !isSlabRef(content)) return;
  if (checksumOf(input.bytes) === checksum) return;
  throw new PlatformError(
    'E_CHECKSUM',
    `object ${input.bucket}/${input.name} was changed after it was sent: objects are read-only from then on; use .copy()`,
  );
}
