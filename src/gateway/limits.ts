// Tuning constants of the gateway. Those that a test shortens are in GATEWAY_TIMING.

import { assert, KIB, MIB } from '../base/index.ts';

/** Outputs up to here travel inside their server-sent event; larger ones are a link, so that one slow reader holds little. */
export const OUTPUT_INLINE_BYTES_MAX = 64 * KIB;
/** Request line and headers together: room for long percent-encoded names, too small to fill memory with. */
export const HEADER_BYTES_MAX = 16 * KIB;
/** One name in a path, decoded. */
export const NAME_CHARS_MAX = 1_024;
export const IDEMPOTENCY_KEY_CHARS_MAX = 255;
/** Entries of one session start. */
export const ENTRIES_MAX = 1_000;
export const TAGS_MAX = 32;
export const TAG_CHARS_MAX = 128;
/** Names of one join. */
export const JOIN_NAMES_MAX = 1_000_000;
/** Open output and log streams; each holds a socket and an iterator of the control plane. */
export const STREAMS_MAX = 1_000;
/** Objects larger than one part that are being read; each holds a socket and a part. */
export const OBJECT_READERS_MAX = 1_000;
/** Bodies above are checked by our own scanner, in slices: twice as fast as JSON.parse, which builds a tree nobody reads. */
export const JSON_PARSE_BYTES_MAX = 64 * KIB;
/** How much of a large JSON body is checked before others get a turn: about 2 ms. */
export const JSON_SLICE_BYTES = 256 * KIB;
/** All bodies under way together, in multiples of the limit of one. */
export const BODIES_UNDER_WAY_FACTOR = 4;
/** A small answer goes out in the same write as its headers. */
export const ANSWER_JOIN_BYTES_MAX = 16 * KIB;
/** An answer up to here fits into what sockets hold anyway; of a larger one it is watched whether the client takes it. */
export const ANSWER_UNWATCHED_BYTES_MAX = 64 * KIB;
/** Of a large answer so much is handed to the socket at a time. */
export const ANSWER_SLICE_BYTES = MIB;
/** A refused body up to here is read to its end and its connection kept. */
export const REFUSED_BODY_KEEP_BYTES_MAX = 64 * KIB;
/** A refused body is read and dropped up to here, so that its sender gets the answer instead of a reset. */
export const REFUSED_BODY_DROP_BYTES_MAX = 256 * MIB;
/** The longest wait of one `/result` call; callers repeat it. */
export const RESULT_WAIT_MS_MAX = 300_000;
/** Longest deadline and delay: 30 days; timers beyond 2^31 ms do not exist. */
export const DURATION_MS_MAX = 30 * 24 * 3_600_000;
export const PRIORITY_MAX = 1_000;
export const LIST_LIMIT_MAX = 1_000;
/** Dead letters of one answer: as many as one app can have. */
export const DEAD_LETTER_LIST_MAX = 1_000;
export const LIST_LIMIT_DEFAULT = 100;
export const LOG_TAIL_MAX = 10_000;
export const LOG_TAIL_DEFAULT = 100;

/**
 * Connections that wait to be accepted: as many as come while the loop is busy. Beyond it clients wait for seconds until they
 * try again, and are not refused but reset. Linux cuts it to `net.core.somaxconn` (4,096 unless changed).
 */
export const CONNECT_BACKLOG = 4_096;
/** Open connections; one more is closed at once. Each holds a descriptor and some KiB. */
export const CONNECTIONS_MAX = 50_000;
/** Headers must be there by then. */
export const HEADERS_TIMEOUT_MS = 20_000;
/** A whole request must be there by then: 1 GiB at 0.6 MB/s. Stalls are found much earlier (bodyStallMs). */
export const REQUEST_TIMEOUT_MS = 1_800_000;
/** Longer than the 60 s that most proxies keep a connection, so that they close first. */
export const KEEP_ALIVE_TIMEOUT_MS = 72_000;

/** While closing: how often connections whose last answer is out are closed. */
export const CLOSE_IDLE_PERIOD_MS = 50;

export interface GatewayTiming {
  /** Period of the watch over bodies and streams; it runs only while there are some. */
  readonly tickMs: number;
  /** A body that brings nothing for so long is given up. */
  readonly bodyStallMs: number;
  /** A comment keeps an idle stream open through proxies. */
  readonly heartbeatMs: number;
  /** A reader that takes nothing for so long, of a stream or of a large answer, is cut off. */
  readonly streamStallMs: number;
  /** How long `close()` waits for running requests. */
  readonly closeGraceMs: number;
}

export const GATEWAY_TIMING: GatewayTiming = {
  tickMs: 5_000,
  bodyStallMs: 30_000,
  heartbeatMs: 15_000,
  streamStallMs: 60_000,
  closeGraceMs: 10_000,
};

assert(HEADERS_TIMEOUT_MS < REQUEST_TIMEOUT_MS, 'headers end before the request does');
assert(GATEWAY_TIMING.tickMs <= GATEWAY_TIMING.heartbeatMs, 'a heartbeat is at least one tick');
assert(GATEWAY_TIMING.heartbeatMs < KEEP_ALIVE_TIMEOUT_MS, 'a heartbeat comes before an idle connection is closed');
assert(REFUSED_BODY_KEEP_BYTES_MAX <= REFUSED_BODY_DROP_BYTES_MAX, 'kept bodies are dropped ones too');
