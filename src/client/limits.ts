// Tuning constants of the client.

/** Where a server listens by default. */
export const DEFAULT_URL = 'http://127.0.0.1:7070';
/** One long poll for a result: below the 60 s at which proxies usually give up. */
export const RESULT_WAIT_MS = 30_000;
/** Reconnects in a row without any news before a stream or a wait for a result gives up: about 15 s in all. */
export const RECONNECTS_MAX = 10;
export const RECONNECT_MIN_MS = 100;
export const RECONNECT_MAX_MS = 2_000;
/** Automatic retries of refused calls, when switched on. */
export const RETRIES_MAX = 5;
/** Cap on one wait that a server asks for. */
export const RETRY_AFTER_MS_MAX = 60_000;
/** A line of an event stream; the server sends larger objects as a link. */
export const EVENT_CHARS_MAX = 64 * 1024 * 1024;
/** How much of an answer that is not ours ends up in a message. */
export const FOREIGN_TEXT_CHARS_MAX = 200;
