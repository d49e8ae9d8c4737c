// The port through which the gateway asks for everything that is not HTTP. Implemented by the composition in `node/`.
//
// Every method refuses by throwing a PlatformError; the gateway turns it into problem+json.

import type { ErrorData } from '../base/index.ts';
import type {
  AppBundle,
  AppInfo,
  AppObjects,
  AppObjectsDetail,
  DeadLetter,
  DeadLetterHead,
  InstanceInfo,
  LogEntry,
  ObjectSource,
  OutputEvent,
  PersistedInfo,
  PutObjectRequest,
  SessionRecord,
  SessionState,
  SessionTrace,
  StartedSession,
  StartRequest,
  SyncOutcome,
  TriggerSpec,
  WaitingTrigger,
} from '../protocol/index.ts';

export type { ObjectSource, OutputEvent, PutObjectRequest, StartedSession, StartRequest, SyncOutcome };

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

  /**
   * Why a start with one entry and an input of this size would be refused now; undefined: it would not. Costs next to
   * nothing, so that it can be asked before the body is received. Not for starts with an idempotency key or a delay.
   */
  refusal(app: string, inputBytes: number): ErrorData | undefined;
  /** Resolves once admitted (and durable, if async without `durability=none`). */
  startSession(request: StartRequest): Promise<StartedSession>;
  putObject(request: PutObjectRequest): Promise<{ session: string; duplicate: boolean }>;
  closeGroup(session: string, bucket: string): Promise<void>;
  join(session: string, bucket: string, join: { names?: readonly string[]; count?: number }): Promise<void>;
  /**
   * `session` undefined: the persisted object of that name. Whoever opens it closes it.
   * @param first what will be read first, `end` excluded: fetched along. Nothing more can be read when it is empty.
   */
  openObject(
    app: string,
    bucket: string,
    name: string,
    session: string | undefined,
    first: { start: number; end: number },
  ): Promise<ObjectSource>;
  /** Of persisted objects. Resolves when it is gone for good. */
  deleteObject(app: string, bucket: string, name: string): Promise<void>;
  /** Persisted objects by name, at most LIST_LIMIT_MAX. */
  listObjects(
    app: string,
    bucket: string,
    query: { prefix?: string; limit: number; cursor?: string },
  ): Promise<{ objects: readonly PersistedInfo[]; cursor?: string }>;

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

  /** @param query `detail`: by session and app host too; `waits`: triggers that hold objects and wait for more. */
  objects(query: {
    app?: string;
    session?: string;
    detail?: boolean;
    waits?: boolean;
  }): Promise<{ apps: readonly (AppObjects & Partial<AppObjectsDetail>)[]; waits?: readonly WaitingTrigger[] }>;
  instances(app?: string): Promise<{ instances: readonly InstanceInfo[] }>;
  nodes(): Promise<{ nodes: readonly unknown[] }>;
  /** Newest first. `dropped`: how many made room for newer ones, of the app or of all. */
  deadLetters(query: {
    app?: string;
    limit: number;
  }): Promise<{ deadLetters: readonly DeadLetterHead[]; dropped: number }>;
  deadLetter(id: string): Promise<DeadLetter>;
  /** Resolves when the retry is kept. While one lives, further ones give its session. */
  retryDeadLetter(id: string): Promise<{ session: string }>;
  dropDeadLetter(id: string): Promise<void>;
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
