// Attempts of invocations: their beginning and end, retries, and further executions by `rerun` rules.
//
// Owns: fences, back-off, when an invocation fails for good.
// Does not own: which instance runs what (LocalScheduler), what a handler sent (session-objects), when the session ends
// (session-end).
//
// At most one attempt of an invocation counts (SM2): a further one has a higher fence.

import type { ErrorData, Prng } from '../../base/index.ts';
import type { RerunRow } from '../../bucket/index.ts';
import type { SessionEvent } from './events.ts';
import {
  BACKOFF_JITTER,
  INVOCATIONS_KEPT_MAX,
  LOST_RETRIES_MAX,
  RERUN_ATTEMPTS_MAX,
  RERUN_BACKOFF_MAX_MS,
  RERUN_BACKOFF_MIN_MS,
} from './limits.ts';
import { loserBegan } from './losers.ts';
import { beginAttempt, enqueue, findSpeaker, leaveAttempt, type MachineState } from './machine-state.ts';
import { type Invocation, markEnded } from './session.ts';
import { noteFailure, releaseWhenIdle, settle } from './session-end.ts';
import { sourceStarted } from './session-evaluations.ts';
import { forgetEnded, keepObject } from './session-objects.ts';

export function attemptStarted(state: MachineState, event: SessionEvent & { type: 'attempt-started' }): void {
  const invocation = findSpeaker(state, event);
  if (invocation === undefined || invocation.place === 'running') return;
  if (invocation.place === 'ended') {
    loserBegan(state, invocation, event);
    return;
  }
  const { session } = invocation;
  if (session.state !== 'running') {
    // It was claimed while its session was being cancelled: its objects stay until it ends.
    invocation.place = 'running';
    invocation.slot = event.slot;
    session.running++;
    state.effects.push({
      type: 'abort',
      invocation,
      fence: invocation.fence,
      slot: event.slot,
      error: session.firstError ?? { code: 'E_CANCELLED', message: 'the session was cancelled' },
    });
    return;
  }
  invocation.place = 'running';
  beginAttempt(invocation, event);
  if (invocation.attempts === 1 && invocation.row.watchedBy.length > 0) sourceStarted(state, invocation);
  // From the attempt's start, not from queuing.
  for (const rule of invocation.row.reruns) {
    state.timers.add(event.atMs + rule.timeoutMs, { kind: 'rerun', invocation, fence: invocation.fence, rule });
  }
}

export function attemptEnded(state: MachineState, event: SessionEvent & { type: 'attempt-ended' }): void {
  const invocation = findSpeaker(state, event);
  if (invocation === undefined || invocation.place !== 'running') {
    if (event.result !== undefined) state.effects.push({ type: 'discard', object: event.result });
    return;
  }
  const { session } = invocation;
  const error = invocation.sendError ?? event.error;
  leaveAttempt(invocation, event.atMs, error === undefined ? 'ok' : 'error');
  if (session.state !== 'running') {
    if (event.result !== undefined) state.effects.push({ type: 'discard', object: event.result });
    markEnded(invocation);
    releaseWhenIdle(state, session);
    return;
  }
  if (error !== undefined) {
    if (event.result !== undefined) state.effects.push({ type: 'discard', object: event.result });
    attemptFailed(state, invocation, error);
    return;
  }
  if (event.result !== undefined) {
    if (invocation.wantsResult) {
      session.result = event.result;
      keepObject(session, event.result);
    } else {
      state.effects.push({ type: 'discard', object: event.result });
    }
  }
  endUnlessMissed(state, invocation);
}

/** Its instance is gone, or it ran too long. */
export function attemptLost(
  state: MachineState,
  invocation: Invocation,
  why: 'lost' | 'timeout',
  error: ErrorData,
): void {
  if (invocation.place !== 'running') return;
  const { session } = invocation;
  // A handler of an ending session was told to stop already and may still read its objects: it is over when it is over.
  if (session.state !== 'running' && why === 'timeout') return;
  leaveAttempt(invocation, state.now.monotonicMs, why);
  if (session.state !== 'running') {
    markEnded(invocation);
    releaseWhenIdle(state, session);
    return;
  }
  if (why === 'timeout') {
    attemptFailed(state, invocation, error);
    return;
  }
  invocation.losses++;
  if (invocation.losses > LOST_RETRIES_MAX) {
    failForGood(state, invocation, error);
    return;
  }
  retryAt(state, invocation, state.now.monotonicMs, error);
}

/** No further attempt. */
export function failForGood(state: MachineState, invocation: Invocation, error: ErrorData): void {
  state.effects.push({ type: 'attempt-failed', invocation, error, final: true });
  noteFailure(invocation.session, invocation, error);
  endInvocation(state, invocation, 'failed');
}

