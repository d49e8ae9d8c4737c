// Traces of sessions: live ones are read from their records, ended ones from what is kept of them.

import { Fifo, hexOf } from '../../base/index.ts';
import { nameOf, type StoredObject } from '../../bucket/index.ts';
import type { AttemptTrace, InvocationTrace, SessionTrace } from '../../protocol/index.ts';
import {
  type AttemptRecord,
  ENDED_INVOCATIONS_MAX,
  ENDED_SESSIONS_MAX,
  type Invocation,
  invocationsOf,
  type Session,
  TRACE_INVOCATIONS_MAX,
} from '../../scheduler/local/index.ts';

/** Instances may still tell of a session for a moment after its end, never for so many sessions. */
const ENDED_NUMBERS_MAX = 10_000;

export class EndedSessions {
  readonly #sessions = new Map<string, Session>();
  #invocations = 0;
  /** Numbers of the newest, whether or not their records are kept. */
  readonly #numbers = new Set<number>();
  /** Oldest first: a large Set from which the first is taken again and again takes 7 µs each time. */
  readonly #numberOrder = new Fifo<number>(ENDED_NUMBERS_MAX + 1);

  /** Keeps the records of an ended session without its contents; the oldest make room. */
  add(session: Session): void {
    for (const object of session.objects) (object as { content: unknown }).content = '';
    session.triggers.clear();
    session.heldObjects.clear();
    session.named.clear();
    if (!this.#numbers.has(session.no)) {
      this.#numbers.add(session.no);
      this.#numberOrder.push(session.no);
      if (this.#numbers.size > ENDED_NUMBERS_MAX) this.#numbers.delete(this.#numberOrder.shift() as number);
    }
    this.#sessions.set(session.id, session);
    this.#invocations += session.invocationCount;
    for (const [id, oldest] of this.#sessions) {
      if (this.#sessions.size <= ENDED_SESSIONS_MAX && this.#invocations <= ENDED_INVOCATIONS_MAX) break;
      this.#sessions.delete(id);
      this.#invocations -= oldest.invocationCount;
    }
  }

  hasNumber(no: number): boolean {
    return this.#numbers.has(no);
  }

  get(id: string): Session | undefined {
    return this.#sessions.get(id);
  }
}

export interface TraceNames {
  readonly app: string;
  readonly node: string;
  /** Epoch minus monotonic, ms. */
  readonly epochOffsetMs: number;
}

export function traceOf(session: Session, names: TraceNames): SessionTrace {
  const invocations: InvocationTrace[] = [];
  const order = Array.from(invocationsOf(session)).sort((a, b) => firstMs(a) - firstMs(b));
  for (const invocation of order.slice(0, TRACE_INVOCATIONS_MAX)) invocations.push(invocationTrace(invocation, names));
  const dropped = session.invocationCount - invocations.length;
  return { session: session.id, invocations, ...(dropped > 0 ? { dropped } : {}) };
}

function firstMs(invocation: Invocation): number {
  return invocation.history[0]?.queuedAtMs ?? invocation.queuedAtMs;
}

function invocationTrace(invocation: Invocation, names: TraceNames): InvocationTrace {
  const { session } = invocation;
  const idOf = (object: StoredObject) =>
    `${names.app}/${session.tables.buckets[object.bucket]?.name ?? ''}/${object.session ?? session.id}/${nameOf(object)}`;
  return {
    id: hexOf(invocation.id),
    function: invocation.row.name,
    firing: firingOf(invocation) ?? null,
    parent: invocation.parent === undefined ? null : hexOf(invocation.parent),
    attempts: invocation.history.map((attempt) => attemptTrace(attempt, names)),
    in: invocation.inputs.map(idOf),
    out: invocation.out.map(idOf),
  };
}

/** `<bucket>/<trigger>/<index>`; undefined for an entry. */
export function firingOf({ session, firing }: Invocation): string | undefined {
  if (firing === undefined) return undefined;
  return `${session.tables.buckets[firing.bucket]?.name ?? ''}/${firing.trigger}/${firing.index}`;
}

export function attemptTrace(attempt: AttemptRecord, { node, epochOffsetMs }: TraceNames): AttemptTrace {
  const iso = (ms: number) => new Date(ms + epochOffsetMs).toISOString();
  return {
    n: attempt.n,
    node,
    instance: attempt.instance,
    start: attempt.start,
    queuedAt: iso(attempt.queuedAtMs),
    startedAt: iso(attempt.startedAtMs),
    endedAt: attempt.endedAtMs === 0 ? null : iso(attempt.endedAtMs),
    outcome: attempt.outcome,
  };
}
