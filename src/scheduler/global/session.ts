// A session as the coordinator sees it: what it takes to execute it again, and how far it has come.

import type { EpochMs, ErrorData, MonotonicMs, SessionId } from '../../base/index.ts';
import { assert } from '../../base/index.ts';
import type {
  FinalFailure,
  LaneAccount,
  ObjectHeader,
  OutputEvent,
  Payload,
  SessionCounts,
  SyncOutcome,
  UnfiredTrigger,
} from '../../protocol/index.ts';

export interface StoredObject {
  readonly header: ObjectHeader;
  readonly bytes: Uint8Array;
}

export interface SessionEntry {
  readonly function: string;
  readonly inputs: readonly StoredObject[];
}

/** Everything that a second execution needs; never changes. */
export interface SessionSpec {
  readonly app: string;
  readonly version: string;
  readonly entries: readonly SessionEntry[];
  /** Its start is, or will be, on disk: it survives the server. */
  readonly durable: boolean;
  /** Nobody waits in one request for its end: async, delayed, opened by an object, or a firing. */
  readonly detached: boolean;
  readonly timeoutMs?: number;
  readonly priority: number;
  readonly tags: Readonly<Record<string, string>>;
  readonly causes: readonly string[];
  readonly causesCount?: number;
  readonly open?: { readonly idleTimeoutMs: number };
  readonly idempotency?: { readonly scope: string; readonly digest: string };
  /** `<bucket>/<trigger>/<index>` of the firing that it executes. */
  readonly firing?: string;
  /** Objects held durably that this firing consumes; freed when it ends, unless its own start was durable. */
  readonly consumes?: readonly string[];
  readonly retryOf?: string;
  readonly forkOf?: string;
  /** The dead letter that it tries again. */
  readonly letter?: string;
}

/**
 * ```
 * delayed ──▶ waiting ──▶ running ──▶ ended
 *                ▲  host lost │ │ cancel, deadline
 *                └────────────┘ └──▶ cancelling ──▶ ended
 * ```
 * Every state but `ended` may also end at once: cancelled, out of time, or its host lost too often. From `delayed`,
 * `waiting` and `running` the watchdog may park it; resumed it is `waiting` again.
 */
export type SessionPhase = 'delayed' | 'waiting' | 'running' | 'parked' | 'cancelling' | 'ended';

const MOVES: Readonly<Record<SessionPhase, readonly SessionPhase[]>> = {
  delayed: ['waiting', 'parked', 'ended'],
  waiting: ['running', 'parked', 'ended'],
  running: ['waiting', 'parked', 'cancelling', 'ended'],
  parked: ['waiting', 'ended'],
  cancelling: ['ended'],
  ended: [],
};

export interface FailedInvocation extends FinalFailure {
  /** Its inputs, where they came with it. */
  readonly inputObjects?: readonly StoredObject[];
}

/** How a session ended. */
export interface SessionEnd {
  readonly state: 'completed' | 'failed' | 'cancelled';
  readonly result?: Payload;
  readonly error?: ErrorData;
  readonly unfired: readonly UnfiredTrigger[];
  readonly counts: SessionCounts;
  readonly meteredMs: number;
  /** Until they are dead letters, or not. */
  readonly failures?: readonly FailedInvocation[];
  /** How many more there were. */
  readonly failuresDropped?: number;
  /** Until it is written: JSON of its SessionTrace. */
  readonly trace?: Uint8Array;
}

/** One object, close or join that came from outside; told again to the next host when one is lost. */
export type OutsideEvent =
  | { readonly type: 'object'; readonly object: StoredObject; readonly digest: string }
  | { readonly type: 'close'; readonly bucket: string }
  | { readonly type: 'join'; readonly bucket: string; readonly names?: readonly string[]; readonly count?: number };

export const NO_COUNTS: SessionCounts = { invocations: 0, attempts: 0, objects: 0, bytes: 0, firings: 0 };
const NO_OUTPUTS: readonly OutputEvent[] = [];
const NO_UNFIRED: readonly UnfiredTrigger[] = [];

