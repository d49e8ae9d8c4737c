// A trigger of the user's own. Like the built-in ones it is a machine: it is told what happened and answers what to fire;
// it never waits and does no I/O, so that its state can be kept, moved and replayed.

/** An object without its bytes. */
export interface TriggerObject {
  readonly id: string;
  readonly name: string;
  readonly session: string;
  readonly group: string;
  readonly size: number;
}

export interface CustomFiring {
  readonly objects: readonly TriggerObject[];
  /** One of the names of the option `run`; default all of them. */
  readonly run?: string | undefined;
}

export interface CustomReaction {
  readonly fire?: readonly CustomFiring[] | undefined;
  /** Replaces the timer that is set; null removes it. Same clock as `nowMs`. */
  readonly timerAtMs?: number | null | undefined;
}

export interface CustomTrigger {
  onObject(object: TriggerObject, nowMs: number): CustomReaction | undefined;
  onTimer?(nowMs: number): CustomReaction | undefined;
  /** An invocation of one of `sources` has started. */
  onSourceStarted?(
    source: { readonly function: string; readonly invocation: string },
    nowMs: number,
  ): CustomReaction | undefined;
  /** Plain data from which `restore` makes the same state again. */
  snapshot(): unknown;
  restore(snapshot: any): void;
}

export type CustomTriggerClass<O = any> = new (options: O) => CustomTrigger;
