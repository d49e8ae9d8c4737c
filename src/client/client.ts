// `connect`: one app of one server, typed by the app's own module.

import { PlatformError } from '../base/index.ts';
import type { AnyApp, BucketsOf, FunctionsOf, InOf, NameOf, OutOf } from './app-types.ts';
import { bodyOf, SessionHandle } from './session-handle.ts';
import { StateClient } from './state-client.ts';
import {
  type ConnectionOptions,
  decodeBody,
  encodeBody,
  isHeadersTimeout,
  pathOf,
  type RequestOptions,
  Transport,
} from './transport.ts';

export interface ConnectOptions<A extends AnyApp = AnyApp> extends ConnectionOptions {
  /** Name of a deployed app: the first argument of its `app(...)`. */
  readonly app: NameOf<A>;
}

export interface StartOptions {
  /** The session's deadline; E_TIMEOUT and the rest is cancelled when it passes. */
  readonly timeoutMs?: number;
  /** Higher goes first among sessions that wait. */
  readonly priority?: number;
  readonly delayMs?: number;
  /** `none`: the start is not written before it is acknowledged. */
  readonly durability?: 'none';
  /** Same key and input: the same session, however often it is called, for 24 h. */
  readonly idempotencyKey?: string;
  /** For looking sessions up. */
  readonly tags?: Readonly<Record<string, string>>;
  /** Aborts the wait, not the session. */
  readonly signal?: AbortSignal;
}

type NamesOf<T> = keyof T & string;

/** One of several entries; the input's type follows from the function's name. */
export type EntryOf<F> = { [K in NamesOf<F>]: { readonly function: K; readonly input?: InOf<F[K]> } }[NamesOf<F>];

export interface PutResult {
  readonly session: string;
  /** The same object was there already; nothing was triggered again. */
  readonly duplicate: boolean;
}

export interface PutOptions {
  /** Into this session; without it a session of its own is opened. */
  readonly session?: string;
  readonly group?: string;
  /** The new session stays open for more objects until a close or join, or until nothing came for `idleTimeoutMs`. */
  readonly open?: boolean;
  readonly idleTimeoutMs?: number;
  readonly signal?: AbortSignal;
}

export interface GetOptions {
  /** Without it: the newest persisted object of that name. */
  readonly session?: string;
  /** Bytes from `start` to `end`, both inclusive, as HTTP counts; then the answer is a Uint8Array. */
  readonly range?: { readonly start: number; readonly end?: number };
  readonly signal?: AbortSignal;
}

export interface Client<A extends AnyApp = AnyApp> {
  readonly app: NameOf<A>;
  readonly url: string;
  /** State of the app. */
  readonly state: StateClient;

  /**
   * Calls a function and waits for the answer: the session's first output, else the function's return value. A type
   * argument says what the first output is. Bytes in and out are Uint8Array, everything else is JSON; `input` may
   * also be a Blob or a ReadableStream of bytes.
   */
  invoke<R = never, K extends NamesOf<FunctionsOf<A>> = NamesOf<FunctionsOf<A>>>(
    f: K,
    input?: InOf<FunctionsOf<A>[K]>,
    options?: StartOptions,
  ): Promise<[R] extends [never] ? OutOf<FunctionsOf<A>[K]> : R>;

  /** Starts a session and returns when the server keeps it. */
  start<R = never, K extends NamesOf<FunctionsOf<A>> = NamesOf<FunctionsOf<A>>>(
    f: K,
    input?: InOf<FunctionsOf<A>[K]>,
    options?: StartOptions,
  ): Promise<SessionHandle<[R] extends [never] ? OutOf<FunctionsOf<A>[K]> : R>>;

  /** One session with several entry functions; their inputs are JSON values. */
  startMany<R = any>(entries: readonly EntryOf<FunctionsOf<A>>[], options?: StartOptions): Promise<SessionHandle<R>>;

  /** Data from outside: drives the bucket's triggers as if a function had sent it. */
  put(bucket: NamesOf<BucketsOf<A>>, name: string, value: unknown, options?: PutOptions): Promise<PutResult>;
  /** An object's value: a Uint8Array, or what its JSON says. */
  get<T = any>(bucket: NamesOf<BucketsOf<A>>, name: string, options?: GetOptions): Promise<T>;
  /** The same as a stream of bytes, for objects that should not be in memory as a whole. */
  getStream(
    bucket: NamesOf<BucketsOf<A>>,
    name: string,
    options?: GetOptions,
  ): Promise<{ contentType: string; size: number | undefined; stream: ReadableStream<Uint8Array> }>;

  /** From outside what `ctx.closeGroup` does. */
  close(bucket: NamesOf<BucketsOf<A>>, options: { readonly session: string }): Promise<void>;
  /** From outside what `ctx.join` does. */
  join(
    bucket: NamesOf<BucketsOf<A>>,
    expected: readonly string[] | number,
    options: { readonly session: string },
  ): Promise<void>;
  /** A session by its id; nothing is asked of the server yet. */
  handle<R = any>(session: string): SessionHandle<R>;
}

/**
 * @example
 * const c = connect<typeof import('./app.ts').default>({ app: 'ad-events' });
 * await c.invoke('preprocess', [{ type: 'purchase' }]);
 */
