// Firings of session scope: what the functions of a trigger were run with, against a model of ten lines per kind.
//
// A session is looked at in its last run, and only if nobody cut it short. Of its objects some have surely counted
// (`certain`), some may have (`possible`): those of an attempt that was overtaken or died in the middle of a send.
//
// FI1. Every firing is of objects that were sent; no two firings of a trigger share one; all functions of `run` run alike.
// FI2. What the model says must fire has fired; what it says must not, has not.

import type { SessionRecord, TriggerSpec } from '../protocol/index.ts';
import { isUnanswered } from './clients.ts';
import {
  callsOf,
  type Duty,
  dutiesOf,
  type Evidence,
  grouped,
  isBucketScoped,
  lastRun,
  recordsOf,
  type Violation,
} from './evidence.ts';
import { type Execution, keyOf, type SeenInput } from './history.ts';

/** Of one bucket in one session. */
export interface Objects {
  /** Key to name and group. */
  readonly possible: Map<string, { readonly name: string; readonly group: string }>;
  readonly certain: Set<string>;
  joins: { readonly names?: readonly string[]; readonly count?: number }[];
  closes: number;
  /** Joins, closes and producers of an attempt that may not have counted, or came from outside. */
  isVague: boolean;
}

/** What one invocation was run with. */
type Firing = readonly SeenInput[];

export function checkSessionFirings(evidence: Evidence): Violation[] {
  const violations: Violation[] = [];
  const lateBuckets = new Set(
    callsOf(evidence.history, 'trigger').map(({ detail }) => `${detail.app} ${detail.bucket}`),
  );
  for (const [session, record] of recordsOf(evidence.history)) {
    const executions = lastRun(evidence, session);
    const script = evidence.scripts.find(({ app }) => app === record.app);
    if (executions === undefined || script === undefined || wasCutShort(evidence, record)) continue;
    for (const [name, duty] of dutiesOf(script)) {
      if (isBucketScoped(duty.trigger)) continue;
      const firings = firingsOf(executions, name, duty);
      const objects = objectsOf(evidence, executions, session, duty.bucket);
      if (lateBuckets.has(`${record.app} ${duty.bucket}`)) objects.isVague = true;
      const wrong =
        sharedObject(firings, objects) ?? MODELS[duty.trigger.kind]?.(duty.trigger as never, firings, objects);
      if (wrong === undefined) continue;
      const what = `${duty.bucket}/${duty.trigger.kind} -> ${name} of ${session} (${record.state})`;
      violations.push({ checker: 'session-firings', message: `${what}: ${wrong}` });
    }
  }
  return violations;
}

/** By a cancellation, its deadline, or the loss of its hosts. */
export function wasCutShort({ ends }: Evidence, { session, state, error }: SessionRecord): boolean {
  if (state === 'cancelled' || state === 'running' || error?.code === 'E_NODE_LOST') return true;
  const code = ends.findLast((one) => one.session === session)?.error?.code;
  return code === 'E_TIMEOUT' || code === 'E_CANCELLED';
}

/** One for each invocation of the function; starts of clients apart. */
function firingsOf(executions: readonly Execution[], name: string, { bucket }: Duty): Firing[] {
  const mine = executions.filter((one) => one.function === name);
  const first = [...grouped(mine, ({ invocation }) => invocation).values()].map(([one]) => one as Execution);
  return first.filter(({ inputs }) => inputs.every((one) => one.bucket === bucket)).map(({ inputs }) => inputs);
}

