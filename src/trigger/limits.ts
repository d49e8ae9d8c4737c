// Everything in a trigger that grows, and where it stops. Beyond a limit of state: E_QUOTA_EXCEEDED (overload), with
// nothing taken. Beyond a limit of options: a sentence of `checkTrigger`.

import { assert } from '../base/index.ts';

/** Objects that one trigger holds unfired: their bytes are kept alive, so more of them would be a leak of memory. */
export const HELD_OBJECTS_MAX = 1_000_000;

/** Keys that one trigger remembers so as to ignore a second delivery: those held and those fired of live sessions. */
export const TAKEN_KEYS_MAX = 2_000_000;

/**
 * Groups that a bucket-scoped `redundant` has open. A group whose losers never come would stay open for ever, so the
 * oldest one that has fired makes room; only when none has fired is the next group refused.
 */
export const REDUNDANT_GROUPS_MAX = 100_000;

/** `n` of a `redundant`. */
export const REDUNDANT_SIZE_MAX = 100_000;

/** `names` of a `bySet`: they are part of the manifest; a larger set is named at run time, with `dynamicJoin`. */
export const SET_NAMES_MAX = 100_000;

/** Functions that one firing invokes, and entries of `producers` and `sources`. */
export const FUNCTIONS_MAX = 100;

/** The longest delay that one timer of the runtime can wait (2^31 - 1). */
export const TIMER_DELAY_MS_MAX = 2_147_483_647;

/** Characters of a `match` or `cron`. */
export const PATTERN_CHARS_MAX = 1_000;

/** Names that a reason to wait spells out: it is read by people. */
export const REASON_NAMES_MAX = 5;

/** Events that wait for a custom trigger's class; the next object is refused. */
export const EVALUATION_QUEUE_MAX = 250_000;

/** Events of one evaluation: restoring the class and taking its snapshot is paid once for all of them. */
export const EVALUATION_EVENTS_MAX = 128;

/** An event in which a class fails so often is given up: the state before it is the same each time. */
export const EVALUATION_TRIES_MAX = 3;

/**
 * Evaluations in a row whose instance or host was lost, maybe because of something else; from then on it is their fault. A class
 * that ends its host each time must not do so for long: sessions beside it bear three losses.
 */
export const EVALUATION_LOSSES_MAX = 6;

/** Characters of a class's state as JSON: it travels with each evaluation. */
export const CUSTOM_STATE_CHARS_MAX = 8 * 1024 * 1024;

/** Characters of a custom trigger's options as JSON: they are part of the manifest. */
export const CUSTOM_OPTIONS_CHARS_MAX = 64 * 1024;

/** Firings of one evaluation: its answer is one message. */
export const EVALUATION_FIRINGS_MAX = 10_000;

/** A timer is due this long after the event that set it at the earliest: one that is always due would never let go. */
export const TIMER_STEP_MS_MIN = 1;

/** Timers that one evaluation serves; what is still due is served by the next one. */
export const EVALUATION_TIMERS_MAX = 1_000;

assert(EVALUATION_QUEUE_MAX > EVALUATION_EVENTS_MAX, 'a whole evaluation can wait');
assert(EVALUATION_QUEUE_MAX <= HELD_OBJECTS_MAX, 'what waits for its evaluation is held too');
assert(TAKEN_KEYS_MAX > HELD_OBJECTS_MAX, 'what is held is remembered too');
assert(REDUNDANT_SIZE_MAX <= HELD_OBJECTS_MAX, 'the k-th of n can be held');
assert(SET_NAMES_MAX <= HELD_OBJECTS_MAX, 'a set can be held until it is complete');