export function connect<A extends AnyApp = AnyApp>(options: ConnectOptions<A>): Client<A> {
  // AppClient knows names as strings only; Client<A> narrows them.
  return new AppClient(new Transport(options), options.app) as unknown as Client<A>;
}

class AppClient {
  readonly app: string;
  readonly state: StateClient;
  readonly #transport: Transport;

  constructor(transport: Transport, app: string) {
    this.#transport = transport;
    this.app = app;
    this.state = new StateClient(transport, app);
  }

  get url(): string {
    return this.#transport.url;
  }

  async invoke(f: string, input?: unknown, options: StartOptions = {}): Promise<unknown> {
    const request = this.#startRequest(f, input, options, 'sync');
    for (;;) {
      try {
        return await decodeBody(await this.#transport.request('POST', request.path, request));
      } catch (thrown) {
        if (!isHeadersTimeout(thrown)) throw thrown;
        // With a key the repeated call joins the session that still runs.
        if (options.idempotencyKey !== undefined && !(input instanceof ReadableStream)) continue;
        throw new PlatformError(
          'E_TIMEOUT',
          `No answer of ${f} within the time that fetch waits; the session goes on. For calls this long use ` +
            'start() and its result(), or give an idempotencyKey.',
          { cause: thrown },
        );
      }
    }
  }

  async start(f: string, input?: unknown, options: StartOptions = {}): Promise<SessionHandle> {
    const request = this.#startRequest(f, input, options, 'async');
    const { session } = await this.#transport.json<{ session: string }>('POST', request.path, request);
    return this.handle(session);
  }

  async startMany(
    entries: readonly { function: string; input?: unknown }[],
    options: StartOptions = {},
  ): Promise<SessionHandle> {
    const request = this.#entriesRequest(entries, options);
    const { session } = await this.#transport.json<{ session: string }>('POST', request.path, request);
    return this.handle(session);
  }

  put(bucket: string, name: string, value: unknown, options: PutOptions = {}): Promise<PutResult> {
    const { session, group, open, idleTimeoutMs, signal } = options;
    return this.#transport.json('POST', this.#objectPath(bucket, name), {
      query: { session, group, open: open === true ? true : undefined, idleTimeoutMs },
      // An empty value is an object too: bytes of length 0.
      body: encodeBody(value, 'value'),
      signal,
    });
  }

  async get(bucket: string, name: string, options: GetOptions = {}): Promise<unknown> {
    const response = await this.#getObject(bucket, name, options);
    // Part of a JSON text is bytes.
    return options.range === undefined ? decodeBody(response) : new Uint8Array(await response.arrayBuffer());
  }

  async getStream(bucket: string, name: string, options: GetOptions = {}) {
    const response = await this.#getObject(bucket, name, options);
    const length = response.headers.get('content-length');
    return {
      contentType: response.headers.get('content-type') ?? 'application/octet-stream',
      size: length === null ? undefined : Number(length),
      stream: bodyOf(response),
    };
  }

  close(bucket: string, options: { session: string }): Promise<void> {
    return this.handle(options.session).close(bucket);
  }

  join(bucket: string, expected: readonly string[] | number, options: { session: string }): Promise<void> {
    return this.handle(options.session).join(bucket, expected);
  }

  handle(session: string): SessionHandle {
    return new SessionHandle(this.#transport, session);
  }

  #getObject(bucket: string, name: string, { session, range, signal }: GetOptions): Promise<Response> {
    return this.#transport.request('GET', this.#objectPath(bucket, name), {
      query: { session },
      ...(range === undefined ? {} : { headers: { range: `bytes=${range.start}-${range.end ?? ''}` } }),
      signal,
    });
  }

  #objectPath(bucket: string, name: string): string {
    return pathOf('apps', this.app, 'buckets', bucket, 'objects', name);
  }

  #startRequest(f: string, input: unknown, options: StartOptions, mode: Mode): RequestOptions & { path: string } {
    const { tags = {} } = options;
    return {
      path: pathOf('apps', this.app, 'functions', f),
      query: { ...startQuery(options, mode), tag: Object.entries(tags).map(([key, value]) => `${key}=${value}`) },
      headers: startHeaders(options),
      // No input is an empty body: then the function's inputs are [].
      body: input === undefined ? undefined : encodeBody(input, 'input'),
      signal: options.signal,
    };
  }

  #entriesRequest(
    entries: readonly { function: string; input?: unknown }[],
    options: StartOptions,
  ): RequestOptions & { path: string } {
    const { tags } = options;
    // Bytes in an entry are refused by the encoder, with the path to them.
    return {
      path: pathOf('apps', this.app, 'sessions'),
      query: startQuery(options, 'async'),
      headers: startHeaders(options),
      body: encodeBody({ entries, ...(tags === undefined ? {} : { tags }) }, 'session'),
      signal: options.signal,
    };
  }
}

type Mode = 'sync' | 'async';

function startQuery({ timeoutMs, priority, delayMs, durability }: StartOptions, mode: Mode) {
  return { mode, timeoutMs, priority, delayMs, durability };
}

function startHeaders({ idempotencyKey }: StartOptions): Record<string, string> {
  return idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey };
}
