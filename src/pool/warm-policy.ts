// Which unused instances stay, and which are started ahead: policies with one signature.

import { Estimate } from './estimate.ts';
import { IdleGaps } from './idle-gaps.ts';
import { type KeepPlan, planOf } from './keep-plan.ts';
import {
  GAP_BINS,
  GAP_LEVELS_MAX,
  HAZARD_UNKNOWN,
  PRIOR_GAPS,
  REPLAN_SHARE,
  START_COST,
  START_MS_UNKNOWN,
} from './limits.ts';

export interface Wish {
  /** One that is there stays. */
  readonly wanted: boolean;
  /** And if there is none, one is started. */
  readonly ahead: boolean;
  /** The wish is another one from this age of the gap on, ms; Infinity: never. */
  readonly untilAgeMs: number;
  readonly why: string;
}

/** What one pool has learnt, and what it wants. Levels count from 1. */
export interface WarmPolicy {
  /** One more invocation runs than before, `level` in all. @param gapMs since the level was last in use; undefined: never. */
  rose(level: number, gapMs: number | undefined, nowMs: number): void;
  /** Whether an instance is wanted for a level that has been unused so long. */
  wish(level: number, ageMs: number): Wish;
  bodyTook(ms: number): void;
  startTook(ms: number): void;
}

const NOTHING = { bodyTook() {}, startTook() {} };

/** Each instance stays so long after its last use. */
export function fixed(keepMs: number): WarmPolicy {
  const stays: Wish = { wanted: true, ahead: false, untilAgeMs: keepMs, why: `idle for less than ${text(keepMs)}` };
  const goes: Wish = {
    wanted: false,
    ahead: false,
    untilAgeMs: Number.POSITIVE_INFINITY,
    why: `idle for ${text(keepMs)}`,
  };
  return { rose() {}, wish: (_, ageMs) => (ageMs < keepMs ? stays : goes), ...NOTHING };
}

/** All stay until the room is needed (EvictionOrder decides whose). */
export function untilEvicted(): WarmPolicy {
  const stays: Wish = {
    wanted: true,
    ahead: false,
    untilAgeMs: Number.POSITIVE_INFINITY,
    why: 'until its room is needed',
  };
  return { rose() {}, wish: () => stays, ...NOTHING };
}

/** Before anything is known: gaps are spread over many orders of magnitude. */
const UNKNOWN_HAZARDS = new Float64Array(GAP_BINS).fill(HAZARD_UNKNOWN);

/** What all pools of a node have in common: gaps of anybody, each pool counting about the same. */
export class Population {
  readonly gaps = new IdleGaps();
  #hazards: Float64Array | undefined;
  #plannedAt = 0;

  add(gapMs: number, weight: number): void {
    this.gaps.add(gapMs, weight);
  }

  hazards(): Float64Array {
    if (this.#hazards === undefined || this.gaps.total > this.#plannedAt * (1 + REPLAN_SHARE)) {
      this.#hazards = this.gaps.hazards(UNKNOWN_HAZARDS, PRIOR_GAPS);
      this.#plannedAt = this.gaps.total;
    }
    return this.#hazards;
  }
}

export interface ByWorthOptions {
  /** What a cold start less is worth, whoever it would have met, ms of idling. */
  readonly worthMs: number;
  /**
   * And on top what it is worth to a pool with one invocation an hour; with n an hour one n-th of it: the share of cold
   * starts among their own invocations is what the callers of a function see.
   */
  readonly worthMsAtOneAnHour: number;
  readonly population: Population;
  /** When the pool came to be, ms. */
  readonly sinceMs: number;
}

const HOUR_MS = 3_600_000;

/** Ours: per level of concurrency, the windows in which an instance saves more than it costs (planOf). */
export class ByWorth implements WarmPolicy {
  readonly #options: ByWorthOptions;
  readonly #levels: { readonly gaps: IdleGaps; plan: KeepPlan | undefined; plannedAt: number }[] = [];
  readonly #body = new Estimate();
  readonly #start = new Estimate();
  #invocations = 0;
  #nowMs: number;

  constructor(options: ByWorthOptions) {
    this.#options = options;
    this.#nowMs = options.sinceMs;
  }

  bodyTook(ms: number): void {
    this.#body.add(ms);
  }

  startTook(ms: number): void {
    this.#start.add(ms);
  }

  rose(level: number, gapMs: number | undefined, nowMs: number): void {
    this.#nowMs = nowMs;
    this.#invocations++;
    if (gapMs === undefined) return;
    const own = this.#level(level);
    own.gaps.add(gapMs);
    this.#options.population.add(gapMs, 1 / (1 + own.gaps.total));
    if (own.gaps.total > own.plannedAt * (1 + REPLAN_SHARE)) own.plan = undefined;
  }

  wish(level: number, ageMs: number): Wish {
    const plan = this.#planOf(level);
    for (const { fromMs, toMs, ahead } of plan) {
      if (ageMs < fromMs) {
        // It must be ready when its window opens.
        const openMs = Math.max(0, fromMs - this.#start.cautious(START_MS_UNKNOWN));
        if (ageMs < openMs) {
          return {
            wanted: false,
            ahead: false,
            untilAgeMs: openMs,
            why: `its next use is likely from ${text(fromMs)} on`,
          };
        }
        return {
          wanted: true,
          ahead,
          untilAgeMs: toMs,
          why: `its next use is likely from ${text(fromMs)} to ${text(toMs)}`,
        };
      }
      if (ageMs < toMs)
        return { wanted: true, ahead, untilAgeMs: toMs, why: `its next use is likely within ${text(toMs)}` };
    }
    const { toMs } = plan.at(-1) ?? { toMs: 0 };
    return {
      wanted: false,
      ahead: false,
      untilAgeMs: Number.POSITIVE_INFINITY,
      why: `unused for ${text(toMs)}: idling costs more`,
    };
  }

  #planOf(level: number): KeepPlan {
    const own = this.#level(level);
    if (own.plan !== undefined) return own.plan;
    const { worthMs, worthMsAtOneAnHour, population, sinceMs } = this.#options;
    const hours = 1 + (this.#nowMs - sinceMs) / HOUR_MS;
    const startMs = this.#start.cautious(START_MS_UNKNOWN);
    // What more than one at a time would wait for is mostly served by the others, unless bodies are long.
    const share = level === 1 ? 1 : Math.min(1, this.#body.mean / startMs);
    const perHour = this.#invocations / hours;
    const hazards = own.gaps.hazards(population.hazards(), PRIOR_GAPS);
    own.plan = planOf(hazards, (worthMs + worthMsAtOneAnHour / perHour) * share, startMs * START_COST);
    own.plannedAt = own.gaps.total;
    return own.plan;
  }

  #level(level: number): { readonly gaps: IdleGaps; plan: KeepPlan | undefined; plannedAt: number } {
    const at = Math.min(level, GAP_LEVELS_MAX) - 1;
    let own = this.#levels[at];
    if (own === undefined) {
      own = { gaps: new IdleGaps(), plan: undefined, plannedAt: 0 };
      this.#levels[at] = own;
    }
    return own;
  }
}

function text(ms: number): string {
  if (ms < 10_000) return `${Math.round(ms)} ms`;
  return ms < 600_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}
