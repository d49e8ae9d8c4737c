// Records of a running session. Owned and changed by SessionMachine alone; others read.

import { type ErrorData, type Hash64, IdSet } from '../../base/index.ts';
import {
  type AppTables,
  CALL_BUCKET_INDEX,
  type FunctionRow,
  isStored,
  type RerunRow,
  type StoredObject,
} from '../../bucket/index.ts';
import type { AttemptOutcome, StartKind } from '../../protocol/index.ts';
import type { TriggerMachine } from '../../trigger/index.ts';

/**
 * Where an invocation is; it is in exactly one place (SM1).
 *
 *   queued ──offered/kept──▶ held ──▶ running ──▶ ended
 *     ▲                        │         │
 *     └──────── backoff ◀──────┴─────────┘   (attempt failed, timed out or lost)
 */
export type Place = 'queued' | 'held' | 'running' | 'backoff' | 'ended';

export interface AttemptRecord {
  readonly n: number;
  readonly slot: number;
  readonly instance: string;
  readonly start: StartKind;
  readonly queuedAtMs: number;
  readonly startedAtMs: number;
  endedAtMs: number;
  outcome: AttemptOutcome;
}

export interface Invocation {
  readonly session: Session;
  readonly id: Hash64;
  readonly row: FunctionRow;
  /** Undefined for an entry. */
  readonly firing: { readonly bucket: number; readonly trigger: string; readonly index: string } | undefined;
  readonly parent: Hash64 | undefined;
  readonly wantsResult: boolean;
  inputs: readonly StoredObject[];
  out: StoredObject[];
  place: Place;
  /** Of the instance that holds or runs it; -1 = none. */
  slot: number;
  fence: number;
  /** Attempts begun. */
  attempts: number;
  failures: number;
  losses: number;
  /** Further executions because of a `rerun` rule. */
  reruns: number;
  /** It returned, but a rule still misses something: it is executed again unless that has come when its time is over. */
  missed: RerunRow | undefined;
  queuedAtMs: number;
  startedAtMs: number;
  /** Successors are made by the host: a re-execution, or a suspect. */
  hostEvaluates: boolean;
  /** What a send of it was refused for; its attempt fails with this. */
  sendError: ErrorData | undefined;
  history: AttemptRecord[];
  /** Another invocation of the session whose `lo` is equal. */
  next: Invocation | undefined;
  /** Neighbours among those that have not ended. */
  earlier: Invocation | undefined;
  later: Invocation | undefined;
}

/** Something of a session that failed for good. */
export interface Failure {
  /** Undefined: nothing that runs, but an object that its owner refused. */
  readonly invocation: Invocation | undefined;
  readonly error: ErrorData;
}

export interface Session {
  readonly no: number;
  readonly id: string;
  readonly run: number;
  readonly durable: boolean;
  readonly priority: number;
  /** Monotonic ms; 0 = none. */
  readonly deadlineMs: number;
  readonly tables: AppTables;
  readonly startedAtMs: number;
  /** By the lower half of their ids; forgotten ones apart. */
  readonly invocations: Map<number, Invocation>;
  /** All that there were. */
  invocationCount: number;
  /** Ids of invocations that ended and of which nothing else is kept. */
  forgotten: IdSet | undefined;
  /** Those that have not ended, oldest first: a list through `Invocation.later`. */
  oldest: Invocation | undefined;
  newest: Invocation | undefined;
  readonly entries: Invocation[];
  /** Every object of the session, as it came. */
  objects: StoredObject[];
  /** Of the objects, those of forgotten invocations: they have no content, and are taken out when they are many. */
  hollowObjects: number;
  /** Objects that are not in `objects` any more. */
  droppedObjects: number;
  /** Objects with a chosen name: bucket index → name → who made it. */
  readonly named: Map<number, Map<string, StoredObject>>;
  /** Triggers with state: key is bucket × 65536 + trigger. */
  readonly triggers: Map<number, TriggerMachine>;
  /** Where the objects of those triggers' keys are. */
  readonly heldObjects: Map<number, Map<string, StoredObject>>;
  /** When each of them is next due, as far as it is in the timer queue. */
  readonly timedAtMs: Map<number, number>;
  /** Functions of which nothing is begun any more (`cancelLosers`), and what their invocations are told. */
  readonly losers: Map<string, ErrorData>;
  /** Invocations that have not ended. */
  live: number;
  /** Of those, how many run on an instance. */
  running: number;
  /** Copies and persisted objects whose owner has not answered yet: seq → sender. */
  readonly acks: Map<number, Invocation | undefined>;
  nextAck: number;
  outputs: number;
  result: StoredObject | undefined;
  firstError: ErrorData | undefined;
  /** The first FAILURES_MAX. */
  readonly failures: Failure[];
  failuresDropped: number;
  bytes: number;
  /** Of those, bytes that travel with their objects; the others are in the object store. */
  inlineBytes: number;
  /** Objects in the object store, in memory or spilled. */
  storedObjects: number;
  firings: number;
  attempts: number;
  meteredMs: number;
  open: { readonly idleTimeoutMs: number; closed: boolean; idleSinceMs: number } | undefined;
  /** `ending`: its end was told, but attempts still run and use its objects. */
  state: 'running' | 'ending' | 'ended';
  endedAtMs: number;
}

