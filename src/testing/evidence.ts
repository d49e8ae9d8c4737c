// What the checkers look at, and what they look up in it.

import type { ErrorData } from '../base/index.ts';
import type { HostStats, SessionRecord, TriggerSpec } from '../protocol/index.ts';
import type { Call, Execution, History } from './history.ts';
import type { AppScript } from './script.ts';

export interface Violation {
  readonly checker:
    | 'sessions'
    | 'session-firings'
    | 'bucket-firings'
    | 'promises'
    | 'attempts'
    | 'remains'
    | 'liveness'
    | 'invariants';
  readonly message: string;
}

/** `session-ended` as it reached the server. */
export interface EndMessage {
  readonly session: string;
  readonly run: number;
  readonly state: string;
  readonly error?: ErrorData;
  readonly incarnation: number;
  readonly boot: number;
  readonly atMs: number;
}

export interface Evidence {
  readonly history: History;
  readonly scripts: readonly AppScript[];
  readonly ends: readonly EndMessage[];
  /** How often the server was started. */
  readonly boots: number;
  /** Whose process it was, by incarnation. */
  readonly appOf: ReadonlyMap<number, string>;
  /** At the very end. */
  readonly stats: readonly HostStats[];
  /** What is durable at the very end. */
  readonly keys: readonly string[];
}

/** A function's one trigger. */
export interface Duty {
  readonly bucket: string;
  readonly trigger: TriggerSpec;
}

/** Which trigger runs which function. */
export function dutiesOf(script: AppScript): Map<string, Duty> {
  const duties = new Map<string, Duty>();
  for (const [bucket, { on }] of Object.entries(script.buckets)) {
    for (const trigger of Object.values(on ?? {})) {
      for (const name of [trigger.run].flat()) duties.set(name, { bucket, trigger });
    }
  }
  return duties;
}

export function isBucketScoped(trigger: TriggerSpec): boolean {
  const scope = (trigger as { scope?: string }).scope;
  return scope === undefined ? trigger.kind === 'byBatchSize' || trigger.kind === 'byTime' : scope === 'bucket';
}

/** Answers of the last look at each session. */
export function recordsOf(history: History): Map<string, SessionRecord> {
  const records = new Map<string, SessionRecord>();
  for (const { what, answer } of history.calls) {
    if (what !== 'session' || answer?.ok !== true) continue;
    const record = answer.value as SessionRecord;
    records.set(record.session, record);
  }
  return records;
}

/** Sessions that a client was told of when it asked for something: those that only look do not count. */
export function heardOf(history: History): Set<string> {
  const heard = new Set<string>();
  for (const { what, answer } of history.calls) {
    const session = answer?.ok === true ? ((answer.value ?? {}) as { session?: string }).session : undefined;
    if (session !== undefined && what !== 'session' && what !== 'trace') heard.add(session);
  }
  return heard;
}

export function isDurable(session: string): boolean {
  return session.startsWith('d');
}

/** Which start of the server made it. */
export function bootOf(session: string): number {
  return Number.parseInt(session.slice(1), 36);
}

/** Executions of its last run: those of the process that ended it. Undefined when no process said so. */
export function lastRun(evidence: Evidence, session: string): readonly Execution[] | undefined {
  const end = evidence.ends.findLast((one) => one.session === session);
  if (end === undefined) return undefined;
  return evidence.history.executions.filter(
    (one) => one.session === session && one.incarnation === end.incarnation && one.beganMs <= end.atMs,
  );
}

export function grouped<T>(items: Iterable<T>, keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}

export function callsOf(history: History, what: string): Call[] {
  return history.calls.filter((call) => call.what === what);
}