/** The end of a session that was one attempt which sent nothing. */
export function laneEnd({ objects, bytes, meteredMs }: LaneAccount, result: Payload | undefined): SessionEnd {
  const counts = { invocations: 1, attempts: 1, objects, bytes, firings: 0 };
  if (result === undefined) return { state: 'completed', unfired: NO_UNFIRED, counts, meteredMs };
  return { state: 'completed', result, unfired: NO_UNFIRED, counts, meteredMs };
}

export class Session {
  readonly id: SessionId;
  readonly spec: SessionSpec;
  readonly startedAtMs: EpochMs;
  readonly inputBytes: number;
  /** Its priority and that of its (first) entry function together: higher goes first. */
  rank: number;
  #phase: SessionPhase;
  /** Counts executions; a message that bears another number is of an overtaken one. */
  run = 0;
  /** Where admission has it (AD1). */
  place: 'none' | 'queued' | 'under-way' | 'begun' | 'gone' = 'none';
  /** Nothing of it has ever run, as far as is known: it counts against the queue of its app. */
  neverBegun = false;
  /** How often its host died. */
  lost = 0;
  /** Of its `timeoutMs`, what an earlier server has used up. */
  spentMs = 0;
  deadlineMs: MonotonicMs | undefined;
  /** Why it is cancelled, while it is `cancelling`. */
  cancelError: ErrorData | undefined;
  /** Why it cannot go on, while it is `parked`. */
  parkError: ErrorData | undefined;
  outcome: SyncOutcome | undefined;
  /** It is over, and the outcome is known; the host's account of it is still to come. */
  settled = false;
  outputs: readonly OutputEvent[] = NO_OUTPUTS;
  #outputKeys: Set<string> | undefined;
  outside: OutsideEvent[] | undefined;
  /** Of what came from outside, as admission counts it. */
  outsideBytes = 0;
  /** Numbers what came from outside, refused or not: records of it are kept by number. */
  outsideCount = 0;
  /** Whether there may be marks on disk of objects that it gave to triggers. */
  marked = false;
  end: SessionEnd | undefined;
  endedAtMs: EpochMs | undefined;

  constructor(id: SessionId, spec: SessionSpec, startedAtMs: EpochMs, delayed: boolean) {
    this.id = id;
    this.spec = spec;
    this.startedAtMs = startedAtMs;
    this.rank = spec.priority;
    this.#phase = delayed ? 'delayed' : 'waiting';
    let bytes = 0;
    for (const entry of spec.entries) for (const input of entry.inputs) bytes += input.bytes.length;
    this.inputBytes = bytes;
  }

  /** What it counts for in its app's queue. */
  get invocationCount(): number {
    return Math.max(1, this.spec.entries.length);
  }

  get phase(): SessionPhase {
    return this.#phase;
  }

  move(to: SessionPhase): void {
    assert(
      MOVES[this.#phase].includes(to),
      `a session may go from ${this.#phase} to ${to} (${this.id}, run ${this.run})`,
    );
    this.#phase = to;
  }

  /** @returns the event, or undefined when an earlier run gave an output of that name already. */
  addOutput(bucket: string, name: string, payload: Payload): OutputEvent | undefined {
    const key = `${bucket}\u0000${name}`;
    if (this.#outputKeys === undefined) {
      this.#outputKeys = new Set();
      this.outputs = [];
    }
    if (this.#outputKeys.has(key)) return undefined;
    this.#outputKeys.add(key);
    const output = { n: this.outputs.length + 1, bucket, name, payload };
    (this.outputs as OutputEvent[]).push(output);
    return output;
  }

  outsideObject(bucket: string, name: string): Extract<OutsideEvent, { type: 'object' }> | undefined {
    for (const event of this.outside ?? []) {
      if (event.type === 'object' && event.object.header.name === name && event.object.header.bucket === bucket) {
        return event;
      }
    }
    return undefined;
  }
}
