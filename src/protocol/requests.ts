// What is asked of sessions and objects from outside, and what comes back: the part of the gateway's port that the
// coordinator answers.

import type { ErrorData } from '../base/index.ts';
import { OBJECT_PART_BYTES } from './host-messages.ts';
import type { Payload } from './values.ts';

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

/** An object that is read in parts, as fast as its reader takes them. */
export interface ObjectSource {
  readonly contentType: string;
  /** Size of the whole object. */
  readonly size: number;
  /** Differs between any two contents that the same address ever had. ASCII without quotes. */
  readonly version: string;
  /** Bytes from `start` to `end` (excluded, at most the size): all of them, or the first OBJECT_PART_BYTES. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** It stays readable until then, whatever becomes of its session. Idempotent. */
  close(): void;
}

/** @param bytes not written to again. */
export function sourceOf({ contentType, bytes }: Payload, version: string): ObjectSource {
  return {
    contentType,
    size: bytes.length,
    version,
    read: async (start, end) => bytes.subarray(start, Math.min(end, start + OBJECT_PART_BYTES)),
    close: () => {},
  };
}
