// A running or ended session, seen from outside.

import { PlatformError } from '../base/index.ts';
import type { SessionRecord, SessionTrace } from '../protocol/index.ts';
import { readEvents } from './event-stream.ts';
import { RESULT_WAIT_MS } from './limits.ts';
import { errorOfProblem } from './problem.ts';
import { Reconnect } from './reconnect.ts';
import { decodeBody, pathOf, type Transport } from './transport.ts';

/** One output object of a session. */
export interface SessionOutput<V = unknown> {
  /** 1, 2, 3, … in its session. */
  readonly n: number;
  readonly bucket: string;
  readonly name: string;
  /** Bytes of the object as it was sent. */
  readonly size: number;
  readonly contentType: string;
  /** A JSON value, or a Uint8Array; undefined when `large: 'href'` left a large one with the server. */
  readonly value: V;
  /** Where a large object is, below the server's address. */
  readonly href?: string;
}

export interface OutputsOptions {
  readonly signal?: AbortSignal;
  /** Skips what came up to and with this `n`. Default 0: replays from the first. */
  readonly after?: number;
  /** `fetch` (default) loads objects that are too large for the stream; `href` leaves them where they are. */
  readonly large?: 'fetch' | 'href';
}

export class SessionHandle<O = any> {
  readonly session: string;
  readonly #transport: Transport;

  constructor(transport: Transport, session: string) {
    this.#transport = transport;
    this.session = session;
  }

  /**
   * What the synchronous call would have answered; waits as long as it takes. Lost connections are repeated for
   * about 15 s. Repeatable: every call gives the same.
   * @throws the error that ended the session; E_SESSION_LOST, E_SESSION_UNKNOWN.
   */
  async result(options: { readonly signal?: AbortSignal } = {}): Promise<O> {
    const reconnect = new Reconnect(this.#transport);
    for (;;) {
      try {
        const response = await this.#transport.request('GET', this.#path('result'), {
          query: { waitMs: RESULT_WAIT_MS },
          signal: options.signal,
        });
        if (response.status !== 202) return (await decodeBody(response)) as O;
        await response.arrayBuffer();
        reconnect.progressed();
      } catch (thrown) {
        await reconnect.waitOrThrow(thrown, options.signal);
      }
    }
  }

  /**
   * The session's output objects, those from before the call first, until the session ends; each exactly once, in
   * order, over lost connections too. How the session ended is for `result()` to say.
   */
  async *outputs<V = any>(options: OutputsOptions = {}): AsyncGenerator<SessionOutput<V>, void, undefined> {
    const reconnect = new Reconnect(this.#transport);
    let last = options.after ?? 0;
    for (;;) {
      try {
        const response = await this.#transport.request('GET', this.#path('outputs'), {
          headers: { accept: 'text/event-stream', ...(last > 0 ? { 'last-event-id': String(last) } : {}) },
          signal: options.signal,
        });
        for await (const { event, data, id } of readEvents(bodyOf(response))) {
          reconnect.progressed();
          if (event === 'end') return;
          if (event === 'problem') throw errorOfProblem(JSON.parse(data));
          const n = Number(id);
          if (event !== 'output' || n <= last) continue;
          const output = await this.#outputOf<V>(n, data, options);
          last = n;
          yield output;
        }
        // The stream ended before the session did.
        throw new PlatformError('E_SERVER_UNREACHABLE', `The output stream of session ${this.session} broke off.`);
      } catch (thrown) {
        await reconnect.waitOrThrow(thrown, options.signal);
      }
    }
  }

  /** Repeatable. Running attempts are aborted; what they sent before counts. */
  cancel(): Promise<void> {
    return this.#transport.done('DELETE', this.#path());
  }

  info(): Promise<SessionRecord> {
    return this.#transport.json('GET', this.#path());
  }

  trace(): Promise<SessionTrace> {
    return this.#transport.json('GET', this.#path('trace'));
  }

  /** From outside what `ctx.closeGroup(bucket)` does. */
  close(bucket: string): Promise<void> {
    return this.#transport.done('POST', this.#path('buckets', bucket, 'close'));
  }

  /** From outside what `ctx.join(bucket, names | count)` does. */
  join(bucket: string, expected: readonly string[] | number): Promise<void> {
    const body = typeof expected === 'number' ? { count: expected } : { names: expected };
    return this.#transport.done('POST', this.#path('buckets', bucket, 'join'), {
      body: { contentType: 'application/json', content: new TextEncoder().encode(JSON.stringify(body)) },
    });
  }

  /** Resumes a parked session, else starts the same again. */
  async retry(): Promise<SessionHandle<O>> {
    const { session } = await this.#transport.json<{ session: string }>('POST', this.#path('retry'));
    return new SessionHandle(this.#transport, session);
  }

  /** Starts the same again as a new session. */
  async fork(): Promise<SessionHandle<O>> {
    const { session } = await this.#transport.json<{ session: string }>('POST', this.#path('fork'));
    return new SessionHandle(this.#transport, session);
  }

  #path(...rest: readonly string[]): string {
    return pathOf('sessions', this.session, ...rest);
  }

  async #outputOf<V>(n: number, data: string, options: OutputsOptions): Promise<SessionOutput<V>> {
    const event = JSON.parse(data) as OutputEventData;
    const { bucket, name, size, contentType, href } = event;
    let value: unknown;
    if (event.base64 !== undefined) value = bytesOfBase64(event.base64);
    else if (href === undefined) value = event.json;
    else if (options.large !== 'href') {
      value = await decodeBody(await this.#transport.request('GET', href, { signal: options.signal }));
    }
    return { n, bucket, name, size, contentType, value: value as V, ...(href === undefined ? {} : { href }) };
  }
}

interface OutputEventData {
  readonly bucket: string;
  readonly name: string;
  readonly size: number;
  readonly contentType: string;
  readonly json?: unknown;
  readonly base64?: string;
  readonly href?: string;
}

export function bodyOf(response: Response): ReadableStream<Uint8Array> {
  return response.body ?? new ReadableStream({ start: (controller) => controller.close() });
}

function bytesOfBase64(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
