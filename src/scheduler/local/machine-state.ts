// What the parts of the session machine share.
//
// Owns: the sessions that have not ended, what is due when, and the effects of the event at hand.
// Does not own: what is done with them: attempts, objects, triggers and ends have a file each.

import type { Prng } from '../../base/index.ts';
import type { RerunRow } from '../../bucket/index.ts';
import type { AttemptOutcome } from '../../protocol/index.ts';
import type { Now } from '../../trigger/index.ts';
import type { SessionEffect, SessionEvent, Which } from './events.ts';
import { findInvocation, type Invocation, newInvocation, type Session } from './session.ts';
import type { TimerQueue } from './timer-queue.ts';

export interface MachineState {
  readonly byId: Map<string, Session>;
  readonly byNo: Map<number, Session>;
  readonly timers: TimerQueue<Due>;
  readonly random: Prng;
  /** When the event at hand happened. */
  now: Now;
  /** What must happen because of it, in order; each event begins a list of its own. */
  effects: SessionEffect[];
}

/** Who takes one looks whether it still holds. */
export type Due =
  | { readonly kind: 'retry'; readonly invocation: Invocation; readonly fence: number }
  | { readonly kind: 'rerun'; readonly invocation: Invocation; readonly fence: number; readonly rule: RerunRow }
  | { readonly kind: 'trigger'; readonly session: Session; readonly key: number }
  | { readonly kind: 'idle'; readonly session: Session };

/** The invocation, if the one who speaks bears its fence (SM2). */
export function findSpeaker(state: MachineState, which: Which): Invocation | undefined {
  const session = state.byNo.get(which.sessionNo);
  if (session === undefined) return undefined;
  const invocation = findInvocation(session, which.id);
  return invocation !== undefined && invocation.fence === which.fence ? invocation : undefined;
}

/** It counts as live from now on; whoever makes it says where it is. */
export function makeInvocation(
  state: MachineState,
  session: Session,
  made: Pick<Invocation, 'id' | 'row' | 'firing' | 'parent' | 'inputs' | 'fence' | 'wantsResult'>,
): Invocation {
  session.live++;
  return newInvocation(session, { ...made, queuedAtMs: state.now.monotonicMs });
}

/** It waits for an instance from now on. */
export function enqueue(state: MachineState, invocation: Invocation): void {
  invocation.place = 'queued';
  invocation.slot = -1;
  invocation.queuedAtMs = state.now.monotonicMs;
  state.effects.push({ type: 'enqueue', invocation });
}

/** An instance runs it from now on; whoever says so says in which place it is. */
export function beginAttempt(invocation: Invocation, event: SessionEvent & { type: 'attempt-started' }): void {
  invocation.slot = event.slot;
  invocation.startedAtMs = event.atMs;
  // An instance that was given the session past the host has begun before the host heard of it.
  invocation.queuedAtMs = Math.min(invocation.queuedAtMs, event.atMs);
  invocation.attempts++;
  invocation.session.running++;
  invocation.session.attempts++;
  invocation.history.push({
    n: invocation.attempts,
    slot: event.slot,
    instance: event.instance,
    start: event.start,
    queuedAtMs: invocation.queuedAtMs,
    startedAtMs: event.atMs,
    endedAtMs: 0,
    outcome: 'running',
  });
}

type EndedOutcome = Exclude<AttemptOutcome, 'running' | 'fenced'>;

/** The attempt is over, whatever comes next for its invocation. */
export function leaveAttempt(invocation: Invocation, atMs: number, outcome: EndedOutcome): void {
  invocation.session.running--;
  invocation.slot = -1;
  accountAttempt(invocation, atMs, outcome);
}

/** Its time and outcome, once: of a session that was cancelled they are told before the handler has returned. */
export function accountAttempt(invocation: Invocation, atMs: number, outcome: EndedOutcome): void {
  const record = invocation.history.at(-1);
  if (record?.outcome !== 'running') return;
  invocation.session.meteredMs += Math.max(0, atMs - invocation.startedAtMs);
  record.endedAtMs = atMs;
  record.outcome = outcome;
}

/** Of an object that somebody else keeps: the session does not end before the answer (SM4). */
export function expectAck(session: Session, sender: Invocation | undefined): number {
  const seq = session.nextAck++;
  session.acks.set(seq, sender);
  return seq;
}
