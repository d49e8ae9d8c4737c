// `cancelLosers` of a redundant trigger: when the first k are there, the others need not go on.
//
// Owns: which invocations lose, and how an invocation ends that is cancelled while its session goes on.
// Does not own: when the trigger fires (trigger/redundant), telling handlers to stop (driver).
//
// A loser is neither tried again nor a failure: what it sent elsewhere counts, what it still sends is dropped. From the
// firing on the session begins no invocation of the sources any more: one that was made a moment later has lost as well.

import type { ErrorData } from '../../base/index.ts';
import type { BucketRow, TriggerRow } from '../../bucket/index.ts';
import type { SessionEvent } from './events.ts';
import { beginAttempt, leaveAttempt, type MachineState } from './machine-state.ts';
import { type Invocation, liveInvocationsOf, markEnded, type Session } from './session.ts';

/** The trigger has fired: ends the sources' invocations that have not sent into its bucket. */
export function cancelLosers(state: MachineState, session: Session, bucket: BucketRow, { spec }: TriggerRow): void {
  if (spec.kind !== 'redundant' || spec.cancelLosers !== true) return;
  const error: ErrorData = {
    code: 'E_CANCELLED',
    message: `bucket ${bucket.name} has the first ${spec.k} of ${spec.n}: this invocation is not needed any more`,
  };
  for (const name of spec.sources ?? []) session.losers.set(name, error);
  for (const one of liveInvocationsOf(session)) {
    if (spec.sources?.includes(one.row.name) !== true) continue;
    if (one.out.some((object) => object.bucket === bucket.index)) continue;
    cancelInvocation(state, one, error);
  }
}

/** Of a function whose invocations have lost before this one was made; it is in no queue yet. @returns whether it was one. */
export function cancelIfLost(state: MachineState, invocation: Invocation): boolean {
  const { session, place, slot } = invocation;
  if (!session.losers.has(invocation.row.name)) return false;
  if (place === 'held') state.effects.push({ type: 'withdraw', invocation, slot });
  endCancelled(invocation);
  return true;
}

/** It was claimed just before the firing: its attempt counts as begun and cancelled. */
export function loserBegan(
  state: MachineState,
  invocation: Invocation,
  event: SessionEvent & { type: 'attempt-started' },
): void {
  const { session, fence } = invocation;
  const error = session.losers.get(invocation.row.name);
  if (error === undefined || session.state !== 'running') return;
  beginAttempt(invocation, event);
  leaveAttempt(invocation, state.now.monotonicMs, 'cancelled');
  state.effects.push({ type: 'abort', invocation, fence, slot: event.slot, error });
}

function cancelInvocation(state: MachineState, invocation: Invocation, error: ErrorData): void {
  const { place, slot, fence } = invocation;
  if (place === 'running') {
    state.effects.push({ type: 'abort', invocation, fence, slot, error });
    leaveAttempt(invocation, state.now.monotonicMs, 'cancelled');
  } else if (place !== 'backoff') {
    state.effects.push({ type: 'withdraw', invocation, slot });
  }
  endCancelled(invocation);
}

/** Whoever begins it all the same is told to stop. */
function endCancelled(invocation: Invocation): void {
  const { session } = invocation;
  markEnded(invocation);
  session.live--;
  for (const machine of session.triggers.values()) machine.onProducerEnded(invocation.row.name, 'ok');
}
