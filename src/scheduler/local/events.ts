// What happens to sessions, and what must happen because of it.

import type { ErrorData, Hash64 } from '../../base/index.ts';
import type { AppTables, BucketRow, StoredObject, TriggerRow } from '../../bucket/index.ts';
import type { EvaluationResult, StartKind } from '../../protocol/index.ts';
import type { EvaluationPlan } from '../../trigger/index.ts';
import type { Invocation, Session } from './session.ts';

/** A successor that the sender's instance made itself. */
export interface MadeFiring {
  readonly trigger: number;
  readonly function: number;
  readonly id: Hash64;
}

export interface Which {
  readonly sessionNo: number;
  readonly id: Hash64;
  readonly fence: number;
}

export type SessionEvent =
  | {
      readonly type: 'session-started';
      /** Begun by an instance that the server asked itself, under this number; its entry is held there. */
      readonly lane?: { readonly no: number; readonly slot: number; readonly queue: boolean };
      readonly id: string;
      readonly run: number;
      readonly durable: boolean;
      readonly priority: number;
      readonly deadlineMs: number;
      readonly tables: AppTables;
      readonly entries: readonly { readonly function: number; readonly inputs: readonly StoredObject[] }[];
      readonly objects: readonly StoredObject[];
      readonly open: { readonly idleTimeoutMs: number } | undefined;
    }
  | (Which & {
      readonly type: 'attempt-started';
      readonly slot: number;
      readonly instance: string;
      readonly start: StartKind;
      readonly atMs: number;
    })
  | (Which & {
      readonly type: 'object-sent';
      readonly slot: number;
      readonly atMs: number;
      readonly object: StoredObject;
      readonly output: boolean;
      readonly persist: boolean;
      readonly firings: readonly MadeFiring[] | undefined;
    })
  | (Which & {
      readonly type: 'attempt-ended';
      readonly atMs: number;
      readonly error: ErrorData | undefined;
      readonly result: StoredObject | undefined;
    })
  | (Which & { readonly type: 'handed-over' })
  | (Which & { readonly type: 'group-closed'; readonly bucket: number })
  | (Which & {
      readonly type: 'joined';
      readonly bucket: number;
      readonly names?: readonly string[];
      readonly count?: number;
    })
  /** Its instance died or was ended; `timeout` counts against `retries`, loss against LOST_RETRIES_MAX. */
  | {
      readonly type: 'attempt-lost';
      readonly invocation: Invocation;
      readonly why: 'lost' | 'timeout';
      readonly error: ErrorData;
    }
  /** It was held or on offer by an instance that died before anybody ran it. */
  | { readonly type: 'offer-lost'; readonly invocation: Invocation }
  /** It can never be run: it fails for good. */
  | { readonly type: 'offer-failed'; readonly invocation: Invocation; readonly error: ErrorData }
  | { readonly type: 'session-cancelled'; readonly session: string; readonly error: ErrorData }
  /** The watchdog found that it would wait for ever: it is given up here, and told so. */
  | { readonly type: 'session-stuck'; readonly session: Session; readonly reason: string }
  | {
      readonly type: 'acknowledged';
      readonly session: string;
      readonly seq: number;
      readonly error: ErrorData | undefined;
    }
  /** A custom trigger's class has answered the question `id`, or could not. */
  | {
      readonly type: 'evaluated';
      readonly session: Session;
      readonly bucket: BucketRow;
      readonly trigger: TriggerRow;
      readonly id: number;
      readonly result: EvaluationResult;
    }
  | { readonly type: 'time-passed' };

export type SessionEffect =
  /** It waits for an instance from now on. */
  | { readonly type: 'enqueue'; readonly invocation: Invocation }
  /** Nobody shall run it any more: take it out of queue or slot, or from the instance that holds it (-1: none does). */
  | { readonly type: 'withdraw'; readonly invocation: Invocation; readonly slot: number }
  /** It runs and shall stop; its instance is replaced if it does not. */
  | {
      readonly type: 'abort';
      readonly invocation: Invocation;
      readonly fence: number;
      readonly slot: number;
      readonly error: ErrorData;
    }
  /** An attempt failed, timed out, was lost or overtaken by a rule; `final`: no other follows. For people, who look at logs. */
  | {
      readonly type: 'attempt-failed';
      readonly invocation: Invocation;
      readonly error: ErrorData;
      readonly final: boolean;
    }
  /** Whatever instances have of it, known here or not, shall not begin any more. */
  | { readonly type: 'stop-session'; readonly session: Session; readonly error: ErrorData }
  | { readonly type: 'output'; readonly session: Session; readonly object: StoredObject }
  /** To the owner of the bucket's bucket-scoped triggers. */
  | { readonly type: 'copy-object'; readonly session: Session; readonly seq: number; readonly object: StoredObject }
  /** A close of the bucket's bucket-scoped groups, for their owner. */
  | { readonly type: 'close-copy'; readonly session: Session; readonly seq: number; readonly bucket: number }
  /** A custom trigger's class is asked; `evaluated` follows. */
  | {
      readonly type: 'evaluate';
      readonly session: Session;
      readonly bucket: BucketRow;
      readonly trigger: TriggerRow;
      readonly plan: EvaluationPlan;
    }
  | { readonly type: 'persist'; readonly session: Session; readonly seq: number; readonly object: StoredObject }
  | {
      readonly type: 'session-ended';
      readonly session: Session;
      /** `parked`: it could not go on; whoever owns it decides whether it begins again. */
      readonly state: 'completed' | 'failed' | 'cancelled' | 'parked';
      readonly error: ErrorData | undefined;
    }
  /** Nothing uses the objects of the session any more. After `session-ended`. */
  | { readonly type: 'release'; readonly session: Session }
  /** An object that nobody took: a duplicate, or of an overtaken attempt. */
  | { readonly type: 'discard'; readonly object: StoredObject };
