// The one table of messages between the server and an app host. Both sides import it; the version is checked in `hello`.
//
// Objects ride as blobs of the frame: wherever a message has `ObjectHeader`s, blob i belongs to the i-th of them in
// the order in which the message lists them; a `PayloadHeader` likewise. Replies answer a `requestId`; when the
// connection ends, everything that waits for a reply fails with E_NODE_LOST.

import type { ErrorData } from '../base/index.ts';
import type { FinalFailure } from './dead-letter.ts';
import type { Evaluation, EvaluationResult } from './evaluation.ts';
import type { TriggerSpec } from './manifest.ts';
import type {
  InstanceInfo,
  LogEntry,
  ObjectStoreStats,
  SessionCounts,
  SessionObjects,
  SessionRecord,
  SessionTrace,
  UnfiredTrigger,
} from './session.ts';
import type { ObjectHeader, PayloadHeader } from './values.ts';

export const HOST_PROTOCOL_VERSION = 2;
/** Sessions that the server has with one instance at once: so many ends, the newest, a host keeps for when they are asked for. */
export const LANE_DEPTH_MAX = 16;
/** Of an object at once: what one reader makes a server and a host hold. */
export const OBJECT_PART_BYTES = 1024 * 1024;

/** Server to host. */
export type ServerToHost =
  /**
   * Begins a session, or executes it again (`run` > 1) after its host was lost. Names and firing ids of a second run
   * equal the first's. Entry i is the invocation with hash(session, i).
   */
  | {
      readonly type: 'session-start';
      readonly session: string;
      readonly run: number;
      readonly entries: readonly { readonly function: string; readonly inputs: readonly ObjectHeader[] }[];
      /** Milliseconds from now; absent: none. */
      readonly deadlineInMs?: number;
      readonly priority: number;
      /** Its start was durable: what it gives to bucket-scoped triggers must be so before it ends. */
      readonly durable: boolean;
      /** Kept alive for objects from outside: ends when a close or join was accepted and nothing runs, or when idle. */
      readonly open?: { readonly idleTimeoutMs: number };
      /**
       * Objects from outside, after the entries' inputs in blob order: those that came before the host was lost
       * (`run` > 1), and in any run those that came before the session was begun. A session that was opened by
       * an object from outside has no entries and this object: its first run too.
       */
      readonly objects?: readonly ObjectHeader[];
      /** Epoch ms at which it was given to an instance itself; one that reads it late hands it to its host. */
      readonly givenAtMs?: number;
    }
  | { readonly type: 'session-cancel'; readonly session: string; readonly error: ErrorData }
  /** Reply: `{ duplicate }` or an error. */
  | {
      readonly type: 'session-put';
      readonly requestId: number;
      readonly session: string;
      readonly object: ObjectHeader;
    }
  | { readonly type: 'session-close'; readonly requestId: number; readonly session: string; readonly bucket: string }
  | {
      readonly type: 'session-join';
      readonly requestId: number;
      readonly session: string;
      readonly bucket: string;
      readonly names?: readonly string[];
      readonly count?: number;
    }
  /**
   * Reply: PayloadHeader (`size` of the whole object), `run`, and a blob: the part from `start` to `end` (excluded), at most
   * OBJECT_PART_BYTES of it. When that is less than was asked for there is a `reader`, which keeps the object until
   * `object-close`. Objects of running sessions only.
   */
  | {
      readonly type: 'object-get';
      readonly requestId: number;
      readonly session: string;
      readonly bucket: string;
      readonly name: string;
      readonly start: number;
      readonly end: number;
    }
  /** Reply: a blob, as above. */
  | {
      readonly type: 'object-read';
      readonly requestId: number;
      readonly reader: number;
      readonly start: number;
      readonly end: number;
    }
  | { readonly type: 'object-close'; readonly reader: number }
  /** Acknowledges a `bucket-object`, `bucket-close` or `object-persist`. An error fails the sender. */
  | { readonly type: 'object-ack'; readonly session: string; readonly seq: number; readonly error?: ErrorData }
  /** Runs the validator of a function (`input`) or bucket (`schema`) on one payload. Reply: `{}` or E_INPUT_INVALID. */
  | {
      readonly type: 'validate';
      readonly requestId: number;
      readonly target: { readonly function: string } | { readonly bucket: string };
      readonly payload: PayloadHeader;
    }
  /** Asks a trigger class of bucket scope. Blob i: value of the i-th object among the events. Reply: `evaluation`. */
  | { readonly type: 'evaluate'; readonly requestId: number; readonly evaluation: Evaluation }
  /** Replaces the triggers of one bucket for sessions that start from now on. */
  | { readonly type: 'triggers-set'; readonly bucket: string; readonly triggers: Readonly<Record<string, TriggerSpec>> }
  | { readonly type: 'trace-get'; readonly requestId: number; readonly session: string }
  /** How far a running session is. Reply: `progress`, or an error when it is not here. */
  | { readonly type: 'progress-get'; readonly requestId: number; readonly session: string }
  | { readonly type: 'stats-get'; readonly requestId: number }
  /** Reply: `objects`, of one session or of all. */
  | { readonly type: 'objects-get'; readonly requestId: number; readonly session?: string }
  /** Executions that this host should have. Reply: `unknown`, those that it does not have. */
  | {
      readonly type: 'sessions-check';
      readonly requestId: number;
      readonly sessions: readonly { readonly session: string; readonly run: number }[];
    }
  | {
      readonly type: 'reply';
      readonly requestId: number;
      readonly error?: ErrorData;
      /** Of a persisted object also its group, and the session that persisted it. */
      readonly payload?: (PayloadHeader & { readonly group?: string; readonly session?: string }) | null;
    }
  /** Somebody looks at sessions whose outcome came first: what instances told is read at once. No reply. */
  | { readonly type: 'flush' }
  /** No new sessions come; end when the last one has ended. */
  | { readonly type: 'drain' };