export function objectsOf(
  { history }: Evidence,
  executions: readonly Execution[],
  session: string,
  bucket: string,
): Objects {
  const senders = new Set<string>();
  const closers = new Set<string>();
  const objects: Objects = { possible: new Map(), certain: new Set(), joins: [], closes: 0, isVague: false };
  const counted = countedOf(executions);
  for (const attempts of grouped(executions, ({ invocation }) => invocation).values()) {
    for (const one of attempts) {
      for (const sent of one.sends) {
        if (sent.bucket !== bucket) continue;
        objects.possible.set(sent.key, sent);
        senders.add(one.invocation);
        if (sent.told && counted.has(one)) objects.certain.add(sent.key);
      }
      for (const note of one.notes) {
        if (note.bucket !== bucket) continue;
        if (note.join === undefined) {
          objects.closes++;
          closers.add(one.invocation);
        }
        if (note.join !== undefined) objects.joins.push(note.join);
        if (!counted.has(one)) objects.isVague = true;
      }
    }
  }
  const isCopy = [...callsOf(history, 'fork'), ...callsOf(history, 'retry')].some(
    (call) =>
      isUnanswered(call) ||
      (call.answer?.ok === true && (call.answer.value as { session?: string }).session === session),
  );
  for (const { what, detail, answer } of history.calls) {
    const of = detail.session ?? (answer?.ok === true ? (answer.value as { session?: string })?.session : undefined);
    // Without an answer, nobody knows which session it went to; a fork has what its original was given.
    if (detail.bucket !== bucket || (of !== undefined && of !== session && !isCopy)) continue;
    if (what === 'close') closers.add('outside');
    if (what === 'put') {
      const key = keyOf(session, bucket, String(detail.name));
      objects.possible.set(key, { name: String(detail.name), group: '' });
    }
    objects.isVague = true;
  }
  // What others send into a bucket that somebody closes counts only if it was faster.
  if (closers.size > 0 && new Set([...closers, ...senders]).size > 1) objects.certain.clear();
  return objects;
}

/**
 * Attempts whose sends surely count. Not one of a firing whose object may have been dropped: an instance that has not read
 * yet that its sender was overtaken runs the successors that it had kept, and nothing of them counts.
 */
function countedOf(executions: readonly Execution[]): Set<Execution> {
  const senders = new Map<string, Execution[]>();
  for (const one of executions) {
    for (const { key } of one.sends) senders.set(key, [...(senders.get(key) ?? []), one]);
  }
  const last = new Map(executions.map((one) => [one.invocation, one]));
  const known = new Map<Execution, boolean>();
  const counts = (one: Execution): boolean => {
    const before = known.get(one);
    if (before !== undefined) return before;
    known.set(one, false);
    const does =
      last.get(one.invocation) === one &&
      countsWhole(one) &&
      one.inputs.every(({ key }) => senders.get(key)?.some(counts) ?? true);
    known.set(one, does);
    return does;
  };
  return new Set(executions.filter(counts));
}

/** Nothing overtook it, and it did not die: it was not late, and it was not the last that a `rerun` rule allows. */
function countsWhole({ end, attempt, beganMs, timeoutMs }: Execution): boolean {
  if (end === undefined || end.error !== undefined) return false;
  return end.atMs - beganMs < timeoutMs - HAIR_MS && attempt <= RERUN_ATTEMPTS_MAX;
}

const HAIR_MS = 5;
/** As the local scheduler has it, on purpose written down once more. */
const RERUN_ATTEMPTS_MAX = 5;

/** (FI1) */
function sharedObject(firings: readonly Firing[], { possible }: Objects): string | undefined {
  const used = new Set<string>();
  for (const { key } of firings.flat()) {
    if (!possible.has(key)) return `fired with ${key}, which nobody sent`;
    if (used.has(key)) return `${key} fired twice`;
    used.add(key);
  }
  return undefined;
}

type Model = (trigger: never, firings: readonly Firing[], objects: Objects) => string | undefined;

