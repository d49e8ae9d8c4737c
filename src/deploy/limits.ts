/** Loading an app runs its top level: what takes longer would hold up every cold start as well. */
export const EVALUATE_MS_MAX = 20_000;
/** Output of an app's top level that is kept; more ends its evaluation. */
export const EVALUATE_OUTPUT_BYTES_MAX = 1_048_576;
/** How much of it an error shows. */
export const OUTPUT_TAIL_CHARS_MAX = 400;
/** An editor saves several files, and each in several steps, within this time. */
export const WATCH_DEBOUNCE_MS = 60;
/** Builds in a row without a report, because each brought new folders to watch. */
export const WATCH_SETTLE_BUILDS_MAX = 5;
