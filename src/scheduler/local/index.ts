export type { MadeFiring, SessionEffect, SessionEvent, Which } from './events.ts';
export {
  ABORT_GRACE_MS,
  ENDED_INVOCATIONS_MAX,
  ENDED_SESSIONS_MAX,
  FAILED_ATTEMPTS_MAX,
  FAILED_INPUT_BYTES_MAX,
  FAILED_INPUTS_BYTES_MAX,
  START_BACKOFF_MIN_MS,
  START_FAILURES_MAX,
  TRACE_INVOCATIONS_MAX,
  WATCHDOG_MS,
} from './limits.ts';
export {
  type Instance,
  type InstanceState,
  LocalScheduler,
  type SchedulerEffect,
  type SchedulerEvent,
} from './local-scheduler.ts';
export {
  type AttemptRecord,
  type Failure,
  findInvocation,
  type Invocation,
  invocationsOf,
  isKnown,
  liveInvocationsOf,
  type Place,
  type Session,
} from './session.ts';
export { type Alone, sessionAlone } from './session-alone.ts';
export { SessionMachine } from './session-machine.ts';
export { keepObject } from './session-objects.ts';
export type { StuckSession, WatchdogView } from './watchdog.ts';
