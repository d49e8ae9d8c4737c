// What goes over the message port between host and instance: everything that is not on the hot path. The hot path is
// shared memory (tickets, event ring).

import type { ErrorData } from '../../base/index.ts';
import type { SlabMemory, StoredObject, TriggersByBucket } from '../../bucket/index.ts';
import type { Evaluation, EvaluationResult, LogEntry, Manifest } from '../../protocol/index.ts';

export interface PoolBoot {
  readonly tickets: SharedArrayBuffer;
  /** Slots of its instances that may be woken: one byte each, 1 = member. */
  readonly members: SharedArrayBuffer;
}

/** `workerData` of an instance. */
export interface InstanceBoot {
  readonly instanceId: string;
  /** Slot 0 to INSTANCE_SLOTS_MAX - 1; the owner number is slot + 2. */
  readonly slot: number;
  /** Name of its pool, as in the function table. */
  readonly pool: string;
  readonly app: string;
  readonly version: string;
  /** First of LANE_SESSIONS session numbers that are this instance's own. */
  readonly laneBase: number;
  /** The server's Unix socket, and what it wants to hear there; undefined: none. */
  readonly lane: { readonly socket: string; readonly token: string } | undefined;
  /** When the host asked for it, monotonic ms. */
  readonly requestedAtMs: number;
  /** File URL of the bundle's main module. */
  readonly main: string;
  readonly manifest: Manifest;
  readonly triggers: TriggersByBucket;
  readonly tableVersion: number;
  readonly env: Readonly<Record<string, string>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly slab: SlabMemory;
  /** All pools of the host by name: a successor may be of another one than its sender. */
  readonly pools: Readonly<Record<string, PoolBoot>>;
  readonly bells: SharedArrayBuffer;
  readonly ring: SharedArrayBuffer;
  /** Of the host's clock (threadClock). */
  readonly clockOriginMs: number;
  readonly inlineBytesMax: number;
  readonly verifyObjects: boolean;
}

export type HostToInstance =
  | { readonly type: 'object'; readonly requestId: number; readonly object?: StoredObject; readonly error?: ErrorData }
  | {
      readonly type: 'abort';
      readonly sessionNo: number;
      readonly hi: number;
      readonly lo: number;
      readonly fence: number;
      readonly error: ErrorData;
    }
  /** The session is over: nothing of it begins any more, and what runs is aborted. */
  | { readonly type: 'stop-session'; readonly sessionNo: number; readonly error: ErrorData }
  | { readonly type: 'triggers'; readonly triggers: TriggersByBucket; readonly version: number }
  | {
      readonly type: 'validate';
      readonly requestId: number;
      readonly function?: string;
      readonly bucket?: string;
      readonly contentType: string;
      readonly bytes: Uint8Array;
    }
  /** Asks a trigger class. `values` of the objects among the events, in their order. */
  | {
      readonly type: 'evaluate';
      readonly requestId: number;
      readonly evaluation: Evaluation;
      readonly values: readonly Uint8Array[];
    }
  | { readonly type: 'lane-base'; readonly base: number }
  | { readonly type: 'retire' };

export type InstanceToHost =
  | { readonly type: 'ready'; readonly loadMs: number; readonly initMs: number }
  | { readonly type: 'load-failed'; readonly error: ErrorData }
  | {
      readonly type: 'get-object';
      readonly requestId: number;
      readonly sessionNo: number;
      readonly bucket: number;
      readonly name: string;
    }
  | { readonly type: 'validated'; readonly requestId: number; readonly error?: ErrorData }
  | { readonly type: 'evaluated'; readonly requestId: number; readonly result: EvaluationResult }
  | { readonly type: 'logs'; readonly entries: readonly Omit<LogEntry, 'app' | 'version'>[] }
  /** Nothing of that session begins here any more. */
  | { readonly type: 'stopped'; readonly sessionNo: number }
  | { readonly type: 'lane-base' }
  | { readonly type: 'retired' };
