// Attempts: an invocation is one thing however often it is tried, and what was overtaken does not count.
//
// AT1. An invocation's attempts in one process are numbered from 1 on, each begun once, in order, of one function.
// AT2. What a function is given was sent by an attempt before a later attempt of the same invocation began.
//
// An overtaken attempt does not know that it is: what it sends may be begun at once by its own instance. That does not count,
// and the same invocation is executed with what counts: such a stale execution is known by its twin of a later attempt.

import { type Evidence, grouped, type Violation } from './evidence.ts';
import type { Execution, SeenInput } from './history.ts';

export function checkAttempts({ history }: Evidence): Violation[] {
  const violations: Violation[] = [];
  const fail = (message: string) => violations.push({ checker: 'attempts', message });
  const runs = grouped(
    history.executions,
    ({ incarnation, session, invocation }) => `${incarnation} ${session} ${invocation}`,
  );
  for (const attempts of runs.values()) {
    for (const [index, one] of attempts.entries()) {
      const before = attempts[index - 1];
      const who = `${one.function} ${one.session} ${one.invocation} in host${one.incarnation}`;
      if (before === undefined) continue;
      const isStale = isOfLaterAttempt(one, before) || isOfLaterAttempt(before, one);
      if (one.attempt <= before.attempt && !isStale) {
        fail(`AT1: ${who} began attempt ${one.attempt} after attempt ${before.attempt}`);
      }
      if (one.function !== before.function) fail(`AT1: ${who} was ${before.function} before`);
      if (inputsOf(one) !== inputsOf(before)) fail(`AT1: ${who} was given other objects in attempt ${one.attempt}`);
    }
  }
  for (const one of history.executions) {
    const twins = runs.get(`${one.incarnation} ${one.session} ${one.invocation}`) ?? [];
    if (twins.some((twin) => isOfLaterAttempt(twin, one))) continue;
    for (const input of one.inputs) {
      const { by, attempt } = (input.value ?? {}) as { by?: string; attempt?: number };
      if (by === undefined || by === 'outside' || attempt === undefined || input.session !== one.session) continue;
      const makers = runs.get(`${one.incarnation} ${input.session} ${by}`);
      // The stale one of two twins may not have come to it; what counts is begun last.
      const sends = makers?.filter((maker) => maker.attempt === attempt).flatMap((maker) => maker.sends);
      const sent = sends?.findLast(({ key }) => key === input.key);
      const overtaker = makers?.find((maker) => maker.attempt > attempt);
      if (sent === undefined) fail(`AT2: ${one.function} ${one.invocation} was given ${input.key}, which nobody sent`);
      else if (overtaker !== undefined && sent.atMs > overtaker.beganMs) {
        fail(`AT2: ${one.function} ${one.invocation} was given ${input.key} of the overtaken attempt ${attempt}`);
      }
    }
  }
  return violations;
}

/** What it was given came of a later attempt, of its sender or of whoever led to that. */
function isOfLaterAttempt(one: Execution, before: Execution): boolean {
  return one.inputs.some((input, i) => {
    const other = lineOf(before.inputs[i]);
    const at = lineOf(input).findIndex((attempt, depth) => attempt !== (other[depth] ?? 0));
    return at >= 0 && (lineOf(input)[at] ?? 0) > (other[at] ?? 0);
  });
}

function lineOf(input: SeenInput | undefined): readonly number[] {
  return (input?.value as { line?: readonly number[] } | null | undefined)?.line ?? [];
}

function inputsOf(one: Execution): string {
  return one.inputs.map(({ key }) => key).join(',');
}
