// Places in the spill file: first fit, neighbours joined, the end given back.

import { assert } from '../base/index.ts';

interface Gap {
  readonly at: number;
  size: number;
}

/** Places are multiples of this, so that few gaps are too small for anything. */
const UNIT_BYTES = 4096;

export class Extents {
  readonly #gaps: Gap[] = [];
  #endBytes = 0;
  #usedBytes = 0;

  /** Behind it nothing is in use. */
  get endBytes(): number {
    return this.#endBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** @returns where `size` bytes may be written; that place is taken until it is given back with the same size. */
  take(size: number): number {
    const room = roomOf(size);
    this.#usedBytes += room;
    for (let i = 0; i < this.#gaps.length; i++) {
      const gap = this.#gaps[i] as Gap;
      if (gap.size < room) continue;
      if (gap.size === room) this.#gaps.splice(i, 1);
      else this.#gaps[i] = { at: gap.at + room, size: gap.size - room };
      return gap.at;
    }
    const at = this.#endBytes;
    this.#endBytes += room;
    return at;
  }

  give(at: number, size: number): void {
    const room = roomOf(size);
    this.#usedBytes -= room;
    let low = 0;
    for (let high = this.#gaps.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((this.#gaps[middle] as Gap).at < at) low = middle + 1;
      else high = middle;
    }
    const before = this.#gaps[low - 1];
    const after = this.#gaps[low];
    assert(before === undefined || before.at + before.size <= at, 'what is given back was taken');
    assert(after === undefined || at + room <= after.at, 'what is given back was taken');
    const gap: Gap = { at, size: room };
    this.#gaps.splice(low, 0, gap);
    if (after !== undefined && at + room === after.at) {
      gap.size += after.size;
      this.#gaps.splice(low + 1, 1);
    }
    if (before !== undefined && before.at + before.size === at) {
      before.size += gap.size;
      this.#gaps.splice(low, 1);
    }
    const last = this.#gaps.at(-1);
    if (last === undefined || last.at + last.size !== this.#endBytes) return;
    this.#endBytes = last.at;
    this.#gaps.pop();
  }
}

/** What a place of `size` bytes takes in the file. */
export function roomOf(size: number): number {
  return Math.max(1, Math.ceil(size / UNIT_BYTES)) * UNIT_BYTES;
}
