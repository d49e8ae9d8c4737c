// Sessions: each that was accepted ends exactly once, with a result that follows from what ran.
//
// SE1. At the end every session that a client heard of has ended, and says so with the same words each time.
// SE2. It is completed, failed or cancelled only for a reason that can be seen.
// SE3. What a caller is told is an output of the session, else what its first entry returned, else its error.
// SE4. One process says at most once that a run has ended.

import { bootOf, callsOf, type Evidence, grouped, heardOf, isDurable, recordsOf, type Violation } from './evidence.ts';
import type { Execution } from './history.ts';

interface Told {
  readonly ok: boolean;
  readonly value?: { readonly by?: string } | null;
  readonly error?: { readonly code: string };
}

export function checkSessions(evidence: Evidence): Violation[] {
  const { history, ends, boots } = evidence;
  const violations: Violation[] = [];
  const fail = (message: string) => violations.push({ checker: 'sessions', message });
  const ran = grouped(history.executions, ({ session }) => session);
  const heard = heardOf(history);
  const cancelled = new Set(callsOf(history, 'cancel').map(({ detail }) => detail.session));

  for (const [session, call] of [
    ...new Map(callsOf(history, 'session').map((one) => [one.detail.session as string, one])),
  ]) {
    const { answer } = call;
    if (answer?.ok === false) {
      const isLost = answer.error.code === 'E_SESSION_LOST' && !isDurable(session) && bootOf(session) < boots;
      if (!isLost && heard.has(session))
        fail(`SE1: nothing is known of ${session}: ${answer.error.code} ${answer.error.message}`);
    }
  }
  for (const [session, record] of recordsOf(history)) {
    const executions = ran.get(session) ?? [];
    if (record.state === 'running') fail(`SE1: ${session} still runs`);
    if (record.state === 'cancelled' && !cancelled.has(session)) fail(`SE2: nobody cancelled ${session}`);
    if (record.state === 'completed' && executions.length === 0 && record.counts.invocations > 0) {
      fail(`SE2: ${session} completed, and nothing ran`);
    }
    if (record.state === 'failed') {
      const why = reasonOf(record.error?.code, executions, evidence, session);
      if (why !== undefined) fail(`SE2: ${session} failed with ${record.error?.code} ${record.error?.message}: ${why}`);
    }
  }
  for (const [key, same] of grouped(ends, ({ session, run, boot }) => `${session} run ${run} of server${boot}`)) {
    if (same.length > 1) fail(`SE4: ${key} ended ${same.length} times`);
  }

  const told = new Map<string, string>();
  for (const { what, detail, answer } of history.calls) {
    if (answer?.ok !== true) continue;
    const value = answer.value as { session?: string; of?: string; outcome?: Told | null };
    const session = value?.session ?? value?.of;
    if (session === undefined || value.outcome === undefined || value.outcome === null) continue;
    const text = JSON.stringify(value.outcome);
    const before = told.get(session);
    if (before !== undefined && before !== text) fail(`SE1: ${session} came to ${text}, and before to ${before}`);
    told.set(session, text);
    const executions = ran.get(session) ?? [];
    const wrong = value.outcome.ok ? wrongValue(value.outcome, executions) : undefined;
    if (wrong !== undefined) fail(`SE3: ${what} ${JSON.stringify(detail)} of ${session} was told ${text}: ${wrong}`);
  }
  return violations;
}

function wrongValue({ value }: Told, executions: readonly Execution[]): string | undefined {
  if (value === null || value === undefined) return undefined;
  const { by } = value;
  const said = executions.filter(({ invocation }) => invocation === by);
  const isOutput = said.some(({ sends }) => sends.some((one) => one.output && same(one.value, value)));
  if (isOutput) return undefined;
  const isResult = said.some(({ end }) => end !== undefined && same(end.value, value));
  if (!isResult) return 'nobody said so';
  const entry = executions[0];
  const isEntry = said.some((one) => one.inputs.length === 0 || one.inputs.every(({ bucket }) => bucket === '$input'));
  if (!isEntry && entry !== undefined && entry.inputs.every((input) => input.session === entry.session)) {
    return 'that is the result of another invocation than the entry';
  }
  return undefined;
}

/** Why it may not have failed with this; undefined: it may. */
function reasonOf(
  code: string | undefined,
  executions: readonly Execution[],
  { history }: Evidence,
  session: string,
): string | undefined {
  switch (code) {
    case 'E_FUNCTION_FAILED': {
      const threw = executions.some(({ end }) => end?.error !== undefined);
      // A thread that died leaves an attempt without an end.
      return threw || executions.some(({ end }) => end === undefined) ? undefined : 'nothing failed';
    }
    case 'E_TIMEOUT':
      return undefined;
    case 'E_NODE_LOST':
      return history.deaths.length > 0 || history.disturbances.length > 0 ? undefined : 'nobody died';
    case 'E_OBJECT_EXISTS':
    case 'E_SESSION_ENDED':
    case 'E_REQUEST_INVALID':
    case 'E_QUEUE_FULL':
    case 'E_CANCELLED':
      return undefined;
    default:
      return `of ${session} no such error is known`;
  }
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
