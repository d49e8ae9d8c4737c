/** An instance runs successors of its own this long before it lets timers, sockets and older offers have their turn. */
export const SLICE_MS = 5;
/** What was told and not yet rung for is rung at the next send after this: the host works beside us. */
export const QUIET_MS = 1;
/** A function that went on computing longer than this after its first send gives its successor away at once next time. */
export const TAIL_MS = 0.5;
/** No successor that was given away has ended sooner than this. */
export const HOP_MS = 0.1;
/** A session that is given to an instance itself has small inputs only. */
export const LANE_BYTES_MAX = 64 * 1024;
/** Weight of the newest sample in the estimate of that time. */
export const TAIL_WEIGHT = 0.3;
/** Characters of an error's JSON; longer stacks and causes are cut. */
export const ERROR_JSON_CHARS_MAX = 32_768;
/** Objects up to this are summed when `dev` verifies that they do not change. */
export const VERIFY_BYTES_MAX = 16 * 1024 * 1024;
/** Log lines per message to the host. */
export const LOG_BATCH_MAX = 100;
/** Characters of one log line; the rest is cut. */
export const LOG_LINE_CHARS_MAX = 16_384;
/** A session from the server that was read so late is for the host, which may have been given it meanwhile. */
export const LANE_READ_MS_MAX = 50;
/** Sessions that were stopped and whose offers may still lie about, newest kept. */
export const STOPPED_SESSIONS_MAX = 1_000;
/** Requests of one instance that wait for the host. */
export const REQUESTS_MAX = 100_000;
/** What the host only has to know is rung for this late. */
export const LAZY_RING_MS = 5;
/** With so few offers left the host is rung for more, if it has more. */
export const OFFERS_LOW = 2;
