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

/** A server that did not hear of an ended session's trace within this time might lose it with this host. */
const TELL_TRACES_MS = 1_000;
/** In so long so many sessions and invocations, newest first: telling of all would cost calls of a few µs a tenth more. */
const TOLD_TRACES_MAX = 200;
const TOLD_INVOCATIONS_MAX = 2_000;
/** A trace that the server keeps; what is longer is cut after the first invocations. */
const TRACE_TEXT_CHARS_MAX = 1_000_000;
/** Objects of one invocation that it names. */
const TRACE_OBJECTS_MAX = 1_000;
/** Instances may still tell of a session for a moment after its end, never for so many sessions. */
const ENDED_NUMBERS_MAX = 10_000;

export class EndedSessions {
  readonly #sessions = new Map<string, Session>();
  #invocations = 0;
  /** Numbers of the newest, whether or not their records are kept. */
  readonly #numbers = new Set<number>();
  /** Oldest first: a large Set from which the first is taken again and again takes 7 µs each time. */
  readonly #numberOrder = new Fifo<number>(ENDED_NUMBERS_MAX + 1);
  /** When the first session ended whose trace the server does not have; infinite: it has them all, or they were durable. */
  #untoldSinceMs = Number.POSITIVE_INFINITY;
  /** The newest whose trace was told. */
  #newestTold: Session | undefined;

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
    if (!session.durable && this.#untoldSinceMs === Number.POSITIVE_INFINITY) this.#untoldSinceMs = session.endedAtMs;
    this.#sessions.set(session.id, session);
    this.#invocations += keptOf(session);
    for (const [id, oldest] of this.#sessions) {
      if (this.#sessions.size <= ENDED_SESSIONS_MAX && this.#invocations <= ENDED_INVOCATIONS_MAX) break;
      this.#sessions.delete(id);
      this.#invocations -= keptOf(oldest);
    }
  }

  /** Monotonic ms at which the server shall have the traces of what ended; infinite for none. */
  get tellAtMs(): number {
    return this.#untoldSinceMs + TELL_TRACES_MS;
  }

  /** Traces that the server does not have, as far as they fit into one message; @param all when this host ends. */
  takeUntold(all: boolean): Session[] {
    const taken: Session[] = [];
    let invocations = 0;
    for (const session of [...this.#sessions.values()].reverse()) {
      if (!all && (session === this.#newestTold || taken.length >= TOLD_TRACES_MAX)) break;
      if (session.durable) continue;
      invocations += session.invocationCount;
      if (!all && taken.length > 0 && invocations > TOLD_INVOCATIONS_MAX) break;
      taken.push(session);
    }
    this.#untoldSinceMs = Number.POSITIVE_INFINITY;
    this.#newestTold = taken[0] ?? this.#newestTold;
    return taken;
  }

  hasNumber(no: number): boolean {
    return this.#numbers.has(no);
  }

  get(id: string): Session | undefined {
    return this.#sessions.get(id);
  }
}

/** Invocations of which more than the id is kept. */
function keptOf({ invocationCount, forgotten }: Session): number {
  return invocationCount - (forgotten?.size ?? 0);
}

export interface TraceNames {
  readonly app: string;
  readonly node: string;
  /** Epoch minus monotonic, ms. */
  readonly epochOffsetMs: number;
}

export function traceOf(session: Session, names: TraceNames): SessionTrace {
  const invocations: InvocationTrace[] = [];
  for (const invocation of inOrder(session).slice(0, TRACE_INVOCATIONS_MAX))
    invocations.push(invocationTrace(invocation, names));
  const dropped = session.invocationCount - invocations.length;
  return { session: session.id, invocations, ...(dropped > 0 ? { dropped } : {}) };
}

/** JSON of a SessionTrace that the server keeps. */
export function traceText(session: Session, names: TraceNames): string {
  const texts: string[] = [];
  let chars = 0;
  for (const invocation of inOrder(session)) {
    const whole = invocationTrace(invocation, names);
    const text = JSON.stringify({
      ...whole,
      in: whole.in.slice(0, TRACE_OBJECTS_MAX),
      out: whole.out.slice(0, TRACE_OBJECTS_MAX),
    });
    chars += text.length;
    if (chars > TRACE_TEXT_CHARS_MAX) break;
    texts.push(text);
  }
  const dropped = session.invocationCount - texts.length;
  const rest = dropped > 0 ? `,"dropped":${dropped}` : '';
  return `{"session":${JSON.stringify(session.id)},"invocations":[${texts.join()}]${rest}}`;
}

function inOrder(session: Session): Invocation[] {
  return Array.from(invocationsOf(session)).sort((a, b) => firstMs(a) - firstMs(b));
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
