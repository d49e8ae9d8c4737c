/** First in, first out, with a named limit; amortised O(1) at both ends. */
export class Fifo<T> {
  #items: (T | undefined)[] = [];
  #head = 0;
  readonly capacity: number;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get size(): number {
    return this.#items.length - this.#head;
  }

  /** @returns false when it is full; nothing was added then. */
  push(item: T): boolean {
    if (this.size >= this.capacity) return false;
    this.#items.push(item);
    return true;
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  /** The first `count`, or all that there are; they stay. */
  first(count: number): T[] {
    return this.#items.slice(this.#head, this.#head + count) as T[];
  }

  shift(): T | undefined {
    if (this.#head >= this.#items.length) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    if (this.#head > 1_024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Removes what `matches`, keeps the order of the rest. */
  remove(matches: (item: T) => boolean): T[] {
    const removed: T[] = [];
    const kept: T[] = [];
    for (let i = this.#head; i < this.#items.length; i++) {
      const item = this.#items[i] as T;
      (matches(item) ? removed : kept).push(item);
    }
    this.#items = kept;
    this.#head = 0;
    return removed;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = this.#head; i < this.#items.length; i++) yield this.#items[i] as T;
  }
}
