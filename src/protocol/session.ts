// Shapes of sessions, traces and the other records that HTTP answers show.

import type { ErrorData } from '../base/index.ts';
import type { Manifest, SourceLocation } from './manifest.ts';

export type SessionState = 'running' | 'completed' | 'failed' | 'cancelled' | 'parked';
/** How an attempt came by its instance. */
export type StartKind = 'inline' | 'warm' | 'takeover' | 'prewarmed' | 'cold';
export type AttemptOutcome = 'ok' | 'error' | 'timeout' | 'lost' | 'fenced' | 'cancelled' | 'running';

export interface SessionCounts {
  readonly invocations: number;
  readonly attempts: number;
  readonly objects: number;
  readonly bytes: number;
  readonly firings: number;
}

/** Answer of `GET /v1/sessions/{id}`; times ISO 8601. */
export interface SessionRecord {
  readonly session: string;
  readonly app: string;
  readonly version: string;
  /** The (first) entry. */
  readonly function: string;
  readonly state: SessionState;
  /** The value itself if it was JSON, `{base64}` below a limit, else `{href, size, contentType}`. */
  readonly result?: unknown;
  readonly error?: ErrorData;
  readonly tags: Readonly<Record<string, string>>;
  readonly causes: readonly string[];
  /** Present when there are more than CAUSES_MAX. */
  readonly causesCount?: number;
  readonly unfired: readonly UnfiredTrigger[];
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly counts: SessionCounts;
  /** Milliseconds that instances were busy for it. */
  readonly meteredMs: number;
  readonly retryOf?: string;
  readonly forkOf?: string;
}

export interface UnfiredTrigger {
  readonly bucket: string;
  readonly trigger: string;
  readonly held: number;
  readonly waitsFor: string;
}

/** Answer of `GET /v1/sessions/{id}/trace`. */
export interface SessionTrace {
  readonly session: string;
  readonly invocations: readonly InvocationTrace[];
  /** How many invocations were left out because the trace is longer than its limit. */
  readonly dropped?: number;
}

export interface InvocationTrace {
  readonly id: string;
  readonly function: string;
  /** `<bucket>/<trigger>/<index>`, null for an entry. */
  readonly firing: string | null;
  readonly parent: string | null;
  readonly attempts: readonly AttemptTrace[];
  readonly in: readonly string[];
  readonly out: readonly string[];
}

export interface AttemptTrace {
  readonly n: number;
  readonly node: string;
  readonly instance: string;
  readonly start: StartKind;
  readonly queuedAt: string;
  readonly startedAt: string;
  readonly endedAt: string | null;
  readonly outcome: AttemptOutcome;
}

/** One version of an app as `GET /v1/apps/{app}` lists it. */
export interface VersionInfo {
  readonly version: string;
  readonly deployedAt: string;
  readonly current: boolean;
  /** Running sessions that began with it. */
  readonly usedBy: number;
}

export interface AppInfo {
  readonly app: string;
  readonly version: string;
  readonly deployedAt: string;
  readonly manifest: Manifest;
  readonly versions: readonly VersionInfo[];
}

export interface LogEntry {
  readonly at: string;
  readonly app: string;
  readonly version: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly session?: string;
  readonly invocation?: string;
  readonly function?: string;
  readonly instance?: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface InstanceInfo {
  readonly instance: string;
  readonly app: string;
  readonly version: string;
  readonly node: string;
  readonly pool: string;
  readonly state: 'starting' | 'idle' | 'busy' | 'draining' | 'gone';
  readonly startedAt: string;
  readonly useCount: number;
  readonly whyStarted: string;
  readonly whyKept: string;
}

/** A persisted object as a list shows it. */
export interface PersistedInfo {
  readonly name: string;
  readonly size: number;
  readonly contentType: string;
  /** That persisted it. */
  readonly session: string;
  readonly at: string;
}

/** Objects of one session. */
export interface SessionObjects {
  readonly session: string;
  readonly memoryBytes: number;
  readonly spilledBytes: number;
  readonly objects: number;
}

/** A trigger that holds objects and waits for more. */
export interface WaitingTrigger {
  readonly app: string;
  /** Null for a bucket-scoped one. */
  readonly session: string | null;
  readonly bucket: string;
  readonly trigger: string;
  readonly held: number;
  readonly waitsFor: string;
}

/** What `GET /v1/objects?detail=true` adds to an app. Over sessions and triggers the bytes add up to those of the app. */
export interface AppObjectsDetail {
  readonly bySession: readonly SessionObjects[];
  /** Held by bucket-scoped triggers, in the memory of the server. */
  readonly held: { readonly objects: number; readonly bytes: number };
  /** One for each app host. */
  readonly stores: readonly ({ readonly version: string } & ObjectStoreStats)[];
}

/** Memory and disk that the objects of one app host take, in whole pages. */
export interface ObjectStoreStats {
  /** Pages in use, by whatever. */
  readonly usedBytes: number;
  /** objectBytesMax. */
  readonly budgetBytes: number;
  /** objectBytesMax and objectOverBytesMax. */
  readonly capacityBytes: number;
  /** Of the pages in use, those of objects. */
  readonly blockBytes: number;
  /** Places in the spill file; objects that are in memory too keep theirs. */
  readonly fileBytes: number;
}

export interface AppObjects {
  readonly app: string;
  readonly memoryBytes: number;
  readonly spilledBytes: number;
  readonly persistedBytes: number;
  readonly objects: number;
  readonly sessions: number;
}

/** One problem of a refused app. */
export interface AppProblem {
  readonly message: string;
  readonly file?: string;
  readonly line?: number;
}

export type { SourceLocation };
