// When a pool starts another instance for what waits: policies as functions with one signature.
//
// All of them work with late binding: whatever is free first takes the oldest. What differs is how many starts are begun for
// what waits. Why that is so much: an instance that is ready in c serves nothing before, while W warm ones with bodies of e
// serve W·c/e meanwhile; so for a burst B only B − W·(1 + floor(c/e)) starts can help anybody in it.

import type { Estimate } from './estimate.ts';
import { BODY_MS_MIN, START_MS_UNKNOWN } from './limits.ts';

export interface StartView {
  /** Invocations that no instance has begun. */
  readonly waiting: number;
  /** How long the oldest of them has waited, ms. */
  readonly oldestWaitMs: number;
  /** How many of them have waited that long. */
  readonly waitedFor: (ms: number) => number;
  /** How long each busy instance has been at its invocation, ms. */
  readonly busyForMs: readonly number[];
  readonly idle: number;
  /** How long ago each start that is under way was begun, ms. */
  readonly startingForMs: readonly number[];
  readonly body: Estimate;
  readonly start: Estimate;
}

export interface StartDecision {
  /** Instances to start now. */
  readonly count: number;
  readonly why: string;
  /** Look again after this long, ms, if nothing else happens before. */
  readonly againInMs?: number;
}

export type StartPolicy = (view: StartView) => StartDecision;
export type StartPolicyName = 'always' | 'drain-aware' | 'cidre-like';

const NONE: StartDecision = { count: 0, why: 'nothing waits that an idle instance could not take' };

/**
 * The article's rule: each invocation that finds no idle instance begins a start, and then takes whichever instance is free
 * first; the start ends as reserve. Wait: at most a start.
 */
export function always({ waiting, idle, startingForMs }: StartView): StartDecision {
  const count = waiting - idle - startingForMs.length;
  if (count <= 0) return NONE;
  return { count, why: `${waiting} wait and ${startingForMs.length} instances are starting` };
}

/**
 * Begins only what the present instances could not serve before a new one would be ready, by the measured times of bodies
 * and starts with their deviation. Wait: at most two cautious starts, since what has waited as long as one is given one.
 */
export function drainAware(view: StartView): StartDecision {
  const { waiting, oldestWaitMs, waitedFor, busyForMs, idle, startingForMs, body, start } = view;
  if (waiting <= idle) return NONE;
  const startMs = start.cautious(START_MS_UNKNOWN);
  const bodyMs = body.cautious(Number.POSITIVE_INFINITY);
  const again = Math.max(1, startMs - oldestWaitMs);
  let served = idle * servedBy(startMs, bodyMs);
  for (const forMs of busyForMs) served += servedBy(startMs - leftMs(forMs, bodyMs), bodyMs);
  // Whatever starts already is ready before a new one would be.
  for (const forMs of startingForMs) served += servedBy(Math.min(forMs, startMs), bodyMs);
  // Whatever was thought of the others: each that has waited as long as a start is given one.
  const late = waitedFor(startMs) - startingForMs.length;
  const count = Math.max(waiting - served, late, 0);
  if (count === 0) {
    return {
      count,
      why: `${waiting} wait and are served before a start of ${ms(startMs)} would be over`,
      againInMs: again,
    };
  }
  const why =
    late > 0 && waiting <= served
      ? `${late} have waited up to ${ms(oldestWaitMs)}, as long as a start takes`
      : `${waiting} wait, of which ${served} are served within the ${ms(startMs)} of a start (bodies take ${ms(bodyMs)})`;
  return { count, why, againInMs: startMs };
}

/**
 * After CIDRE (ASPLOS 2025): starts for one that waits only when the expected wait for a warm instance is longer than a
 * start. It looks at means and at one request at a time, without what is starting.
 */
export function cidreLike({ waiting, busyForMs, idle, startingForMs, body, start }: StartView): StartDecision {
  const unserved = waiting - idle - startingForMs.length;
  if (unserved <= 0) return NONE;
  const bodyMs = body.count === 0 ? Number.POSITIVE_INFINITY : body.mean;
  const startMs = start.count === 0 ? START_MS_UNKNOWN : start.mean;
  const warm = busyForMs.length + idle;
  // The last in the queue waits for its turn among the warm ones.
  let count = 0;
  for (let place = 1; place <= unserved; place++) {
    const turnMs = warm === 0 ? Number.POSITIVE_INFINITY : Math.ceil(place / warm) * bodyMs;
    if (turnMs > startMs) count++;
  }
  return { count, why: `${count} would wait longer for a warm instance than the ${ms(startMs)} of a start` };
}

export const START_POLICIES: Readonly<Record<StartPolicyName, StartPolicy>> = {
  always,
  'drain-aware': drainAware,
  'cidre-like': cidreLike,
};

/** How many an instance can begin within `withinMs` from now on, the first at once. */
function servedBy(withinMs: number, bodyMs: number): number {
  return withinMs < 0 ? 0 : 1 + Math.floor(withinMs / Math.max(bodyMs, BODY_MS_MIN));
}

/** What is left of a body: one that is over its time is thought to take as long again as it is over. */
function leftMs(forMs: number, bodyMs: number): number {
  return forMs <= bodyMs ? bodyMs - forMs : forMs - bodyMs;
}

function ms(value: number): string {
  return Number.isFinite(value) ? `${Math.round(value)} ms` : 'unknown time';
}
