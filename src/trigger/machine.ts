// What every trigger is: a synchronous state machine. Objects, timers and news of producers in, firings out.
//
// T1. No I/O, no clock, no randomness: the same events in the same order give the same firings, indices included.
// T2. A key is taken at most once, however often it is delivered; no object is in two firings of one trigger.
// T3. No two firings of one trigger and scope have the same index.
// T4. An event that throws has changed nothing.
// T5. `restoreTrigger(spec, snapshot(now), now)` behaves from then on like the machine itself.

import { assert, PlatformError } from '../base/index.ts';
import { HELD_OBJECTS_MAX } from './limits.ts';
import type { TriggerSpec } from './spec.ts';

/** What a trigger sees of an object. */
export interface TriggerObject {
  /**
   * Identifies it to the owner of the trigger. Session scope: its name in that bucket; bucket scope:
   * session + '\u0000' + name.
   */
  readonly key: string;
  readonly name: string;
  /** '' if none. */
  readonly group: string;
  readonly session: string;
}

/** Both clocks, read together. `monotonicMs` must not go back between calls; `epochMs` may. */
export interface Now {
  readonly monotonicMs: number;
  readonly epochMs: number;
}

/** One match: every function of the trigger's `run` is invoked once with these objects, in this order. */
export interface Firing {
  /** Unique per trigger and scope; the same in every re-execution of the same arrivals. */
  readonly index: string;
  /** Keys. The machine keeps no reference to the array. */
  readonly objects: readonly string[];
  /** dynamicGroup, custom, and redundant in bucket scope. */
  readonly group?: string;
  /** custom: these functions of `run` only. */
  readonly run?: readonly string[];
}

/** What is named at run time: a set of names, or how many. Exactly one of the two. */
export interface Join {
  readonly names?: readonly string[];
  readonly count?: number;
}

export interface TriggerMachine {
  readonly spec: TriggerSpec;
  /**
   * An object arrived. A timer that is due by `now` is served first, so a late timer changes no firing's content.
   * @throws E_QUOTA_EXCEEDED (overload): a limit of limits.ts is reached; the object was not taken.
   * Idempotent per key. Cost: amortised O(1), plus what it fires.
   */
  onObject(object: TriggerObject, now: Now): Firing[];
  /** To be called when now >= nextTimerMs(); earlier it does no harm. */
  onTimer(now: Now): Firing[];
  /** Monotonic ms of the next timer; undefined when none pends. It may move with every event. */
  nextTimerMs(): number | undefined;
  /** Session scope: the session does not end before this is over. */
  readonly keepsOpen: boolean;
  /**
   * dynamicJoin: the set or count named at run time; other kinds: nothing.
   * @param by invocation id: a repeat by the same invocation is ignored.
   * @throws E_OBJECT_EXISTS (usage): another invocation has joined. E_OPTION_INVALID (usage): neither or both given, or
   *   a count that is not a whole number. E_QUOTA_EXCEEDED (overload): more than HELD_OBJECTS_MAX.
   */
  onJoin(join: Join, by: string, now: Now): Firing[];
  /** dynamicGroup: fires what is held and closes; a repeat is ignored. Other kinds: nothing. */
  onClose(now: Now): Firing[];
  /** After a close: the owner refuses later sends into the bucket. */
  readonly closed: boolean;
  /** dynamicGroup with `producers`: an invocation of this function ended, for good. */
  onProducerEnded(functionName: string, outcome: 'ok' | 'failed'): void;
  /** dynamicGroup with `producers`: nothing of the session is queued, running or awaiting a retry any more. */
  onQuiet(now: Now): Firing[];
  /** Bucket scope: the session has ended, so none of its objects can be delivered again. What is held stays held. */
  forgetSession(session: string): void;
  /**
   * Bucket scope, after a restart: what it held and `isKept` does not know was lost with its session. It is as if those
   * objects had never come.
   */
  keepOnly(isKept: (key: string) => boolean): void;
  /** Objects that it holds unfired. */
  readonly held: number;
  /** Their keys, for the owner to keep their bytes alive. */
  heldKeys(): Iterable<string>;
  /** For people: what it still waits for; undefined when nothing. */
  waitsFor(): string | undefined;
  /**
   * JSON-able state. Monotonic times are relative to `now`: they survive a restart, which counts as no time passed;
   * a cron's next run is wall-clock time. Cost: O(keys held and remembered).
   */
  snapshot(now: Now): unknown;
}

/** A machine to which nothing but objects happens; the others override what concerns them. */
export abstract class Machine implements TriggerMachine {
  abstract readonly spec: TriggerSpec;
  abstract onObject(object: TriggerObject, now: Now): Firing[];
  abstract readonly held: number;
  abstract heldKeys(): Iterable<string>;
  abstract waitsFor(): string | undefined;
  abstract snapshot(now: Now): unknown;

  get closed(): boolean {
    return false;
  }

  get keepsOpen(): boolean {
    return this.nextTimerMs() !== undefined;
  }

  onTimer(_now: Now): Firing[] {
    return [];
  }

  nextTimerMs(): number | undefined {
    return undefined;
  }

  onJoin(_join: Join, _by: string, _now: Now): Firing[] {
    return [];
  }

  onClose(_now: Now): Firing[] {
    return [];
  }

  onProducerEnded(_functionName: string, _outcome: 'ok' | 'failed'): void {}

  onQuiet(_now: Now): Firing[] {
    return [];
  }

  forgetSession(_session: string): void {}

  keepOnly(isKept: (key: string) => boolean): void {
    for (const key of this.heldKeys())
      assert(isKept(key), 'only a kind with a snapshot of its own can hold what was lost');
  }
}

/** @throws E_QUOTA_EXCEEDED (overload) when one more object than `held` is too many. */
export function assertRoomFor(kind: string, held: number): void {
  if (held < HELD_OBJECTS_MAX) return;
  throw new PlatformError(
    'E_QUOTA_EXCEEDED',
    `The ${kind} trigger holds ${HELD_OBJECTS_MAX} objects that have not fired, the most it may: ` +
      'let it fire before you send more, or spread the objects over several buckets.',
    { details: { limit: 'HELD_OBJECTS_MAX', max: HELD_OBJECTS_MAX } },
  );
}

/** '1 object', '2 objects'. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
