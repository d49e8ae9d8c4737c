// `connectServer`: what a server says about itself, and acts on it. The CLI's and every operator's tool.

import type {
  AppBundle,
  AppInfo,
  AppObjects,
  DeadLetter,
  DeadLetterHead,
  InstanceInfo,
  LogEntry,
  SessionRecord,
  SessionState,
  SessionTrace,
  TriggerSpec,
} from '../protocol/index.ts';
import { readEvents, readLines } from './event-stream.ts';
import { errorOfProblem } from './problem.ts';
import { bodyOf, SessionHandle } from './session-handle.ts';
import { type ConnectionOptions, encodeBody, pathOf, type RequestOptions, Transport } from './transport.ts';

export interface SessionsQuery {
  readonly app?: string | undefined;
  readonly state?: SessionState | undefined;
  /** `key=value`. */
  readonly tag?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export interface LogsQuery {
  readonly app?: string | undefined;
  readonly session?: string | undefined;
  /** Goes on with new entries until it is aborted. */
  readonly follow?: boolean | undefined;
  /** How many of the kept entries to begin with. */
  readonly tail?: number | undefined;
}

export class ServerClient {
  readonly #transport: Transport;

  constructor(options: ConnectionOptions = {}) {
    this.#transport = new Transport(options);
  }

  get url(): string {
    return this.#transport.url;
  }

  /**
   * Any request, for what has no method here.
   * @param path below the server's address, encoded: `/v1/nodes`.
   * @throws the PlatformError that the server sent.
   */
  request(method: string, path: string, options?: RequestOptions): Promise<Response> {
    return this.#transport.request(method, path, options);
  }

  /** Same content again gives the same version and `created: false`. */
  async deploy(
    app: string,
    bundle: AppBundle,
    env?: Readonly<Record<string, string>>,
  ): Promise<{ app: string; version: string; created: boolean }> {
    const response = await this.request('PUT', pathOf('apps', app), {
      body: encodeBody(env === undefined ? bundle : { ...bundle, env }, 'bundle'),
    });
    const answer = (await response.json()) as { app: string; version: string };
    return { ...answer, created: response.status === 201 };
  }

  apps(): Promise<{ apps: readonly AppInfo[] }> {
    return this.#transport.json('GET', '/v1/apps');
  }

  app(app: string): Promise<AppInfo> {
    return this.#transport.json('GET', pathOf('apps', app));
  }

  deleteApp(app: string): Promise<void> {
    return this.#transport.done('DELETE', pathOf('apps', app));
  }

  putTrigger(app: string, bucket: string, trigger: string, spec: TriggerSpec): Promise<void> {
    return this.#transport.done('PUT', pathOf('apps', app, 'buckets', bucket, 'triggers', trigger), {
      body: encodeBody(spec, 'trigger'),
    });
  }

  deleteTrigger(app: string, bucket: string, trigger: string): Promise<void> {
    return this.#transport.done('DELETE', pathOf('apps', app, 'buckets', bucket, 'triggers', trigger));
  }

  sessions(query: SessionsQuery = {}): Promise<{ sessions: readonly SessionRecord[]; cursor?: string }> {
    return this.#transport.json('GET', '/v1/sessions', { query: { ...query } });
  }

  session(session: string): Promise<SessionRecord> {
    return this.handle(session).info();
  }

  trace(session: string): Promise<SessionTrace> {
    return this.handle(session).trace();
  }

  handle<R = any>(session: string): SessionHandle<R> {
    return new SessionHandle(this.#transport, session);
  }

  objects(app?: string): Promise<{ apps: readonly AppObjects[] }> {
    return this.#transport.json('GET', '/v1/objects', { query: { app } });
  }

  instances(app?: string): Promise<{ instances: readonly InstanceInfo[] }> {
    return this.#transport.json('GET', '/v1/instances', { query: { app } });
  }

  nodes(): Promise<{ nodes: readonly unknown[] }> {
    return this.#transport.json('GET', '/v1/nodes');
  }

  /** Invocations that failed for good, newest first. */
  deadLetters(
    query: { readonly app?: string; readonly limit?: number } = {},
  ): Promise<{ deadLetters: readonly DeadLetterHead[]; dropped: number }> {
    return this.#transport.json('GET', '/v1/dead-letters', { query });
  }

  deadLetter(id: string): Promise<DeadLetter> {
    return this.#transport.json('GET', pathOf('dead-letters', id));
  }

  /** @returns the session that tries it again: the same one while it lives. */
  retryDeadLetter(id: string): Promise<{ session: string }> {
    return this.#transport.json('POST', pathOf('dead-letters', id, 'retry'));
  }

  dropDeadLetter(id: string): Promise<void> {
    return this.#transport.done('DELETE', pathOf('dead-letters', id));
  }

  limits(): Promise<{
    limits: readonly { name: string; value: number | string; unit?: string; why: string }[];
  }> {
    return this.#transport.json('GET', '/v1/limits');
  }

  async *logs(query: LogsQuery = {}, signal?: AbortSignal): AsyncGenerator<LogEntry, void, undefined> {
    for await (const line of this.logLines(query, signal)) yield JSON.parse(line) as LogEntry;
  }

  /** The same as the server wrote them, one JSON object a line. */
  async *logLines(query: LogsQuery = {}, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
    const response = await this.request('GET', '/v1/logs', {
      query: { ...query, follow: query.follow === true ? true : undefined },
      signal,
    });
    if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
      for await (const { event, data } of readEvents(bodyOf(response))) {
        if (event === 'end') return;
        if (event === 'problem') throw errorOfProblem(JSON.parse(data));
        yield data;
      }
    } else {
      for await (const line of readLines(bodyOf(response))) if (line !== '') yield line;
    }
  }

  /** Prometheus text. */
  async metrics(): Promise<string> {
    return (await this.request('GET', '/metrics')).text();
  }
}

export function connectServer(options: ConnectionOptions = {}): ServerClient {
  return new ServerClient(options);
}
