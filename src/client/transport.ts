// One request and its answer over fetch. Owns addresses, the token, and how failures become PlatformErrors.

import { PlatformError } from '../base/index.ts';
import { CONTENT_BYTES, encodeValue, isJsonType } from '../protocol/index.ts';
import { DEFAULT_URL, RETRIES_MAX, RETRY_AFTER_MS_MAX } from './limits.ts';
import { pause } from './pause.ts';
import { errorOfResponse } from './problem.ts';

export interface ConnectionOptions {
  /** Default `http://127.0.0.1:7070`. */
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  /**
   * Repeats calls that were refused at the door (429, 503 with a time to wait) up to 5 times. Off by default.
   * A call that began is never repeated by it.
   */
  readonly retry?: boolean | { readonly max: number } | undefined;
  /** Instead of the global fetch. */
  readonly fetch?: typeof fetch | undefined;
}

export interface RequestOptions {
  /** A list gives its name several times. */
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>> | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** What encodeBody made. */
  readonly body?: EncodedBody | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface EncodedBody {
  readonly contentType: string;
  readonly content: Uint8Array | Blob | ReadableStream<Uint8Array>;
}

/** Bytes that need not be in memory as a whole. */
export type StreamedBytes = Blob | ReadableStream<Uint8Array>;

export class Transport {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #retriesMax: number;
  readonly #fetch: typeof fetch;
  #wasReached = false;

  constructor(options: ConnectionOptions) {
    this.url = checkedUrl(options.url ?? DEFAULT_URL);
    this.#token = options.token;
    this.#retriesMax = retriesOf(options.retry);
    this.#fetch = options.fetch ?? ((...request) => globalThis.fetch(...request));
  }

  /** True once any request got an answer: then a refused connection is worth a wait. */
  get wasReached(): boolean {
    return this.#wasReached;
  }

  /**
   * @param path begins with `/`, segments already encoded.
   * @returns the answer if its status is below 400; its body is not read yet.
   * @throws the PlatformError that the server sent; E_SERVER_UNREACHABLE (transient) without an answer; the signal's
   *   reason when it was aborted.
   */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<Response> {
    for (let attempt = 0; ; attempt++) {
      const response = await this.#fetchOnce(method, path, options);
      if (response.status < 400) return response;
      const error = await errorOfResponse(response);
      if (attempt >= this.#retriesMax || !isWorthRepeating(error, options.body)) throw error;
      await pause(Math.min(error.retryAfterMs ?? 0, RETRY_AFTER_MS_MAX), options.signal);
    }
  }

  async json<T>(method: string, path: string, options?: RequestOptions): Promise<T> {
    return (await (await this.request(method, path, options)).json()) as T;
  }

  /** For requests whose answer holds nothing of interest. */
  async done(method: string, path: string, options?: RequestOptions): Promise<void> {
    await (await this.request(method, path, options)).arrayBuffer();
  }

  async #fetchOnce(method: string, path: string, options: RequestOptions): Promise<Response> {
    const { body, signal } = options;
    const headers: Record<string, string> = { ...options.headers };
    if (this.#token !== undefined) headers.authorization = `Bearer ${this.#token}`;
    if (body !== undefined) headers['content-type'] = body.contentType;
    const init: RequestInit & { duplex?: 'half' } = { method, headers };
    if (body !== undefined) init.body = body.content as NonNullable<RequestInit['body']>;
    if (body?.content instanceof ReadableStream) init.duplex = 'half';
    if (signal !== undefined) init.signal = signal;
    try {
      const response = await this.#fetch(`${this.url}${path}${queryText(options.query)}`, init);
      this.#wasReached = true;
      return response;
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason;
      throw this.#unreachable(thrown);
    }
  }

  #unreachable(thrown: unknown): PlatformError {
    const reason = systemCodeOf(thrown);
    const detail = REFUSED.has(reason)
      ? `No server answers at ${this.url} (${reason}). Start one with \`antrail dev app.ts\` or \`antrail serve\`, ` +
        'or name one that runs: --server URL or ANTRAIL_URL for the command line, url of connect() for a program.'
      : `The connection to ${this.url} broke before an answer came (${reason}).`;
    return new PlatformError('E_SERVER_UNREACHABLE', detail, { cause: thrown, details: { url: this.url, reason } });
  }
}

/** Codes with which an attempt to connect ends when nobody listens there; `fetch failed` is all that browsers tell. */
const REFUSED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EHOSTUNREACH', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT', 'fetch']);
const HEADERS_TIMEOUT = 'UND_ERR_HEADERS_TIMEOUT';

/** True when fetch itself gave up waiting for an answer (5 minutes in Node 20), the server still working. */
export function isHeadersTimeout(error: unknown): boolean {
  return error instanceof PlatformError && error.details.reason === HEADERS_TIMEOUT;
}

/** Segments of a path, each encoded, so that `/` in a name stays part of the name. */
export function pathOf(...segments: readonly string[]): string {
  return `/v1/${segments.map(encodeURIComponent).join('/')}`;
}

/** @throws E_VALUE_UNSERIALISABLE with the path below `root`. */
export function encodeBody(value: unknown, root: string): EncodedBody {
  if (value instanceof ReadableStream || value instanceof Blob) {
    return { contentType: CONTENT_BYTES, content: value as StreamedBytes };
  }
  const { contentType, bytes } = encodeValue(value, root);
  return { contentType, content: bytes };
}

/** The value in an answer: bytes as they are, JSON parsed, nothing for an empty body. */
export async function decodeBody(response: Response): Promise<unknown> {
  if (!isJsonType(response.headers.get('content-type') ?? '')) return new Uint8Array(await response.arrayBuffer());
  const text = await response.text();
  return text === '' ? null : JSON.parse(text);
}

/** Only what was refused before anything began, and whose body is still there. */
function isWorthRepeating(error: PlatformError, body: EncodedBody | undefined): boolean {
  if (body?.content instanceof ReadableStream) return false;
  return error.retryAfterMs !== undefined && (error.kind === 'overload' || error.code === 'E_SHUTTING_DOWN');
}

function retriesOf(retry: ConnectionOptions['retry']): number {
  if (retry === undefined || retry === false) return 0;
  return retry === true ? RETRIES_MAX : retry.max;
}

function checkedUrl(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch (cause) {
    const hint = `The server address ${JSON.stringify(url)} is not a URL`;
    throw new PlatformError('E_OPTION_INVALID', `${hint} such as http://127.0.0.1:7070.`, { cause });
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    throw new PlatformError(
      'E_OPTION_INVALID',
      `The server address ${JSON.stringify(url)} must begin with http:// or https://.`,
    );
  }
  return `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, '');
}

function queryText(query: RequestOptions['query']): string {
  if (query === undefined) return '';
  const params = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) params.append(key, String(item));
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

function systemCodeOf(thrown: unknown): string {
  for (let at = thrown, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'string') return code;
    // Several addresses tried for one name.
    const first: unknown = at instanceof AggregateError ? at.errors[0] : undefined;
    if (first instanceof Error && typeof (first as { code?: unknown }).code === 'string') {
      return (first as { code?: unknown }).code as string;
    }
  }
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.cause instanceof Error) return thrown.cause.message;
  return thrown instanceof TypeError ? 'fetch' : thrown.message;
}
