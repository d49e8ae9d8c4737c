// Traces of sessions: live ones are read from their records, ended ones from what is kept of them.

import { hexOf } from '../../base/index.ts';
import { nameOf, type StoredObject } from '../../bucket/index.ts';
import type { InvocationTrace, SessionTrace } from '../../protocol/index.ts';
import {
  ENDED_INVOCATIONS_MAX,
  ENDED_SESSIONS_MAX,
  type Invocation,
  invocationsOf,
  type Session,
  TRACE_INVOCATIONS_MAX,
} from '../../scheduler/local/index.ts';

export class EndedSessions {
  readonly #sessions = new Map<string, Session>();
  #invocations = 0;

  /** Keeps the records of an ended session without its contents; the oldest make room. */
  add(session: Session): void {
    for (const object of session.objects) (object as { content: unknown }).content = '';
    session.triggers.clear();
    session.heldObjects.clear();
    session.named.clear();
    this.#sessions.set(session.id, session);
    this.#invocations += session.invocationCount;
    for (const [id, oldest] of this.#sessions) {
      if (this.#sessions.size <= ENDED_SESSIONS_MAX && this.#invocations <= ENDED_INVOCATIONS_MAX) break;
      this.#sessions.delete(id);
      this.#invocations -= oldest.invocationCount;
    }
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
  const { session, firing } = invocation;
  const iso = (ms: number) => new Date(ms + names.epochOffsetMs).toISOString();
  const idOf = (object: StoredObject) =>
    `${names.app}/${session.tables.buckets[object.bucket]?.name ?? ''}/${object.session ?? session.id}/${nameOf(object)}`;
  return {
    id: hexOf(invocation.id),
    function: invocation.row.name,
    firing:
      firing === undefined
        ? null
        : `${session.tables.buckets[firing.bucket]?.name ?? ''}/${firing.trigger}/${firing.index}`,
    parent: invocation.parent === undefined ? null : hexOf(invocation.parent),
    attempts: invocation.history.map((attempt) => ({
      n: attempt.n,
      node: names.node,
      instance: attempt.instance,
      start: attempt.start,
      queuedAt: iso(attempt.queuedAtMs),
      startedAt: iso(attempt.startedAtMs),
      endedAt: attempt.endedAtMs === 0 ? null : iso(attempt.endedAtMs),
      outcome: attempt.outcome,
    })),
    in: invocation.inputs.map(idOf),
    out: invocation.out.map(idOf),
  };
}