const MODELS: Partial<Record<TriggerSpec['kind'], Model>> = {
  immediate: (_trigger, firings, objects) => eachOnce(firings, objects, () => true),
  byName: ({ name, match }: { name?: string; match?: string }, firings, objects) =>
    eachOnce(firings, objects, (one) => (name === undefined ? one.startsWith(match ?? '') : one === name)),
  bySet: ({ names }: { names: readonly string[] }, firings, objects) => {
    if (firings.length > 1) return `fired ${firings.length} times`;
    const complete = (keys: Iterable<string>) => {
      const there = new Set(Array.from(keys, (key) => objects.possible.get(key)?.name));
      return names.every((name) => there.has(name));
    };
    if (firings.length === 0) return complete(objects.certain) ? 'did not fire' : undefined;
    return firings[0]?.map(({ name }) => name).join() === names.join() ? undefined : 'fired with other names';
  },
  byBatchSize: ({ size, maxWaitMs }: { size: number; maxWaitMs?: number }, firings, objects) => {
    const wrong = firings.find((one) =>
      maxWaitMs === undefined ? one.length !== size : one.length > size || one.length === 0,
    );
    if (wrong !== undefined) return `fired with ${wrong.length} of ${size}`;
    const left = missingOf(firings, objects);
    return left.length < (maxWaitMs === undefined ? size : 1) ? undefined : `${left.join(', ')} did not fire`;
  },
  byTime: (_trigger, firings, objects) => {
    const left = missingOf(firings, objects);
    return left.length === 0 ? undefined : `${left.join(', ')} did not fire`;
  },
  redundant: ({ k }: { k: number }, firings, { possible, certain }) => {
    if (firings.length > 1) return `fired ${firings.length} times`;
    if (firings[0] !== undefined)
      return firings[0].length === k ? undefined : `fired with ${firings[0].length} of ${k}`;
    return certain.size >= k ? `has ${possible.size} of ${k} and did not fire` : undefined;
  },
  dynamicJoin: (_trigger, firings, { joins, certain, possible, isVague }) => {
    if (firings.length > 1) return `fired ${firings.length} times`;
    const [fired] = firings;
    if (fired !== undefined) {
      if (isVague) return undefined;
      const isAsked = joins.some(({ names, count }) =>
        names === undefined ? count === fired.length : names.join() === fired.map(({ name }) => name).join(),
      );
      return isAsked ? undefined : `fired with ${fired.map(({ name }) => name).join()}, which nobody asked for`;
    }
    const [join] = joins;
    if (isVague || joins.length !== 1 || join === undefined) return undefined;
    const names = new Set(Array.from(certain, (key) => possible.get(key)?.name));
    const isComplete =
      join.names === undefined ? certain.size >= (join.count ?? 0) : join.names.every((name) => names.has(name));
    return isComplete ? 'did not fire' : undefined;
  },
  dynamicGroup: ({ producers }: { producers?: readonly string[] }, firings, objects) => {
    for (const one of firings) {
      if (one.length === 0 || new Set(one.map(({ group }) => group)).size > 1) return 'fired across groups';
    }
    if (objects.isVague || producers !== undefined) return undefined;
    if (objects.closes === 0) return firings.length === 0 ? undefined : 'fired, and nobody closed it';
    if (objects.closes > 1) return undefined;
    const left = missingOf(firings, objects);
    return left.length === 0 ? undefined : `${left.join(', ')} did not fire`;
  },
};

function eachOnce(
  firings: readonly Firing[],
  objects: Objects,
  matches: (name: string) => boolean,
): string | undefined {
  for (const one of firings) {
    if (one.length !== 1) return `fired with ${one.length} objects`;
    if (!matches(one[0]?.name ?? '')) return `fired with ${one[0]?.name}, which does not match`;
  }
  const left = missingOf(firings, objects).filter((key) => matches(objects.possible.get(key)?.name ?? ''));
  return left.length === 0 ? undefined : `${left.join(', ')} did not fire`;
}

/** What has surely counted and is in no firing. */
function missingOf(firings: readonly Firing[], { certain }: Objects): string[] {
  const used = new Set(firings.flat().map(({ key }) => key));
  return [...certain].filter((key) => !used.has(key));
}
