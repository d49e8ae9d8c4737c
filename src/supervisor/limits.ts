import { assert } from '../base/index.ts';

/** From spawn to `ready`: loading a large bundle on a busy machine takes seconds. */
export const START_MS_MAX = 60_000;
/** From connecting to `hello`. */
export const HELLO_MS_MAX = 5_000;
/** Pauses before the next start after deaths in a row: doubled each time, jittered by up to half. */
export const BACK_OFF_MS_MIN = 100;
export const BACK_OFF_MS_MAX = 10_000;
/** A host that was ready for this long starts again at once, and its count of deaths begins anew. */
export const HEALTHY_MS = 10_000;
/** How long a host that nothing uses may take to end by itself, and one that was asked to stop. */
export const DRAIN_MS_MAX = 10_000;
export const STOP_MS_MAX = 3_000;
/** How long what a dead host wrote last may take to arrive. */
export const LAST_WORDS_MS_MAX = 1_000;
/** Lines of a host's output that an error quotes. */
export const LAST_LINES_MAX = 20;

assert(BACK_OFF_MS_MIN < BACK_OFF_MS_MAX, 'back-off has a range');
assert(HELLO_MS_MAX < START_MS_MAX, 'a host says hello before it is ready');
/** While an instance has a session that only it knows of, the host is told to look this often. */
export const LANE_WATCH_MS = 100;
/** Connections of one host's instances; it has no more instances than that. */
export const LANES_MAX = 64;
/** As much work may wait for an instance: waking another one takes about as long. */
export const LANE_WORTH_MS = 0.4;
/** An instance that has not ended anything for so long takes its time, whatever is known of its functions. */
export const LANE_LATE_MS = 5;
/** Weight of the newest sample in the estimate of a function's time. */
export const LANE_WEIGHT = 0.05;
