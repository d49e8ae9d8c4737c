// What waits for its turn: higher priority first, equal ones in the order in which they came; who has waited too long gets
// a turn whatever came after it.
//
// PF1. An item leaves once: taken, or dropped unseen because it does not wait any more.
// PF2. Of `agedEvery` turns in a row one goes to whoever has waited longest, if that is `agedAfterMs` or more. So nobody
//      starves, and under a load that makes everybody wait the higher priority still gets the other turns.

import { assert } from './assert.ts';
import { Fifo } from './fifo.ts';

/** Nothing is refused here: what may enter was decided before. */
const UNBOUNDED = Number.MAX_SAFE_INTEGER;
/** Fewer that do not wait any more are not worth going through all. */
const WITHDRAWN_MIN = 1_000;

export interface PriorityFifoOptions<T> {
  /** Whether the item still waits; one that does not is dropped when its turn comes. Default: all do. */
  readonly waits?: (item: T) => boolean;
  readonly agedAfterMs: number;
  /** 2 or more. */
  readonly agedEvery: number;
}

interface Row<T> {
  readonly priority: number;
  readonly fifo: Fifo<Waiting<T>>;
}

interface Waiting<T> {
  readonly item: T;
  readonly sinceMs: number;
}

export class PriorityFifo<T> {
  readonly #options: Required<PriorityFifoOptions<T>>;
  /** By descending priority; none of them is empty for long. */
  readonly #rows: Row<T>[] = [];
  /** Items here, those that do not wait any more included. */
  #size = 0;
  #withdrawn = 0;
  /** Turns since the last one that went by age. */
  #turns = 0;

  constructor(options: PriorityFifoOptions<T>) {
    assert(options.agedEvery >= 2, 'not every turn goes by age');
    this.#options = { waits: () => true, ...options };
  }

  /** @param sinceMs never before that of an item pushed earlier with the same priority. */
  push(item: T, priority: number, sinceMs: number): void {
    let at = 0;
    while (at < this.#rows.length && (this.#rows[at] as Row<T>).priority > priority) at++;
    let row = this.#rows[at];
    if (row === undefined || row.priority !== priority) {
      row = { priority, fifo: new Fifo(UNBOUNDED) };
      this.#rows.splice(at, 0, row);
    }
    row.fifo.push({ item, sinceMs });
    this.#size++;
  }

  /** One of the items does not wait any more: so many of them are never kept that they outnumber the others. */
  withdrawn(): void {
    this.#withdrawn++;
    if (this.#withdrawn < WITHDRAWN_MIN || this.#withdrawn * 2 < this.#size) return;
    for (const { fifo } of this.#rows) this.#size -= fifo.remove(({ item }) => !this.#options.waits(item)).length;
    this.#withdrawn = 0;
  }

  /** All that wait, in no order. */
  *values(): Generator<T> {
    for (const { fifo } of this.#rows) for (const { item } of fifo) if (this.#options.waits(item)) yield item;
  }

  /** Whose turn it is, without taking it. */
  peek(nowMs: number): T | undefined {
    return this.#next(nowMs)?.fifo.peek()?.item;
  }

  /** Takes whose turn it is. Cost: one step for each priority that somebody waits with in one turn of `agedEvery`. */
  take(nowMs: number): T | undefined {
    const row = this.#next(nowMs);
    if (row === undefined) return undefined;
    this.#turns = this.#turns + 1 >= this.#options.agedEvery ? 0 : this.#turns + 1;
    this.#size--;
    return row.fifo.shift()?.item;
  }

  #next(nowMs: number): Row<T> | undefined {
    if (this.#turns + 1 >= this.#options.agedEvery) {
      const oldest = this.#oldest();
      if (oldest !== undefined && nowMs - oldest.sinceMs >= this.#options.agedAfterMs) return oldest.row;
    }
    for (let at = 0; at < this.#rows.length; at++) {
      const row = this.#rows[at] as Row<T>;
      if (this.#head(row.fifo) !== undefined) return row;
      this.#rows.splice(at--, 1);
    }
    return undefined;
  }

  /** Of equal age the higher priority. */
  #oldest(): { readonly row: Row<T>; readonly sinceMs: number } | undefined {
    let oldest: { row: Row<T>; sinceMs: number } | undefined;
    for (const row of this.#rows) {
      const head = this.#head(row.fifo);
      if (head !== undefined && (oldest === undefined || head.sinceMs < oldest.sinceMs)) {
        oldest = { row, sinceMs: head.sinceMs };
      }
    }
    return oldest;
  }

  #head(fifo: Fifo<Waiting<T>>): Waiting<T> | undefined {
    for (;;) {
      const first = fifo.peek();
      if (first === undefined || this.#options.waits(first.item)) return first;
      fifo.shift(); // (PF1)
      this.#size--;
      this.#withdrawn--;
    }
  }
}