/** Host to server. */
export type HostToServer =
  | { readonly type: 'hello'; readonly protocol: number; readonly token: string; readonly pid: number }
  /** The bundle was loaded by at least one instance, or could not be. */
  | { readonly type: 'ready' }
  | { readonly type: 'load-failed'; readonly error: ErrorData }
  /** First message of an instance's own connection. `token`: HostBoot.laneToken. It gets `session-start`s of its pool. */
  | {
      readonly type: 'lane-hello';
      readonly token: string;
      readonly instance: string;
      readonly functions: readonly string[];
    }
  /**
   * From an instance's own connection: what a synchronous caller waits for, ahead of the host's account. `final`: the
   * session is over, and `session-ended` follows from the host. Without `payload`: undefined was returned.
   *
   * With `account`: the server gave the session to this instance, and one attempt that sent nothing was all of it. It has
   * ended with that; the host says nothing of it, unless the server gives it the session because the connection ended.
   */
  | {
      readonly type: 'session-outcome';
      readonly session: string;
      readonly run: number;
      readonly final: boolean;
      /** How long the instance was busy with it, ms. */
      readonly busyMs: number;
      readonly payload?: PayloadHeader;
      readonly account?: LaneAccount;
    }
  /** They were given to the host, and the first attempt of each has begun; not told of those that have ended since. */
  | { readonly type: 'sessions-begun'; readonly sessions: readonly string[] }
  | { readonly type: 'session-output'; readonly session: string; readonly run: number; readonly object: ObjectHeader }
  /** The last message of a session. `result`: the first entry's return value, when there was no error. */
  | {
      readonly type: 'session-ended';
      readonly session: string;
      readonly run: number;
      /** `parked`: the host found that it could not go on, and let go of it; `error` says why. */
      readonly state: 'completed' | 'failed' | 'cancelled' | 'parked';
      readonly result?: PayloadHeader;
      readonly error?: ErrorData;
      readonly unfired: readonly UnfiredTrigger[];
      readonly counts: SessionCounts;
      readonly meteredMs: number;
      /** All final failures, the first FAILURES_MAX of them. Blobs behind the result's: the inputs that they list. */
      readonly failures?: readonly FinalFailure[];
      /** How many more there were. */
      readonly failuresDropped?: number;
      /** Of a durable session: the last blob is its trace, JSON of SessionTrace. */
      readonly trace?: true;
    }
  /** For the bucket's bucket-scoped triggers; acknowledged when the coordinator owns it. `seq` counts up per session. */
  | {
      readonly type: 'bucket-object';
      readonly session: string;
      readonly seq: number;
      readonly object: ObjectHeader;
      readonly durable: boolean;
    }
  /** `ctx.closeGroup` on a bucket with a bucket-scoped dynamicGroup; acknowledged by `object-ack`. */
  | { readonly type: 'bucket-close'; readonly session: string; readonly seq: number; readonly bucket: string }
  | { readonly type: 'object-persist'; readonly session: string; readonly seq: number; readonly object: ObjectHeader }
  /** Reply with a payload, or E_OBJECT_UNKNOWN. */
  | { readonly type: 'persisted-get'; readonly requestId: number; readonly bucket: string; readonly name: string }
  /** Traces of sessions that were not durable and ended a while ago: blob i is JSON of SessionTrace of the i-th. */
  | { readonly type: 'traces'; readonly sessions: readonly string[] }
  | { readonly type: 'logs'; readonly entries: readonly Omit<LogEntry, 'app' | 'version'>[] }
  | {
      readonly type: 'reply';
      readonly requestId: number;
      readonly error?: ErrorData;
      readonly payload?: PayloadHeader;
      readonly duplicate?: boolean;
      readonly evaluation?: EvaluationResult;
      readonly run?: number;
      readonly reader?: number;
      readonly trace?: SessionTrace;
      readonly progress?: SessionProgress;
      readonly stats?: HostStats;
      readonly objects?: HostObjects;
      readonly unknown?: readonly string[];
    };