/** One that begins now. */
export function newSession(
  begun: Pick<Session, 'no' | 'id' | 'run' | 'durable' | 'priority' | 'deadlineMs' | 'tables' | 'startedAtMs' | 'open'>,
): Session {
  return {
    no: begun.no,
    id: begun.id,
    run: begun.run,
    durable: begun.durable,
    priority: begun.priority,
    deadlineMs: begun.deadlineMs,
    tables: begun.tables,
    startedAtMs: begun.startedAtMs,
    invocations: new Map(),
    invocationCount: 0,
    forgotten: undefined,
    oldest: undefined,
    newest: undefined,
    entries: [],
    objects: [],
    hollowObjects: 0,
    droppedObjects: 0,
    named: new Map(),
    triggers: new Map(),
    heldObjects: new Map(),
    timedAtMs: new Map(),
    losers: new Map(),
    live: 0,
    running: 0,
    acks: new Map(),
    nextAck: 1,
    outputs: 0,
    result: undefined,
    firstError: undefined,
    failures: [],
    failuresDropped: 0,
    bytes: 0,
    inlineBytes: 0,
    storedObjects: 0,
    firings: 0,
    attempts: 0,
    meteredMs: 0,
    open: begun.open,
    state: 'running',
    endedAtMs: 0,
  };
}

/** One that waits, and is in its session from now on. */
export function newInvocation(
  session: Session,
  made: Pick<Invocation, 'id' | 'row' | 'firing' | 'parent' | 'inputs' | 'fence' | 'wantsResult' | 'queuedAtMs'>,
): Invocation {
  const invocation: Invocation = {
    session,
    id: made.id,
    row: made.row,
    firing: made.firing,
    parent: made.parent,
    wantsResult: made.wantsResult,
    inputs: made.inputs,
    out: [],
    place: 'queued',
    slot: -1,
    fence: made.fence,
    attempts: 0,
    failures: 0,
    losses: 0,
    reruns: 0,
    missed: undefined,
    queuedAtMs: made.queuedAtMs,
    startedAtMs: 0,
    hostEvaluates: false,
    sendError: undefined,
    history: [],
    next: undefined,
    earlier: session.newest,
    later: undefined,
  };
  if (session.newest === undefined) session.oldest = invocation;
  else session.newest.later = invocation;
  session.newest = invocation;
  addInvocation(session, invocation);
  return invocation;
}

export function findInvocation(session: Session, id: Hash64): Invocation | undefined {
  let invocation = session.invocations.get(id.lo);
  while (invocation !== undefined && invocation.id.hi !== id.hi) invocation = invocation.next;
  return invocation;
}

function addInvocation(session: Session, invocation: Invocation): void {
  invocation.next = session.invocations.get(invocation.id.lo);
  session.invocations.set(invocation.id.lo, invocation);
  session.invocationCount++;
}

/** Whether there is or was one with this id. */
export function isKnown(session: Session, id: Hash64): boolean {
  return findInvocation(session, id) !== undefined || session.forgotten?.has(id) === true;
}

/** Nothing of it comes any more: it leaves those that have not ended. Idempotent. */
export function markEnded(invocation: Invocation): void {
  const { session, earlier, later } = invocation;
  invocation.place = 'ended';
  invocation.slot = -1;
  if (earlier === undefined && session.oldest !== invocation) return;
  if (earlier === undefined) session.oldest = later;
  else earlier.later = later;
  if (later === undefined) session.newest = earlier;
  else later.earlier = earlier;
  invocation.earlier = undefined;
  invocation.later = undefined;
}

/** Those that have not ended, oldest first, as they are now. */
export function liveInvocationsOf(session: Session): Invocation[] {
  const live: Invocation[] = [];
  for (let one = session.oldest; one !== undefined; one = one.later) live.push(one);
  return live;
}

/**
 * Keeps of an invocation that has ended only that there was one with its id. So a session that goes on calling for hours
 * costs what it does, not what it has done.
 * @returns the objects that nobody can ask for any more; undefined: it is worth keeping.
 */
export function forget(invocation: Invocation): readonly StoredObject[] | undefined {
  const { session, id, out, inputs } = invocation;
  if (invocation.firing === undefined || invocation.attempts !== 1 || invocation.failures > 0) return undefined;
  // Objects of buckets can be asked for by their sender's id and step.
  for (const object of out) if (object.bucket !== CALL_BUCKET_INDEX) return undefined;
  // What is in the object store is few and large, and has its own account.
  if (inputs.some(({ content }) => isStored(content))) return undefined;
  session.forgotten ??= new IdSet();
  session.forgotten.add(id);
  let before: Invocation | undefined;
  let one = session.invocations.get(id.lo);
  while (one !== undefined && one !== invocation) {
    before = one;
    one = one.next;
  }
  if (before !== undefined) before.next = invocation.next;
  else if (invocation.next !== undefined) session.invocations.set(id.lo, invocation.next);
  else session.invocations.delete(id.lo);
  return inputs.filter((input) => input.bucket === CALL_BUCKET_INDEX);
}

/** Those of which more than the id is kept. */
export function* invocationsOf(session: Session): Generator<Invocation> {
  for (const first of session.invocations.values()) {
    for (let one: Invocation | undefined = first; one !== undefined; one = one.next) yield one;
  }
}
