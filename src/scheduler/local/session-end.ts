// How sessions end.
//
// Owns: when nothing of a session can happen any more (SM4), its failures, cancelling, and when its objects may be freed.
// Does not own: which attempts are over (attempts), freeing the bytes (driver).

import { assert, type ErrorData } from '../../base/index.ts';
import type { BucketRow, TriggerRow } from '../../bucket/index.ts';
import { CustomMachine } from '../../trigger/index.ts';
import { FAILURES_MAX } from './limits.ts';
import { accountAttempt, type MachineState } from './machine-state.ts';
import { type Invocation, liveInvocationsOf, markEnded, type Session } from './session.ts';
import { fireAll } from './session-triggers.ts';

/** Ends the session if nothing of it can happen any more (SM4). */
export function settle(state: MachineState, session: Session): void {
  if (session.state !== 'running' || session.live > 0) return;
  // What a class is still to decide may fire.
  for (const machine of session.triggers.values()) if (machine instanceof CustomMachine && machine.isBusy) return;
  const before = session.invocationCount;
  for (const [key, machine] of session.triggers) {
    const bucket = session.tables.buckets[Math.floor(key / 0x1_0000)] as BucketRow;
    const trigger = bucket.triggers[key % 0x1_0000] as TriggerRow;
    const firings = machine.onQuiet(state.now);
    if (firings.length > 0) fireAll(state, session, undefined, bucket, trigger, machine, firings);
  }
  if (session.invocationCount > before) return;
  if (session.acks.size > 0) return;
  for (const machine of session.triggers.values()) if (machine.keepsOpen) return;
  const { open } = session;
  if (open !== undefined && !open.closed && state.now.monotonicMs < open.idleSinceMs + open.idleTimeoutMs) return;
  const failed = session.outputs === 0 && session.firstError !== undefined;
  endSession(state, session, failed ? 'failed' : 'completed', failed ? session.firstError : undefined);
}

/** Ends it with what ran so far; handlers that run are told to stop. */
export function cancelSession(state: MachineState, sessionId: string, error: ErrorData): void {
  const session = state.byId.get(sessionId);
  if (session === undefined || session.state !== 'running') return;
  for (const one of liveInvocationsOf(session)) {
    if (one.place === 'running') {
      state.effects.push({ type: 'abort', invocation: one, fence: one.fence, slot: one.slot, error });
      accountAttempt(one, state.now.monotonicMs, error.code === 'E_TIMEOUT' ? 'timeout' : 'cancelled');
    } else {
      const held = one.place === 'held';
      if (one.place !== 'backoff') state.effects.push({ type: 'withdraw', invocation: one, slot: one.slot });
      // What an instance holds may be begun any moment: it stays known until it is told otherwise.
      if (!held) markEnded(one);
    }
  }
  state.effects.push({ type: 'stop-session', session, error });
  session.firstError = error;
  endSession(state, session, error.code === 'E_CANCELLED' ? 'cancelled' : 'failed', error);
}

/** Nothing of it can happen any more (WD1): what it believed to run or to wait is not there. */
export function parkSession(state: MachineState, session: Session, reason: string): void {
  if (session.state !== 'running') return;
  for (const one of liveInvocationsOf(session)) {
    if (one.place === 'running') session.running--;
    markEnded(one);
  }
  endSession(state, session, 'parked', { code: 'E_PARKED', message: `The session cannot go on: ${reason}.` });
}

/** An open session has been given something: its idle time begins anew. */
export function touch(state: MachineState, session: Session): void {
  if (session.open === undefined) return;
  session.open.idleSinceMs = state.now.monotonicMs;
  state.timers.add(state.now.monotonicMs + session.open.idleTimeoutMs, { kind: 'idle', session });
}

/** It has ended: nothing uses its objects once no attempt runs and nothing is unacknowledged. */
export function releaseWhenIdle(state: MachineState, session: Session): void {
  if (session.state !== 'ending' || session.running > 0 || session.acks.size > 0) return;
  session.state = 'ended';
  state.byId.delete(session.id);
  state.byNo.delete(session.no);
  state.effects.push({ type: 'release', session });
}

/** Something of it failed for good. It is `failed` in the end if it has no output. */
export function noteFailure(session: Session, invocation: Invocation | undefined, error: ErrorData): void {
  session.firstError ??= error;
  if (session.failures.length < FAILURES_MAX) session.failures.push({ invocation, error });
  else session.failuresDropped++;
}

function endSession(
  state: MachineState,
  session: Session,
  outcome: 'completed' | 'failed' | 'cancelled' | 'parked',
  error: ErrorData | undefined,
): void {
  assert(session.state === 'running', 'a session ends once');
  session.state = 'ending';
  session.endedAtMs = state.now.monotonicMs;
  state.effects.push({ type: 'session-ended', session, state: outcome, error });
  releaseWhenIdle(state, session);
}
