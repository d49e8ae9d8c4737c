import { Fifo } from '../../base/index.ts';
import type { Invocation } from './session.ts';

/** Nothing here is refused: what may enter was decided at the session's start. */
const UNBOUNDED = Number.MAX_SAFE_INTEGER;

/**
 * Invocations that wait for an instance of one pool: those of running sessions first, then entries by priority, each
 * oldest first. What was withdrawn is skipped when its turn comes.
 */
export class WaitQueue {
  readonly #successors = new Fifo<Invocation>(UNBOUNDED);
  /** By descending priority. */
  readonly #entries: { readonly priority: number; readonly fifo: Fifo<Invocation> }[] = [];
  #size = 0;
  #entryCount = 0;

  get size(): number {
    return this.#size;
  }

  /** First attempts of entries: sessions that have not begun. */
  get entryCount(): number {
    return this.#entryCount;
  }

  push(invocation: Invocation): void {
    this.#size++;
    if (!isEntry(invocation)) {
      this.#successors.push(invocation);
      return;
    }
    this.#entryCount++;
    const priority = invocation.session.priority + invocation.row.priority;
    let at = 0;
    while (at < this.#entries.length && (this.#entries[at]?.priority ?? 0) > priority) at++;
    let row = this.#entries[at];
    if (row === undefined || row.priority !== priority) {
      row = { priority, fifo: new Fifo<Invocation>(UNBOUNDED) };
      this.#entries.splice(at, 0, row);
    }
    row.fifo.push(invocation);
  }

  /** Its turn is skipped; the caller has moved it to another place. */
  withdrawn(invocation: Invocation): void {
    this.#size--;
    if (isEntry(invocation)) this.#entryCount--;
  }

  peek(): Invocation | undefined {
    return this.#first()?.peek();
  }

  shift(): Invocation | undefined {
    const invocation = this.#first()?.shift();
    if (invocation === undefined) return undefined;
    this.#size--;
    if (isEntry(invocation)) this.#entryCount--;
    return invocation;
  }

  /** The queue whose head is next, with withdrawn ones dropped from the heads. */
  #first(): Fifo<Invocation> | undefined {
    if (head(this.#successors) !== undefined) return this.#successors;
    for (let at = 0; at < this.#entries.length; at++) {
      const fifo = (this.#entries[at] as { fifo: Fifo<Invocation> }).fifo;
      if (head(fifo) !== undefined) return fifo;
      this.#entries.splice(at--, 1);
    }
    return undefined;
  }
}

function head(fifo: Fifo<Invocation>): Invocation | undefined {
  for (;;) {
    const first = fifo.peek();
    if (first === undefined || first.place === 'queued') return first;
    fifo.shift();
  }
}

function isEntry(invocation: Invocation): boolean {
  return invocation.firing === undefined && invocation.attempts === 0;
}
