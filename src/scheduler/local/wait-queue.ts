import { PriorityFifo } from '../../base/index.ts';
import { AGED_AFTER_MS, AGED_EVERY, PRIORITY_SUM_MAX } from './limits.ts';
import type { Invocation } from './session.ts';

/**
 * Invocations that wait for an instance of one pool: those of running sessions before sessions that have not begun, each by
 * priority and age; whoever has waited AGED_AFTER_MS gets its share of the turns. Nothing here is refused: what may enter
 * was decided at the session's start. What was withdrawn is skipped when its turn comes.
 */
export class WaitQueue {
  readonly #waiting = new PriorityFifo<Invocation>({
    waits: (invocation) => invocation.place === 'queued',
    agedAfterMs: AGED_AFTER_MS,
    agedEvery: AGED_EVERY,
  });
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @param nowMs never less than before. */
  push(invocation: Invocation, nowMs: number): void {
    this.#size++;
    this.#waiting.push(invocation, rankOf(invocation), nowMs);
  }

  /** Its turn is skipped; the caller has moved it to another place. */
  withdrawn(): void {
    this.#size--;
    this.#waiting.withdrawn();
  }

  peek(nowMs: number): Invocation | undefined {
    return this.#waiting.peek(nowMs);
  }

  shift(nowMs: number): Invocation | undefined {
    const invocation = this.#waiting.take(nowMs);
    if (invocation !== undefined) this.#size--;
    return invocation;
  }

  /** All that wait. */
  values(): Iterable<Invocation> {
    return this.#waiting.values();
  }
}

/** Session's and function's priority together; all of running sessions are above all of those that have not begun. */
export function rankOf(invocation: Invocation): number {
  const { session, row } = invocation;
  return session.priority + row.priority + (isEntry(invocation) ? 0 : 2 * PRIORITY_SUM_MAX + 1);
}

/** The first attempt of an entry: its session has not begun. */
function isEntry(invocation: Invocation): boolean {
  return invocation.firing === undefined && invocation.attempts === 0;
}
