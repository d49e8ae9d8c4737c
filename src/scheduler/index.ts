export { Coordinator } from './global/coordinator.ts';
export { Door } from './global/door.ts';
export { assertBucket, assertFunction, unknownApp } from './global/door-checks.ts';
export {
  DEAD_LETTER_BYTES_MAX,
  DEAD_LETTER_INPUT_BYTES_MAX,
  DEAD_LETTERS_MAX,
  DELAYED_SESSIONS_MAX,
  ENDED_BYTES_MAX,
  ENDED_SESSIONS_MAX,
  HELD_BYTES_MAX,
  IDEMPOTENCY_WINDOW_MS,
  LIVE_INPUT_BYTES_MAX,
  LIVE_SESSIONS_MAX,
  LOST_RETRIES_MAX,
  OPEN_IDLE_TIMEOUT_MS,
  OUTPUTS_MAX,
  QUEUE_MAX,
  SESSION_RETENTION_MS,
  STARTS_UNDER_WAY_MAX,
  WATCHDOG_MS,
  WEIGHT_DEFAULT,
} from './global/limits.ts';
export type {
  AppDirectory,
  CoordinatorPorts,
  CurrentApp,
  HostDirectory,
  HostLink,
} from './global/ports.ts';
export { RecordStore } from './global/record-store.ts';
export type { LostHost } from './global/session-table.ts';
