/** While anything runs, rings are read and deadlines checked at least this often, rung or not. */
export const WATCH_MS = 100;
/** Instances that go on telling keep the host from the server no longer than this. */
export const HOST_SLICE_MS = 5;
/** Start-to-start samples per function for the percentiles of `stats`. */
export const HOP_SAMPLES_MAX = 1_000;
/** Blobs of one frame from the server. */
export const FRAME_BYTES_MAX = 4 * 1024 * 1024 * 1024;
/** What the log says of one failed attempt: stacks and causes, but not a message of megabytes. */
export const FAILURE_LOG_CHARS_MAX = 8_192;
/** Log lines of one message to the server. */
export const LOGS_PER_MESSAGE_MAX = 200;
/** Sessions that were cancelled before anything was heard of them, newest kept. */
export const CANCELLED_EARLY_MAX = 1_000;
/** Wall clock and monotonic clock are apart by less than this unless somebody set the wall clock. */
export const CLOCK_SET_MS_MIN = 50;
/** Requests to the server that wait for an answer. */
export const SERVER_REQUESTS_MAX = 100_000;
/** Instances of the entry's pool that are started with the host. */
export const PREWARMED_INSTANCES = 2;
/** What waking an instance costs, both sides together: less work than this is not worth a second wake. */
export const WAKE_WORTH_MS = 0.05;
/** Weight of the newest sample in the estimate of a body's time. */
export const BODY_WEIGHT = 0.1;
/** An instance that runs nothing else has so long to answer for a validator or a trigger class; then it is replaced. */
export const ANSWER_MS_MAX = 5_000;
/** A question whose instance ended this often, through the fault of whatever ran there, is not asked again. */
export const ASK_TRIES_MAX = 4;
/** Who waits for memory or for the disk looks again this often. */
export const SPILL_LOOK_MS = 20;
/** A disk that fails is complained of this often. */
export const SPILL_REPORT_MS = 10_000;
/** Objects that are read in parts by the server; each is kept until its reader is done. */
export const READERS_MAX = 10_000;
/** Rows of one answer about sessions or waiting triggers; the largest come first. */
export const STATS_ROWS_MAX = 10_000;
