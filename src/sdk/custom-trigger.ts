// A trigger of the user's own. Like the built-in ones it is a machine: it is told what happened and answers what to fire;
// it never waits and does no I/O, so that its state can be kept, moved and replayed.
//
// A new object of the class is made for every asking: `new Class(options)`, `restore(…)` of the last snapshot unless there
// is none, some of the methods below in the order in which things happened, `snapshot()`. Nothing else of it outlives that.
// Times are ms since the state began; time in which the server was down does not count.

/** An object as a trigger sees it. */
export interface TriggerObject<V = any> {
  /** Identifies it to this trigger, in snapshots too. */
  readonly id: string;
  readonly bucket: string;
  readonly name: string;
  readonly session: string;
  /** '' if none. */
  readonly group: string;
  readonly contentType: string;
  /** In bytes. */
  readonly size: number;
  /**
   * The value, of objects up to 64 KiB.
   * @throws E_QUOTA_EXCEEDED for a larger one: the trigger decides by its name, group or size.
   */
  readonly bytes: Uint8Array;
  text(): string;
  json<T = V>(): T;
}

/** One firing: every function of `run` is invoked once with these objects. */
export interface CustomFiring {
  /** Objects or their ids, each in one firing at most. Default: all that the trigger holds, in order of arrival. */
  readonly objects?: readonly (TriggerObject | string)[] | undefined;
  /** Some of the names of the option `run`. Default: all of them. */
  readonly run?: string | readonly string[] | undefined;
  /** Shown beside the firing's number. */
  readonly group?: string | undefined;
}

export interface CustomReaction {
  readonly fire?: readonly CustomFiring[] | undefined;
  /** Objects or ids that will never fire: their bytes are freed. */
  readonly drop?: readonly (TriggerObject | string)[] | undefined;
  /**
   * Replaces the timer that is set; null removes it; without this field it stays. It is due 1 ms after `nowMs` at the
   * earliest. In session scope a timer keeps its session open only while the trigger holds objects.
   */
  readonly timerAtMs?: number | null | undefined;
}

/**
 * What a class for `custom` has. All methods answer at once (no promise). An event in which one of them throws, or does
 * not come to an end, is tried again from the state before it, and given up after the third time: in session scope the
 * session fails with it, in bucket scope the object becomes a dead letter and the trigger goes on.
 */
export interface CustomTrigger {
  /** A new object of the bucket; the trigger holds it from now on, until it fires or drops it. */
  onObject(object: TriggerObject, nowMs: number): CustomReaction | undefined;
  /** @param nowMs what the timer was set for, however late it is served. */
  onTimer?(nowMs: number): CustomReaction | undefined;
  /** An invocation of one of `sources` has started: once for each, whatever its attempts. */
  onSourceStarted?(
    source: { readonly function: string; readonly invocation: string },
    nowMs: number,
  ): CustomReaction | undefined;
  /** Plain data (JSON) from which `restore` makes the same state again. */
  snapshot(): unknown;
  /** @param snapshot of this class, maybe of an earlier version of the app and under other options. */
  restore(snapshot: any): void;
}

export type CustomTriggerClass<O = any> = new (options: O) => CustomTrigger;
