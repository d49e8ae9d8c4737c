// Promises to clients.
//
// PR1. What was answered with 202 is kept: a durable session is known at the end, whatever died.
// PR2. The same idempotency key with the same body gives the same session and the same answer; another body is refused.
// PR3. An object with the same name and bytes is a duplicate of the same session; with other bytes it is refused.

import { bootOf, callsOf, type Evidence, grouped, isDurable, recordsOf, type Violation } from './evidence.ts';
import type { Call } from './history.ts';

export function checkPromises(evidence: Evidence): Violation[] {
  const { history, boots } = evidence;
  const violations: Violation[] = [];
  const fail = (message: string) => violations.push({ checker: 'promises', message });
  const records = recordsOf(history);
  for (const call of history.calls) {
    const session = sessionOf(call);
    if (session === undefined || call.what === 'session') continue;
    if (
      call.what === 'start' &&
      call.detail.mode === 'async' &&
      call.detail.durability !== 'none' &&
      !isDurable(session)
    ) {
      fail(`PR1: the asynchronous ${session} is not durable`);
    }
    if (!records.has(session) && (isDurable(session) || bootOf(session) === boots)) fail(`PR1: ${session} is gone`);
  }
  const keyed = callsOf(history, 'start').filter(({ detail }) => detail.key !== undefined);
  for (const [key, calls] of grouped(keyed, ({ detail }) => `${detail.app} ${detail.functions} ${detail.key}`)) {
    const answered = calls.filter((call) => sessionOf(call) !== undefined);
    const bodies = new Set(answered.map(({ detail }) => detail.body));
    const sessions = new Set(answered.map(sessionOf));
    if (bodies.size > 1) fail(`PR2: key ${key} took ${bodies.size} bodies`);
    if (sessions.size > 1) fail(`PR2: key ${key} started ${[...sessions].join(' and ')}`);
  }
  const opened = callsOf(history, 'put').filter(({ detail }) => detail.session === undefined && detail.open !== true);
  for (const [name, calls] of grouped(opened, ({ detail }) => `${detail.app} ${detail.bucket} ${detail.name}`)) {
    const answered = calls.filter((call) => sessionOf(call) !== undefined);
    const bodies = new Set(answered.map(({ detail }) => detail.body));
    const sessions = new Set(answered.map(sessionOf));
    if (bodies.size > 1) fail(`PR3: object ${name} was taken with ${bodies.size} contents`);
    if (sessions.size > 1) fail(`PR3: object ${name} opened ${[...sessions].join(' and ')}`);
  }
  return violations;
}

function sessionOf({ answer }: Call): string | undefined {
  return answer?.ok === true ? ((answer.value ?? {}) as { session?: string }).session : undefined;
}
