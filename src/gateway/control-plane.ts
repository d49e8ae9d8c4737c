// The port through which the gateway asks for everything that is not HTTP. Implemented by the composition in `node/`.
//
// Every method refuses by throwing a PlatformError; the gateway turns it into problem+json.

import type { ErrorData } from '../base/index.ts';
import type {
  AppBundle,
  AppInfo,
  AppObjects,
  InstanceInfo,
  LogEntry,
  Payload,
  SessionRecord,
  SessionState,
  SessionTrace,
  TriggerSpec,
} from '../protocol/index.ts';

export interface StartRequest {
  readonly app: string;
  /** One or more; each with at most one input object (bucket `$input`). */
  readonly entries: readonly { readonly function: string; readonly input?: Payload }[];
  readonly mode: 'sync' | 'async';
  /** The session's deadline. Undefined: none beyond the functions' own. */
  readonly timeoutMs?: number;
  readonly priority?: number;
  readonly delayMs?: number;
  /** `none`: even an async start is not written first. */
  readonly durability?: 'none';
  readonly idempotencyKey?: string;
  readonly tags?: Readonly<Record<string, string>>;
}

/** How a sync call ends: first output, else the first final error, else the first entry's return value. */
export type SyncOutcome =
  | { readonly ok: true; readonly payload: Payload }
  | { readonly ok: false; readonly error: ErrorData };

export interface StartedSession {
  readonly session: string;
  /** Ends as a sync call ends; never rejects. */
  readonly outcome: Promise<SyncOutcome>;
}

export interface PutObjectRequest {
  readonly app: string;
  readonly bucket: string;
  readonly name: string;
  readonly payload: Payload;
  readonly session?: string;
  readonly group?: string;
  readonly open?: boolean;
  readonly idleTimeoutMs?: number;
}

export interface OutputEvent {
  /** 1, 2, 3, … in its session. */
  readonly n: number;
  readonly bucket: string;
  readonly name: string;
  readonly payload: Payload;
}

export interface ObjectRange {
  readonly payload: Payload;
  /** Size of the whole object. */
  readonly size: number;
}

export interface ControlPlane {
  /** @returns `created` false when the same content is there already. Refuses E_APP_INVALID with `problems`. */
  deploy(
    app: string,
    bundle: AppBundle,
    env?: Readonly<Record<string, string>>,
  ): Promise<{ app: string; version: string; created: boolean }>;
  listApps(): Promise<{ apps: readonly AppInfo[] }>;
  getApp(app: string): Promise<AppInfo>;
  deleteApp(app: string): Promise<void>;
  putTrigger(app: string, bucket: string, trigger: string, spec: TriggerSpec): Promise<{ created: boolean }>;
  deleteTrigger(app: string, bucket: string, trigger: string): Promise<void>;

  /** Resolves once admitted (and durable, if async without `durability=none`). */
  startSession(request: StartRequest): Promise<StartedSession>;
  putObject(request: PutObjectRequest): Promise<{ session: string; duplicate: boolean }>;
  closeGroup(session: string, bucket: string): Promise<void>;
  join(session: string, bucket: string, join: { names?: readonly string[]; count?: number }): Promise<void>;
  /** `session` undefined: the persisted object of that name. */
  getObject(
    app: string,
    bucket: string,
    name: string,
    session?: string,
    range?: { start: number; end?: number },
  ): Promise<ObjectRange>;

  getSession(session: string): Promise<SessionRecord>;
  /** The outcome if there is one within `waitMs`, else undefined. */
  sessionResult(session: string, waitMs: number, signal?: AbortSignal): Promise<SyncOutcome | undefined>;
  trace(session: string): Promise<SessionTrace>;
  /** Replays from `after` (0: all), then follows until the session ends. */
  outputs(session: string, after: number, signal: AbortSignal): AsyncIterable<OutputEvent>;
  listSessions(query: {
    app?: string;
    state?: SessionState;
    tag?: readonly [string, string];
    limit: number;
    cursor?: string;
  }): Promise<{ sessions: readonly SessionRecord[]; cursor?: string }>;
  cancelSession(session: string): Promise<void>;
  retrySession(session: string): Promise<{ session: string }>;
  forkSession(session: string): Promise<{ session: string }>;

  objects(app?: string): Promise<{ apps: readonly AppObjects[] }>;
  instances(app?: string): Promise<{ instances: readonly InstanceInfo[] }>;
  nodes(): Promise<{ nodes: readonly unknown[] }>;
  deadLetters(): Promise<{ deadLetters: readonly unknown[] }>;
  limits(): Promise<{ limits: readonly { name: string; value: number | string; unit?: string; why: string }[] }>;
  /** The kept tail, then what follows while `follow`. */
  logs(
    query: { app?: string; session?: string; follow: boolean; tail: number },
    signal: AbortSignal,
  ): AsyncIterable<LogEntry>;
  /** Prometheus text. */
  metrics(): Promise<string>;
  /** Undefined when ready, else the reason. */
  notReady(): string | undefined;
  /** Live limit of a request body in bytes. */
  readonly bodyBytesMax: number;
}
