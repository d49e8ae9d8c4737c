// Limits of one application, checked when it is deployed.

/** Every function may get a pool of its own; more are no application but several. */
export const FUNCTIONS_MAX = 1_000;
export const BUCKETS_MAX = 1_000;
/** Every send into a bucket asks each of its triggers. */
export const TRIGGERS_PER_BUCKET_MAX = 100;
export const RERUN_RULES_PER_BUCKET_MAX = 100;
export const RERUN_NAMES_MAX = 10_000;
export const SECRETS_MAX = 1_000;
export const ENV_VARIABLES_MAX = 1_000;
export const STATE_PROTOCOLS_MAX = 1_000;
/** Environment values share the limit of a process's environment with everything else. */
export const ENV_VALUE_CHARS_MAX = 32_768;
export const STATE_PREFIX_CHARS_MAX = 1_024;

/** What a timer can hold in one go, and 24 days: whatever takes longer is a durable function's `ctx.sleep`. */
export const TIMEOUT_MS_MAX = 2_147_483_647;
/** With back-off at its largest this is more than anyone waits for. */
export const RETRIES_MAX = 1_000;
/** Invocations of one instance at once: they share one thread. */
export const CONCURRENCY_MAX = 1_000;
/** Node itself needs this much. */
export const MEMORY_MB_MIN = 16;
/** 1 TiB. */
export const MEMORY_MB_MAX = 1_048_576;
/** Priorities are compared only; the range keeps them readable. */
export const PRIORITY_MAX = 1_000;

/** Nesting of the parts that are not looked into here (`keepAlive`, `routes`, `cron`). */
export const MANIFEST_DEPTH_MAX = 32;
/** Objects, lists and scalars of a whole manifest. */
export const MANIFEST_NODES_MAX = 1_000_000;
/** More problems than this are counted, not listed. */
export const PROBLEMS_MAX = 50;
export const BUNDLE_FILES_MAX = 10_000;
export const BUNDLE_PATH_CHARS_MAX = 1_024;
export const SOURCE_FILE_CHARS_MAX = 1_024;
