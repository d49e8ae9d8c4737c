// Everything in the coordinator that grows, and where it stops.

import { assert, KIB, MIB } from '../../base/index.ts';

/** Invocations of sessions of one app that have not begun; the next start is refused with E_QUEUE_FULL. */
export const QUEUE_MAX = 10_000;
/** Sessions of one app that were accepted and have not ended: those that run wait for nobody's instance, but take memory. */
export const LIVE_SESSIONS_MAX = 100_000;
/** Starts that a host was given and has not begun: enough to keep its instances busy for the time that asking for more takes. */
export const STARTS_UNDER_WAY_MAX = 256;
/** Inputs of those; one more may go beyond it. */
export const STARTS_UNDER_WAY_BYTES_MAX = 16 * MIB;
/** Starts of all apps in one round; more wait for the next, so that one app's flood does not make a turn long for all. */
export const ROUND_MS = 1;
export const STARTS_PER_ROUND = 256;
/** Starts of an app of weight 1 before others have their turn. */
export const STARTS_QUANTUM = 16;
/** Who has waited so long gets a turn of AGED_EVERY whatever came after it: low priority waits longer, not for ever. */
export const AGED_AFTER_MS = 10_000;
export const AGED_EVERY = 4;
export const WEIGHT_DEFAULT = 1;
/** Their inputs, kept in memory to execute them again; per app. */
export const LIVE_INPUT_BYTES_MAX = 2_048 * MIB;
/** Sessions of one app that wait for their delay: they need no instance yet, so they may be more. */
export const DELAYED_SESSIONS_MAX = 100_000;
/** How often one session may lose its app host before it fails with E_NODE_LOST. */
export const LOST_RETRIES_MAX = 3;
/** A session that lost its app host so often may be what kills it: it is executed again apart from others of its kind. */
export const SUSPECT_AFTER_LOSSES = 2;
/** Such sessions at once, at most: it begins with one and doubles while their host lives. */
export const TRIAL_SESSIONS_MAX = 64;
/** A suspect whose host has lived for so long holds up the next one no longer. */
export const TRIAL_MS_MAX = 30_000;
/** How long a host may take to confirm a cancellation; then the session ends without it. */
export const CANCEL_GRACE_MS = 5_000;

/** Ended sessions kept in memory: those of synchronous calls, by count and by bytes of results, outputs and inputs. */
export const ENDED_SESSIONS_MAX = 10_000;
export const ENDED_BYTES_MAX = 64 * MIB;
/** One ended session above this keeps its record only, so that it does not push out thousands of small ones. */
export const ENDED_SESSION_BYTES_MAX = 4 * MIB;

/** Records and outputs of asynchronous and idempotent sessions. */
export const SESSION_RETENTION_MS = 24 * 3_600_000;
export const IDEMPOTENCY_WINDOW_MS = 24 * 3_600_000;
/** How often expired records are looked for, and how many at most go in one transaction. */
export const SWEEP_INTERVAL_MS = 10 * 60_000;
export const SWEEP_BATCH = 1_000;
/**
 * How often it is checked that every live session can go on; one that could not twice in a row is parked. Far above the time
 * for which a session may be known to an instance alone (LANE_WATCH_MS of the supervisor), so that this is no loss.
 */
export const WATCHDOG_MS = 30_000;
export const IDEMPOTENCY_KEY_CHARS_MAX = 255;

/** Outputs of one session that are kept for replay. */
export const OUTPUTS_MAX = 100_000;
export const OBJECT_NAME_CHARS_MAX = 512;
export const TAGS_MAX = 64;
export const TAG_CHARS_MAX = 256;
export const ENTRIES_MAX = 10_000;
/** Objects that one session takes from outside. */
export const OUTSIDE_OBJECTS_MAX = 100_000;
export const OPEN_IDLE_TIMEOUT_MS = 600_000;
export const CAUSES_MAX = 1_000;

/** Bytes that the bucket-scoped triggers of one app hold. */
export const HELD_BYTES_MAX = 1_024 * MIB;
/** Persisted objects of one app. */
export const PERSISTED_BYTES_MAX = 64 * 1024 * MIB;
/** Larger payloads become files: in the database every page of them would be copied on each change. */
export const INLINE_VALUE_BYTES_MAX = MIB;
/** A result up to this is shown inside a session's record; a larger one by address. */
export const RECORD_RESULT_BYTES_MAX = 64 * KIB;
/** Dead letters of one app; the oldest goes first. Who has more has a fault to mend, not letters to read. */
export const DEAD_LETTERS_MAX = 1_000;
/** Inputs of one letter that are kept for a retry; a letter with more can only be looked at. */
export const DEAD_LETTER_INPUT_BYTES_MAX = 16 * MIB;
/** Inputs of the letters of one app, together. */
export const DEAD_LETTER_BYTES_MAX = 256 * MIB;
/** Attempts that a letter tells of, over all of its retries. */
export const DEAD_LETTER_ATTEMPTS_MAX = 50;
export const LIST_LIMIT_MAX = 1_000;

export const RETRY_AFTER_MS_MIN = 100;
export const RETRY_AFTER_MS_MAX = 30_000;
export const THROUGHPUT_WINDOW_MS = 1_000;

/** Inputs of a session that is given to an instance itself: what rides in messages anyway. */
export const LANE_INPUT_BYTES_MAX = 16 * 1024;
/** Who looks at a session whose outcome came first waits this long at most for the host's account of it. */
export const SETTLED_WAIT_MS = 250;
/** Who looks at a running session waits this long at most for its host's account of it; a record without is better. */
export const PROGRESS_WAIT_MS = 250;

assert(QUEUE_MAX < LIVE_SESSIONS_MAX, 'who waits lives');
assert(STARTS_UNDER_WAY_MAX <= STARTS_PER_ROUND, 'one host can be filled in one round');
assert(ENDED_SESSION_BYTES_MAX < ENDED_BYTES_MAX, 'one ended session fits into the ring');
assert(DEAD_LETTER_INPUT_BYTES_MAX < DEAD_LETTER_BYTES_MAX, 'one letter fits into those of its app');
assert(SUSPECT_AFTER_LOSSES <= LOST_RETRIES_MAX, 'a suspect has an execution left');
assert(SWEEP_INTERVAL_MS < SESSION_RETENTION_MS, 'records are swept within their retention');
assert(RETRY_AFTER_MS_MIN < RETRY_AFTER_MS_MAX, 'retry-after has a range');
