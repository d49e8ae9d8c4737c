import { Heap } from '../../base/index.ts';

interface Timed<T> {
  readonly atMs: number;
  readonly seq: number;
  readonly what: T;
}

/** What is due when; equal times keep their order. Entries are not removed: who takes one looks whether it still holds. */
export class TimerQueue<T> {
  readonly #heap = new Heap<Timed<T>>((a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.seq < b.seq));
  #seq = 0;

  get size(): number {
    return this.#heap.size;
  }

  add(atMs: number, what: T): void {
    this.#heap.push({ atMs, seq: this.#seq++, what });
  }

  nextMs(): number | undefined {
    return this.#heap.peek()?.atMs;
  }

  /** All of them, also those that do not hold any more. */
  *values(): Generator<T> {
    for (const { what } of this.#heap.values()) yield what;
  }

  takeDue(nowMs: number): T | undefined {
    const first = this.#heap.peek();
    return first !== undefined && first.atMs <= nowMs ? this.#heap.pop()?.what : undefined;
  }
}
