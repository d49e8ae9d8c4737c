export { AssertionError, assert, unreachable } from './assert.ts';
export {
  ERROR_CAUSES_MAX,
  ERROR_STACK_CHARS_MAX,
  ERROR_TABLE,
  type ErrorCode,
  type ErrorData,
  type ErrorKind,
  fromErrorData,
  isErrorCode,
  PlatformError,
  refusalData,
  toErrorData,
} from './errors.ts';
export { Fifo } from './fifo.ts';
export { Heap } from './heap.ts';
export { IdSet } from './id-set.ts';
export {
  APP_NAME_PATTERN,
  type DurabilityClass,
  type Hash64,
  hashInts,
  hashText,
  hexOf,
  NAME_PATTERN,
  parseSessionId,
  SESSION_ID_CHARS_MAX,
  type SessionId,
  sessionIdOf,
} from './ids.ts';
export { nearMiss } from './near-miss.ts';
export { PriorityFifo, type PriorityFifoOptions } from './priority-fifo.ts';
export { Prng } from './prng.ts';
export { type Branded, type EpochMs, GIB, KIB, MIB, type MonotonicMs } from './units.ts';
