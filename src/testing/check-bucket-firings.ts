// Firings of bucket scope: over all sessions of an app, whatever died.
//
// BF1. An object is in at most one firing that counts: one of a session that is known at the end.
// BF2. A firing is as its trigger says: at most `size` objects, exactly `k` of one group, never none.
// BF3. What a durable session has sent, and ended, is in a firing, or still waits to be: fewer than fill one.

import type { TriggerSpec } from '../protocol/index.ts';
import { objectsOf, wasCutShort } from './check-session-firings.ts';
import {
  callsOf,
  dutiesOf,
  type Evidence,
  grouped,
  isBucketScoped,
  isDurable,
  lastRun,
  recordsOf,
  type Violation,
} from './evidence.ts';
import type { Execution } from './history.ts';

export function checkBucketFirings(evidence: Evidence): Violation[] {
  const { history, scripts } = evidence;
  const violations: Violation[] = [];
  // A firing begins before its session is durable; if it never was, it is as if it had not been.
  const records = recordsOf(history);
  const counts = (session: string) => records.has(session);
  for (const script of scripts) {
    for (const [name, { bucket, trigger }] of dutiesOf(script)) {
      if (!isBucketScoped(trigger)) continue;
      const fail = (message: string) =>
        violations.push({
          checker: 'bucket-firings',
          message: `${script.app} ${bucket}/${trigger.kind} -> ${name}: ${message}`,
        });
      const firedIn = new Map<string, string>();
      const consumed = new Set<string>();
      const mine = history.executions.filter((one) => one.function === name && isOf(one, script.app, evidence));
      for (const [session, [first]] of grouped(mine, ({ session }) => session)) {
        const { inputs } = first as Execution;
        if (!inputs.every((one) => one.bucket === bucket) || inputs.every((one) => one.session === session)) continue;
        const wrong = wrongShape(trigger, inputs);
        if (wrong !== undefined) fail(`${session} ${wrong}`);
        // One that ended before its server died has used up what it was given.
        if (evidence.ends.some((one) => one.session === session)) for (const { key } of inputs) consumed.add(key);
        if (!counts(session)) continue;
        for (const { key } of inputs) {
          const before = firedIn.get(key);
          if (before !== undefined) fail(`${key} fired in ${before} and in ${session}`);
          firedIn.set(key, session);
        }
      }
      const waiting = waitingFor(evidence, script.app, bucket, new Set([...firedIn.keys(), ...consumed]));
      const most = heldMax(trigger);
      if (waiting.length > most) fail(`${waiting.join(', ')} did not fire; at most ${most} may wait`);
    }
  }
  return violations;
}

/** Two apps have functions of the same name. */
function isOf({ incarnation }: Execution, app: string, { appOf }: Evidence): boolean {
  return appOf.get(incarnation) === app;
}

function wrongShape(trigger: TriggerSpec, inputs: Execution['inputs']): string | undefined {
  if (trigger.kind === 'byBatchSize' && inputs.length > trigger.size) return `was fired with ${inputs.length}`;
  if (trigger.kind === 'redundant') {
    if (inputs.length !== trigger.k) return `was fired with ${inputs.length} of ${trigger.k}`;
    if (new Set(inputs.map(({ group }) => group)).size > 1) return 'was fired across groups';
  }
  return inputs.length === 0 ? 'was fired with nothing' : undefined;
}

/** (BF3) */
function waitingFor(evidence: Evidence, app: string, bucket: string, fired: ReadonlySet<string>): string[] {
  const { history, boots } = evidence;
  if (callsOf(history, 'trigger').some(({ detail }) => detail.app === app && detail.bucket === bucket)) return [];
  const waiting: string[] = [];
  for (const [session, record] of recordsOf(history)) {
    if (record.app !== app || record.state !== 'completed' || wasCutShort(evidence, record)) continue;
    if (!isDurable(session) && boots > 1) continue;
    const executions = lastRun(evidence, session);
    if (executions === undefined) continue;
    for (const key of objectsOf(evidence, executions, session, bucket).certain) if (!fired.has(key)) waiting.push(key);
  }
  return waiting;
}

/** How many objects may wait when everything is quiet; a `redundant` drops the losers, and they are not told apart. */
function heldMax(trigger: TriggerSpec): number {
  if (trigger.kind === 'byBatchSize') return trigger.maxWaitMs === undefined ? trigger.size - 1 : 0;
  return trigger.kind === 'byTime' ? 0 : Number.POSITIVE_INFINITY;
}
