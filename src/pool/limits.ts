import { assert } from '../base/index.ts';

/** Weight of the newest sample in an estimate, once there are many: follows a change within some tens of samples. */
export const ESTIMATE_WEIGHT_MIN = 0.05;
/** A start or a body that is still unknown counts as this: what a thread with a small bundle takes. */
export const START_MS_UNKNOWN = 200;
/** No body is thought to be shorter: taking the next one has its own time. */
export const BODY_MS_MIN = 0.05;
/** Standard deviations that are added to an estimate that a decision rests on. */
export const CAUTION_SD = 1;
/** Bounds of gap bins: from the first each is GAP_BIN_GROWTH times the one before. */
export const GAP_BIN_FIRST_MS = 250;
export const GAP_BIN_GROWTH = 1.25;
export const GAP_BINS = 64;
/** Levels of concurrency that a pool remembers gaps of; higher ones share the last. */
export const GAP_LEVELS_MAX = 64;
/** Weight of what was learnt from all pools of the node, in gaps, beside a pool's own. */
export const PRIOR_GAPS = 2;
/** Own gaps after which the windows are computed again: then after every so many more. */
export const REPLAN_SHARE = 0.1;
/** Instances that a burst may add as reserve, times those there were: one burst proves little. */
export const RESERVE_GROWTH_MAX = 2;
/** A burst as large as the last one but twice shall wait no longer than so many bodies. */
export const RESERVE_WAIT_BODIES = 3;

assert(ESTIMATE_WEIGHT_MIN > 0 && ESTIMATE_WEIGHT_MIN < 1, 'an estimate moves, and is not only the last sample');
assert(GAP_BIN_GROWTH > 1, 'bins grow');
/** Pause before an instance that died while it started is started again: doubles from the first to the second. */
export const START_BACKOFF_MIN_MS = 50;
export const START_BACKOFF_MAX_MS = 5_000;
/** A pool is looked at again for a change of mind no sooner than this. */
export const LOOK_MS_MIN = 1;
/** Chance that a gap ends in a bin, where nobody has seen one so long. */
export const HAZARD_UNKNOWN = 0.03;
/** A start ahead costs as much as idling this many times as long: it takes a core, idling takes memory. */
export const START_COST = 4;
/** Defaults of ByWorth: 100 s of idling for any cold start, and nearly three hours where one call an hour comes. */
export const COLD_START_WORTH_MS = 100_000;
export const COLD_START_WORTH_MS_AT_ONE_AN_HOUR = 10_000_000;