/** What a session's record says of it while it runs: the same as at its end. */
export type SessionProgress = Pick<SessionRecord, 'counts' | 'meteredMs' | 'unfired'>;

/** Counts of a session that was one attempt and sent nothing; see `session-outcome`. */
export interface LaneAccount {
  /** Its inputs. */
  readonly objects: number;
  readonly bytes: number;
  readonly meteredMs: number;
}

/** Whose the objects of one app host are: the largest STATS_ROWS_MAX rows of each. */
export interface HostObjects {
  readonly bySession: readonly SessionObjects[];
  readonly waits: readonly (UnfiredTrigger & { readonly session: string })[];
}

/** What one app host says of itself. */
export interface HostStats {
  /** Bytes of the objects of its sessions in memory, and on disk; what is part of another object counts once. */
  readonly memoryBytes: number;
  readonly spilledBytes: number;
  readonly store: ObjectStoreStats;
  readonly objects: number;
  readonly sessions: number;
  readonly queued: number;
  readonly running: number;
  /** Objects that reached an instance without a copy of their bytes. */
  readonly zeroCopyHandOffs: number;
  readonly objectBytesMoved: number;
  readonly startKinds: Readonly<Record<string, number>>;
  readonly instances: readonly Omit<InstanceInfo, 'app' | 'version' | 'node'>[];
  /** Hop latency (end of the sender's send to start of the successor), ms, over the last HOP_SAMPLES_MAX. */
  readonly hops: readonly {
    readonly function: string;
    readonly count: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
  }[];
}

/** What the server hands to the process it spawns, as JSON in the environment variable ANTRAIL_HOST. */
export interface HostBoot {
  readonly app: string;
  readonly version: string;
  readonly node: string;
  /** Folder with the bundle's files and `manifest.json`. */
  readonly folder: string;
  readonly main: string;
  /** Path of the server's Unix socket. */
  readonly socket: string;
  /** Shown in `hello`; single use. */
  readonly token: string;
  /** Shown in `lane-hello` by any instance of this host. Absent: no such connections. */
  readonly laneToken?: string;
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  /** Folder for the file of spilled objects; absent: nothing is spilled. */
  readonly spillFolder?: string;
  readonly limits: HostLimits;
}

export interface HostLimits {
  readonly objectBytesMax: number;
  /** What may be in memory above that, for objects in use, which cannot be spilled. */
  readonly objectOverBytesMax: number;
  /** Objects on disk. */
  readonly spillBytesMax: number;
  readonly instancesMax: number;
  readonly inlineBytesMax: number;
  /** `dev`: verify by checksum that objects do not change after they were sent. */
  readonly verifyObjects: boolean;
}

/** The answer to a request of the server's. */
export type HostReply = Extract<HostToServer, { type: 'reply' }>;
type WithoutId<M> = M extends { readonly requestId: number } ? Omit<M, 'requestId'> : never;
/** What the server asks a host and waits for; the connection numbers it. */
export type HostRequest = WithoutId<Exclude<ServerToHost, { type: 'reply' }>>;
