/** Stories of one check: a second or so for a small class. */
export const SEEDS_DEFAULT = 100;
/** Events of one story: enough for several firings, and still to be read by a person. */
export const EVENTS_DEFAULT = 40;
/** Stories that are played to make a failing one smaller. */
export const SHRINK_TRIES_MAX = 2_000;
