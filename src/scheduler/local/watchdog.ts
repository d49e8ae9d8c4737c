// Proves that every session can go on: a check over the whole state of the session machine.
//
// Owns: what counts as going on.
// Does not own: when it is checked, and what becomes of a session that cannot (driver).
//
// WD1. Each session that has not ended has an invocation that runs, is queued, on offer or held by an instance that lives,
//      or waits for its timer; or a trigger's timer, or a question to a trigger's class; or an object whose owner has not
//      answered; or it is open and waits for what comes from outside. Nothing else can happen to it, so without one of them
//      it would wait for ever.

import { CustomMachine } from '../../trigger/index.ts';
import type { Due } from './machine-state.ts';
import { type Invocation, liveInvocationsOf, type Session } from './session.ts';

/** What others know of an invocation that the session machine only believes in. */
export interface WatchdogView {
  /** It waits in a queue or on offer. */
  readonly isWaiting: (invocation: Invocation) => boolean;
  /** An instance runs this attempt of it. */
  readonly isRunning: (invocation: Invocation) => boolean;
  /** The instance that made it, and holds or offers it, lives. */
  readonly isHeld: (invocation: Invocation) => boolean;
}

export interface StuckSession {
  readonly session: Session;
  /** One sentence for people. */
  readonly reason: string;
}

/** (WD1) @param dues everything that is timed. Cost: all live invocations and timers. */
export function stuckSessions(sessions: Iterable<Session>, dues: Iterable<Due>, view: WatchdogView): StuckSession[] {
  const timed = new Set<unknown>();
  for (const due of dues) {
    if (due.kind === 'retry' && due.invocation.fence === due.fence) timed.add(due.invocation);
    else if (due.kind === 'trigger' || due.kind === 'idle') timed.add(due.session);
  }
  const stuck: StuckSession[] = [];
  for (const session of sessions) {
    if (session.state !== 'running' || goesOn(session, timed, view)) continue;
    stuck.push({ session, reason: reasonOf(session) });
  }
  return stuck;
}

function goesOn(session: Session, timed: ReadonlySet<unknown>, view: WatchdogView): boolean {
  if (session.acks.size > 0) return true;
  for (const machine of session.triggers.values()) if (machine instanceof CustomMachine && machine.isBusy) return true;
  for (const invocation of liveInvocationsOf(session)) {
    const { place } = invocation;
    if (place === 'queued' && view.isWaiting(invocation)) return true;
    if (place === 'held' && view.isHeld(invocation)) return true;
    if (place === 'running' && view.isRunning(invocation)) return true;
    if (place === 'backoff' && timed.has(invocation)) return true;
  }
  return timed.has(session) && isTimed(session);
}

/** A timer of the session is of use: a trigger's that pends, or the idle time of one that is open. */
function isTimed(session: Session): boolean {
  if (session.open !== undefined && !session.open.closed) return true;
  for (const machine of session.triggers.values()) if (machine.keepsOpen) return true;
  return false;
}

function reasonOf(session: Session): string {
  const places = new Map<string, number>();
  for (const { place, row } of liveInvocationsOf(session)) {
    const what = `${row.name} is ${place}`;
    places.set(what, (places.get(what) ?? 0) + 1);
  }
  if (places.size === 0) return 'nothing of it runs or waits, and it has not ended';
  const list = Array.from(places, ([what, count]) => (count === 1 ? what : `${what} (${count} ×)`));
  return `${list.join(', ')}, but nobody runs it, nothing will begin it and no timer is set`;
}
