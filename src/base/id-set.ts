import type { Hash64 } from './ids.ts';

const START_SLOTS = 1_024;
const WORDS = 2;

/** Ids that are only to be recognised: 16 to 32 bytes each, where a Set of objects would take a hundred and more. */
export class IdSet {
  /** Pairs of hi and lo; both 0 = free. Open addressing, at most half full. */
  #slots = new Uint32Array(START_SLOTS * WORDS);
  #size = 0;
  #hasZero = false;

  get size(): number {
    return this.#size + (this.#hasZero ? 1 : 0);
  }

  add({ hi, lo }: Hash64): void {
    if (hi === 0 && lo === 0) {
      this.#hasZero = true;
      return;
    }
    if ((this.#size + 1) * 2 * WORDS > this.#slots.length) this.#grow();
    const at = slotOf(this.#slots, hi, lo);
    if (this.#slots[at] !== 0 || this.#slots[at + 1] !== 0) return;
    this.#slots[at] = hi;
    this.#slots[at + 1] = lo;
    this.#size++;
  }

  has({ hi, lo }: Hash64): boolean {
    if (hi === 0 && lo === 0) return this.#hasZero;
    const at = slotOf(this.#slots, hi, lo);
    return this.#slots[at] !== 0 || this.#slots[at + 1] !== 0;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    for (let i = 0; i < old.length; i += WORDS) {
      const hi = old[i] as number;
      const lo = old[i + 1] as number;
      if (hi === 0 && lo === 0) continue;
      const at = slotOf(this.#slots, hi, lo);
      this.#slots[at] = hi;
      this.#slots[at + 1] = lo;
    }
  }
}

/** Where the id is, or where it would be put. */
function slotOf(slots: Uint32Array, hi: number, lo: number): number {
  const mask = slots.length / WORDS - 1;
  for (let slot = (hi ^ lo) & mask; ; slot = (slot + 1) & mask) {
    const at = slot * WORDS;
    const there = slots[at] as number;
    const thereLo = slots[at + 1] as number;
    if ((there === hi >>> 0 && thereLo === lo >>> 0) || (there === 0 && thereLo === 0)) return at;
  }
}
