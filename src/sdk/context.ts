// What a handler can do. Interfaces only: the executor implements them.

import type { EpheObject } from './ephe-object.ts';

export interface SendOptions {
  /** Default `<invocation>.<step>`. */
  readonly name?: string | undefined;
  readonly group?: string | undefined;
  /** Also an output of the session: what a synchronous caller waits for. */
  readonly output?: boolean | undefined;
  /** Keeps it under (bucket, name) after the session. */
  readonly persist?: boolean | undefined;
}

/** The name was chosen when the object was created. */
export type SendObjectOptions = Omit<SendOptions, 'name'>;

export type LogFields = Readonly<Record<string, unknown>>;

/** `ctx.log('text')` is `ctx.log.info('text')`. */
export interface Log {
  (message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

/** What an instance has before its first invocation: the argument of `init`. */
export interface InitCtx {
  /** What the app declares under `env`, and nothing else of the server's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly log: Log;
}

/** Context of `fn`: nothing here survives a crash of the app's host. */
export interface Ctx extends InitCtx {
  readonly session: string;
  /** The same in every attempt. */
  readonly invocation: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** Milliseconds since 1970; Infinity if there is none. */
  readonly deadline: number;
  /** Aborted at the deadline, on cancellation, and when another attempt has overtaken this one. */
  readonly signal: AbortSignal;
  readonly state: ReadableState;

  /**
   * Makes an object that is not sent yet. A number is a size in bytes: fill `.bytes`, then `sendObject`. To store a number
   * as a value use `send`.
   */
  createObject(bucket: string, size: number): EpheObject;
  createObject<V>(bucket: string, value: V): EpheObject<V>;
  createObject(bucket: string, name: string | undefined, size: number): EpheObject;
  createObject<V>(bucket: string, name: string | undefined, value: V): EpheObject<V>;
  /** From here on nobody writes to `object.bytes`. */
  sendObject(object: EpheObject, options?: SendObjectOptions): void;
  /** An object of this session, or the app's persisted one. Rejects with E_OBJECT_UNKNOWN if there is none yet. */
  getObject<V = any>(bucket: string, name: string): Promise<EpheObject<V>>;
  /** Bytes stay bytes, anything else travels as JSON. It counts at once, even if this attempt fails later. */
  send(bucket: string, value: unknown, options?: SendOptions): void;
  /** Sends an output of the session. The first one answers a synchronous caller. */
  output(value: unknown, options?: Omit<SendOptions, 'output'>): void;
  /** Fires a function of this app once, without a declared bucket. */
  call(functionName: string, value?: unknown): void;
  /** Tells the bucket's dynamicJoin what to wait for: these names, or the first so many objects. */
  join(bucket: string, namesOrCount: readonly string[] | number): void;
  /** No more will come into the bucket's dynamicGroup; later sends into it fail. */
  closeGroup(bucket: string): void;
}

/** Context of `durable`: what it does survives crashes, exactly once. */
export interface DurableCtx extends Ctx {
  readonly state: DurableState;

  /**
   * Runs an outside effect and records what it gave. It happens at least once: hand `idempotencyKey`, which is the same in
   * every attempt, to whoever can drop repetitions.
   *
   * @param name for people; repetitions of one name are told apart by their order.
   */
  step<R>(name: string, effect: (step: StepCtx) => R | Promise<R>, options?: StepOptions): Promise<R>;
  /** Calls a function of this app and waits for what it returns. */
  invoke<R = any>(functionName: string, input?: unknown): Promise<R>;
  /** Holds no instance while it waits. */
  sleep(ms: number): Promise<void>;
  /**
   * Waits for an object from outside or from another session, whether it came before or comes later. Removes nothing and
   * holds no instance. Rejects with E_TIMEOUT.
   */
  take<V = any>(bucket: string, name: string, options?: TakeOptions): Promise<EpheObject<V>>;
  /** Milliseconds since 1970; the same in every attempt. */
  now(): number;
  /** 0 to 1; the same in every attempt. */
  random(): number;
  /** The same in every attempt. */
  uuid(): string;
  /** From here on reads see everything that finished anywhere before this call. */
  sync(): Promise<void>;
}

export interface StepCtx {
  readonly idempotencyKey: string;
  /** 1 for the first. */
  readonly attempt: number;
}

export interface StepOptions {
  readonly retries?: number | { readonly max: number; readonly minMs: number; readonly maxMs: number } | undefined;
  readonly timeoutMs?: number | undefined;
  /** Its effect may happen again after a crash, so the next step does not wait until this one is durable. */
  readonly repeatable?: boolean | undefined;
}

export interface TakeOptions {
  readonly timeoutMs?: number | undefined;
}

export interface StateQuery {
  /** Keys that begin with it; '' is all. */
  readonly prefix: string;
  readonly limit?: number | undefined;
  /** `cursor` of the page before. */
  readonly cursor?: string | undefined;
}

export interface StatePage<V = any> {
  readonly entries: readonly { readonly key: string; readonly value: V }[];
  /** Absent on the last page. */
  readonly cursor?: string;
}

export interface ReadableState {
  get<V = any>(key: string): Promise<V | undefined>;
  /** In the order of the keys. */
  query<V = any>(query: StateQuery): Promise<StatePage<V>>;
}

export interface StateTransaction extends ReadableState {
  put(key: string, value: unknown): Promise<void>;
  delete(key: string): Promise<void>;
  /** `change` is repeated when another invocation came between: it must not do anything else. */
  update<V = any>(key: string, change: (old: V | undefined) => V): Promise<V>;
}

export interface DurableState extends StateTransaction {
  /** Several keys, all or nothing. `body` is repeated when another invocation came between. */
  transaction<R>(body: (tx: StateTransaction) => R | Promise<R>): Promise<R>;
}