/** What the rule expects of the attempt with this fence should be there by now. */
export function ruleTimeOver(state: MachineState, invocation: Invocation, fence: number, rule: RerunRow): void {
  if (invocation.place !== 'running' || invocation.fence !== fence || isMet(invocation, rule)) return;
  state.effects.push({ type: 'abort', invocation, fence, slot: invocation.slot, error: missedError(rule) });
  leaveAttempt(invocation, state.now.monotonicMs, 'timeout');
  executeAgain(state, invocation, rule, state.now.monotonicMs);
}

/** The pause before a further attempt is over. */
export function retryDue(state: MachineState, invocation: Invocation, fence: number): void {
  if (invocation.place !== 'backoff' || invocation.fence !== fence) return;
  const { missed } = invocation;
  invocation.missed = undefined;
  if (missed !== undefined && isMet(invocation, missed)) endInvocation(state, invocation, 'ok');
  else enqueue(state, invocation);
}

/** It returned. If a rule misses something of it, it gets another attempt when the rule's time is over. */
function endUnlessMissed(state: MachineState, invocation: Invocation): void {
  for (const rule of invocation.row.reruns) {
    if (isMet(invocation, rule)) continue;
    invocation.missed = rule;
    executeAgain(state, invocation, rule, invocation.startedAtMs + rule.timeoutMs);
    return;
  }
  endInvocation(state, invocation, 'ok');
}

/** The rule was missed by an attempt that still runs, or will have been at `atMs`. */
function executeAgain(state: MachineState, invocation: Invocation, rule: RerunRow, atMs: number): void {
  const { session, row } = invocation;
  if (invocation.reruns >= RERUN_ATTEMPTS_MAX) {
    const bucket = session.tables.buckets[rule.bucket]?.name ?? '';
    failForGood(state, invocation, {
      code: 'E_TIMEOUT',
      message: `${row.name} did not send what bucket ${bucket} expects within ${rule.timeoutMs} ms, in ${invocation.reruns + 1} attempts`,
    });
    return;
  }
  invocation.reruns++;
  const pause = pauseMs(invocation.reruns, RERUN_BACKOFF, state.random);
  retryAt(state, invocation, Math.max(atMs, state.now.monotonicMs) + pause, missedError(rule));
}

function attemptFailed(state: MachineState, invocation: Invocation, error: ErrorData): void {
  const { retries } = invocation.row;
  invocation.failures++;
  const hopeless = error.terminal === true || (error.code !== 'E_FUNCTION_FAILED' && error.code !== 'E_TIMEOUT');
  if (hopeless || invocation.failures > retries.max) {
    failForGood(state, invocation, error);
    return;
  }
  retryAt(state, invocation, state.now.monotonicMs + pauseMs(invocation.failures, retries, state.random), error);
}

const RERUN_BACKOFF = { minMs: RERUN_BACKOFF_MIN_MS, maxMs: RERUN_BACKOFF_MAX_MS };

/** Before the nth further attempt: doubles each time, is spread so that attempts do not come in step, stays in its bounds. */
function pauseMs(n: number, { minMs, maxMs }: { minMs: number; maxMs: number }, random: Prng): number {
  const spread = BACKOFF_JITTER * random.float();
  const pause = minMs * 2 ** (n - 1) * (1 + spread);
  return pause <= maxMs ? pause : Math.max(minMs, maxMs * (1 - spread));
}

function missedError(rule: RerunRow): ErrorData {
  return { code: 'E_TIMEOUT', message: `overtaken: a rerun rule of ${rule.timeoutMs} ms was missed` };
}

/** Another attempt, under a higher fence (SM2), because of this error. */
function retryAt(state: MachineState, invocation: Invocation, atMs: number, error: ErrorData): void {
  state.effects.push({ type: 'attempt-failed', invocation, error, final: false });
  invocation.fence++;
  invocation.hostEvaluates = true;
  invocation.sendError = undefined;
  invocation.place = 'backoff';
  if (atMs <= state.now.monotonicMs) enqueue(state, invocation);
  else state.timers.add(atMs, { kind: 'retry', invocation, fence: invocation.fence });
}

/** Its successors were queued before: ending and queuing are one event. */
function endInvocation(state: MachineState, invocation: Invocation, outcome: 'ok' | 'failed'): void {
  const { session } = invocation;
  markEnded(invocation);
  session.live--;
  for (const machine of session.triggers.values()) machine.onProducerEnded(invocation.row.name, outcome);
  if (session.invocationCount > INVOCATIONS_KEPT_MAX) forgetEnded(invocation);
  settle(state, session);
}

function isMet(invocation: Invocation, rule: RerunRow): boolean {
  if (rule.names === undefined) return invocation.out.some((object) => object.bucket === rule.bucket);
  const named = invocation.session.named.get(rule.bucket);
  return rule.names.every((name) => named?.has(name) === true);
}
