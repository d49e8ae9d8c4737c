import { assert, MIB } from '../../base/index.ts';

/** How often an attempt whose instance was lost is tried again, whatever `retries` says. */
export const LOST_RETRIES_MAX = 3;
/** How often a source whose bucket's `rerun` rule was missed is executed again. */
export const RERUN_ATTEMPTS_MAX = 5;
/** Pause before that: doubles from the first to the second. */
export const RERUN_BACKOFF_MIN_MS = 5;
export const RERUN_BACKOFF_MAX_MS = 5_000;
/** Names of ended sessions whose trace is kept for `antrail trace`; the oldest goes first. */
export const ENDED_SESSIONS_MAX = 500;
/** Invocations of those sessions, all together. */
export const ENDED_INVOCATIONS_MAX = 20_000;
/** Invocations that one trace answer lists. */
export const TRACE_INVOCATIONS_MAX = 10_000;
/**
 * Invocations of one session that are kept whole after their end: what a trace can show. Of later ones whose objects nobody
 * can ask for only the id is kept.
 */
export const INVOCATIONS_KEPT_MAX = TRACE_INVOCATIONS_MAX;
/** Objects without content are taken out of a session's list when they are so many, and more than the others. */
export const HOLLOW_OBJECTS_MAX = 10_000;
/** Objects of one session. Beyond it a sender fails; nothing that was sent is lost. */
export const SESSION_OBJECTS_MAX = 5_000_000;
/** How often it is checked that every session can go on; one that could not twice in a row is parked. */
export const WATCHDOG_MS = 30_000;
/** Final failures that a session's end carries; the count goes on. */
export const FAILURES_MAX = 100;
/** Of the attempts of one of them the newest so many are told. */
export const FAILED_ATTEMPTS_MAX = 20;
/** Inputs of one of them, and of all of a session, that its end carries: a retry needs them when the session is gone. */
export const FAILED_INPUT_BYTES_MAX = 16 * MIB;
export const FAILED_INPUTS_BYTES_MAX = 64 * MIB;
/** An open session without a stated limit ends after this long without anything. */
export const IDLE_TIMEOUT_MS_DEFAULT = 600_000;
/** A back-off is spread by up to this share of itself, so that retries do not come in step. */
export const BACKOFF_JITTER = 0.5;
/** A handler that was aborted has this long to return before its instance is replaced. */
export const ABORT_GRACE_MS = 500;
/** With the limit of instances reached: how often a pool that waits looks for one that another pool could give up. */
export const ROOM_RETRY_MS = 50;
/** A pool without any instance waits so long for busy ones of others to come free before the oldest of them has to go. */
export const ROTATE_AFTER_MS = 500;
/** Work waits this long for an instance that is about to be free before another one is started. */
export const START_AFTER_MS = 5;
/** Instances of a pool that stay when nothing runs. */
export const RESERVE_INSTANCES = 2;
/** An instance above the reserve that was idle for this long goes. */
export const KEEP_ALIVE_MS = 60_000;
/** Pause before an instance that died while it started is started again: doubles from the first to the second. */
export const START_BACKOFF_MIN_MS = 50;
export const START_BACKOFF_MAX_MS = 5_000;
/** After this many starts in a row that failed, what waits for the pool is told so. */
export const START_FAILURES_MAX = 5;
/** Offers of the host per instance that wait in shared memory; the rest keeps its order in the queue. */
export const OFFERS_PER_INSTANCE = 4;
/** Who has waited so long gets a turn of AGED_EVERY whatever came after it: low priority waits longer, not for ever. */
export const AGED_AFTER_MS = 10_000;
export const AGED_EVERY = 4;
/** Of session and function together: each is from -1,000 to 1,000. */
export const PRIORITY_SUM_MAX = 2_000;

assert(START_BACKOFF_MIN_MS < START_BACKOFF_MAX_MS, 'a back-off grows');
assert(ROOM_RETRY_MS < ROTATE_AFTER_MS, 'it is looked for room before somebody has to go');
assert(ENDED_SESSIONS_MAX <= ENDED_INVOCATIONS_MAX, 'each kept session has at least one invocation');
assert(FAILED_INPUT_BYTES_MAX <= FAILED_INPUTS_BYTES_MAX, 'the inputs of one failure fit into a session’s end');
/** A pool keeps a spare instance only if attempts take this long: else one is free sooner than it would be started. */
export const SPARE_BODY_MS = 50;
/** Weight of the newest attempt in the estimate of that time. */
export const SPARE_BODY_WEIGHT = 0.1;
