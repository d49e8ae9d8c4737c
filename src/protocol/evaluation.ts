// What a trigger class of the user's is asked, and what it decides. The owner of the trigger's state (an app host, or the
// coordinator) asks an instance; between two questions nothing of the class is left but `state`.
//
// Times are the trigger's own: ms since its state began, without the time in which nobody had it.

import type { ErrorData } from '../base/index.ts';
import type { TriggerScope } from './manifest.ts';

/** An object as a trigger class sees it. Its value goes beside it. */
export interface EvaluationObject {
  /** Identifies it to its trigger. */
  readonly id: string;
  readonly name: string;
  readonly session: string;
  /** '' if none. */
  readonly group: string;
  readonly contentType: string;
  readonly size: number;
}

export type EvaluationEvent =
  | { readonly atMs: number; readonly object: EvaluationObject; readonly source?: never }
  | {
      readonly atMs: number;
      readonly source: { readonly function: string; readonly invocation: string };
      readonly object?: never;
    };

/** One question: what happened since the last one, in order. */
export interface Evaluation {
  readonly bucket: string;
  readonly trigger: string;
  readonly class: string;
  readonly scope: TriggerScope;
  readonly options?: unknown;
  /** The functions that it may fire. */
  readonly run: readonly string[];
  /** JSON of what `snapshot()` gave; undefined: the state begins. */
  readonly state?: string;
  /** When its timer is due; undefined: none is set. */
  readonly timerAtMs?: number;
  readonly events: readonly EvaluationEvent[];
  /** Timers due by then are served, each before the events that came after it. */
  readonly untilMs: number;
}

export interface EvaluatedFiring {
  /** Ids; undefined: all that the trigger holds. */
  readonly objects?: readonly string[];
  /** Undefined: all functions of the trigger. */
  readonly run?: readonly string[];
  readonly group?: string;
}

/** What the class answered to one event or timer. */
export interface EvaluatedReaction {
  /** How many of the events it had been given by then, the one that it answers to included. */
  readonly after: number;
  readonly fire: readonly EvaluatedFiring[];
  /** Ids of objects that will never fire. */
  readonly drop: readonly string[];
}

export interface Evaluated {
  readonly reactions: readonly EvaluatedReaction[];
  readonly timerAtMs?: number;
  readonly state: string;
}

export interface EvaluationFailure {
  readonly error: ErrorData;
  /**
   * `setup`: the class could not be made or restored. `event`: it failed in one event, or gave no answer to all of them.
   * `lost`: its instance or host ended, and something else may be what ended it.
   */
  readonly blame: 'setup' | 'event' | 'lost';
  /** Index of the event in which it failed, as far as that is known. */
  readonly at?: number;
}

export type EvaluationResult =
  | { readonly evaluated: Evaluated; readonly failure?: never }
  | { readonly failure: EvaluationFailure; readonly evaluated?: never };

/** Values of objects up to this size go with them to a trigger class: what it needs of larger ones belongs into a group or name. */
export const TRIGGER_VALUE_BYTES_MAX = 64 * 1024;
