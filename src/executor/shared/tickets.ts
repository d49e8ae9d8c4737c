// Offers of one pool in shared memory: whatever can run an invocation first claims it.
//
//   slot ┌ state word ┬ seq ┬ function ┬ session no ┬ id hi ┬ id lo ┬ length ┬ slab segment │ offset, size │ body 4 KiB
//   state word = epoch << 10 | owner << 2 | FREE · WRITING · READY · CLAIMED
//
//            publish                publish               claim                 done
//   FREE ───────────────▶ WRITING ───────────▶ READY ───────────▶ CLAIMED ───────────▶ FREE (epoch + 1)
//
// TK1. Every move is a compare-and-swap of the whole word, epoch included, so a slot that was reused meanwhile is not
//      mistaken for the one that was looked at.
// TK2. A slot in WRITING or CLAIMED names its owner: when that thread died, `sweep` frees it. What it described is
//      known to the host from the owner's records, and is offered again from there.
// TK3. The claimer writes its `started` record before the slot becomes FREE: a ticket is always in a slot or in a record.

import { assert } from '../../base/index.ts';
import { INSTANCE_SLOTS_MAX, OFFER_STEP, OFFER_STEPS_MAX, TICKET_BYTES, TICKET_SLOTS } from './limits.ts';

const FREE = 0;
const WRITING = 1;
const READY = 2;
const CLAIMED = 3;
const HEADER_WORDS = 16;
const SLOT_BYTES = HEADER_WORDS * 4 + TICKET_BYTES;
const SLOT_WORDS = SLOT_BYTES / 4;
const GLOBAL_WORDS = 16;
const READY_COUNT = 0;
const NEXT_SEQ = 1;
const BACKLOG = 2;

const _W_STATE = 0;
const W_SEQ = 1;
const W_FUNCTION = 2;
const W_SESSION = 3;
const W_HI = 4;
const W_LO = 5;
const W_LENGTH = 6;
const W_SEGMENT = 7;
const W_OFFSET_F64 = 4;
const W_SIZE_F64 = 5;

export function createTicketMemory(): SharedArrayBuffer {
  return new SharedArrayBuffer(GLOBAL_WORDS * 4 + TICKET_SLOTS * SLOT_BYTES);
}

export interface TicketKey {
  readonly function: number;
  readonly sessionNo: number;
  readonly hi: number;
  readonly lo: number;
  /** Steps that it goes before offers made later or earlier with fewer: see `stepsAheadOf`. */
  readonly stepsAhead: number;
}

/**
 * How far an offer goes before others: one step for each point of priority, and more than all of those if its session
 * runs already. A step is worth OFFER_STEP offers, so no offer is overtaken for ever.
 */
export function stepsAheadOf(priority: number, begun: boolean): number {
  return Math.max(-OFFER_STEPS_MAX, Math.min(OFFER_STEPS_MAX, priority)) + (begun ? 2 * OFFER_STEPS_MAX + 1 : 0);
}

/** Where the body lies when it does not fit into the slot. */
export interface TicketBlock {
  readonly segment: number;
  readonly offset: number;
  readonly size: number;
}

/** Nobody will begin it, and nobody else will free its block. */
export interface SweptTicket {
  readonly sessionNo: number;
  readonly hi: number;
  readonly lo: number;
  readonly block: TicketBlock | undefined;
}

export class Tickets {
  readonly #words: Int32Array;
  readonly #floats: Float64Array;
  readonly #buffer: Buffer;
  readonly #owner: number;

  /** @param owner number of this thread, 1 to 255, as in the slab. */
  constructor(memory: SharedArrayBuffer, owner: number) {
    assert(owner > 0 && owner <= INSTANCE_SLOTS_MAX + 1, 'an owner number fits its bits');
    this.#words = new Int32Array(memory);
    this.#floats = new Float64Array(memory);
    this.#buffer = Buffer.from(memory as unknown as ArrayBuffer);
    this.#owner = owner;
  }

  /** May be one too low or high for a moment: a hint, except that 0 after a publish of this thread is never seen. */
  get readyCount(): number {
    return Atomics.load(this.#words, READY_COUNT);
  }

  /** How many more the host would offer if there were room: who claims rings it when offers run out. */
  get backlog(): number {
    return Atomics.load(this.#words, BACKLOG);
  }

  set backlog(count: number) {
    Atomics.store(this.#words, BACKLOG, count);
  }

  /** Body memory of the slot that was taken, or undefined when all are in use. Then `publish`. */
  take(): { readonly slot: number; readonly body: Buffer } | undefined {
    for (let slot = 0; slot < TICKET_SLOTS; slot++) {
      const at = this.#at(slot);
      const word = Atomics.load(this.#words, at);
      if ((word & 3) !== FREE) continue;
      if (Atomics.compareExchange(this.#words, at, word, with_(word, WRITING, this.#owner)) !== word) continue;
      const start = (at + HEADER_WORDS) * 4;
      return { slot, body: this.#buffer.subarray(start, start + TICKET_BYTES) };
    }
    return undefined;
  }

  publish(slot: number, key: TicketKey, length: number, block?: TicketBlock): void {
    const at = this.#at(slot);
    const words = this.#words;
    words[at + W_FUNCTION] = key.function;
    words[at + W_SESSION] = key.sessionNo;
    words[at + W_HI] = key.hi;
    words[at + W_LO] = key.lo;
    words[at + W_LENGTH] = length;
    words[at + W_SEGMENT] = block === undefined ? -1 : block.segment;
    if (block !== undefined) {
      this.#floats[at / 2 + W_OFFSET_F64] = block.offset;
      this.#floats[at / 2 + W_SIZE_F64] = block.size;
    }
    words[at + W_SEQ] = Atomics.add(words, NEXT_SEQ, 1) - key.stepsAhead * OFFER_STEP;
    // A thread is ended at calls and loops only: without one in between, count and state change together.
    const ready = with_(Atomics.load(words, at), READY, this.#owner);
    Atomics.add(words, READY_COUNT, 1);
    Atomics.store(words, at, ready);
  }

  /**
   * Claims the first offer whose function `accepts`: the oldest, but for the steps that each is ahead. The caller decodes it, writes its record, then calls `done`.
   */
  claim(
    accepts: (functionIndex: number) => boolean,
  ): { slot: number; body: Buffer; block: TicketBlock | undefined } | undefined {
    const words = this.#words;
    while (Atomics.load(words, READY_COUNT) > 0) {
      let best = -1;
      let bestWord = 0;
      let bestSeq = 0;
      for (let slot = 0; slot < TICKET_SLOTS; slot++) {
        const at = this.#at(slot);
        const word = Atomics.load(words, at);
        if ((word & 3) !== READY) continue;
        const seq = Atomics.load(words, at + W_SEQ);
        if (best >= 0 && ((seq - bestSeq) | 0) > 0) continue;
        if (!accepts(Atomics.load(words, at + W_FUNCTION))) continue;
        best = slot;
        bestWord = word;
        bestSeq = seq;
      }
      if (best < 0) return undefined;
      const at = this.#at(best);
      if (Atomics.compareExchange(words, at, bestWord, with_(bestWord, CLAIMED, this.#owner)) !== bestWord) continue;
      Atomics.sub(words, READY_COUNT, 1);
      const start = (at + HEADER_WORDS) * 4;
      const segment = words[at + W_SEGMENT] as number;
      return {
        slot: best,
        body: this.#buffer.subarray(start, start + (words[at + W_LENGTH] as number)),
        block:
          segment < 0
            ? undefined
            : {
                segment,
                offset: this.#floats[at / 2 + W_OFFSET_F64] as number,
                size: this.#floats[at / 2 + W_SIZE_F64] as number,
              },
      };
    }
    return undefined;
  }

  /** The claimed slot is free again (TK3), or the taken one was not needed. */
  done(slot: number): void {
    const at = this.#at(slot);
    const word = Atomics.load(this.#words, at);
    Atomics.store(this.#words, at, ((word >>> 10) + 1) << 10);
  }

  /** Takes an offer back. @returns its block, `null` if it had none, undefined when it is not on offer (any more). */
  withdraw(sessionNo: number, hi: number, lo: number): TicketBlock | null | undefined {
    const words = this.#words;
    for (let slot = 0; slot < TICKET_SLOTS; slot++) {
      const at = this.#at(slot);
      const word = Atomics.load(words, at);
      if ((word & 3) !== READY || !this.#is(at, sessionNo, hi, lo)) continue;
      if (Atomics.compareExchange(words, at, word, with_(word, CLAIMED, this.#owner)) !== word) continue;
      Atomics.sub(words, READY_COUNT, 1);
      const segment = words[at + W_SEGMENT] as number;
      const block =
        segment < 0
          ? null
          : {
              segment,
              offset: this.#floats[at / 2 + W_OFFSET_F64] as number,
              size: this.#floats[at / 2 + W_SIZE_F64] as number,
            };
      this.done(slot);
      return block;
    }
    return undefined;
  }

  /** Whether the invocation is on offer, or claimed and not yet recorded, by a thread other than `except`. */
  holds(sessionNo: number, hi: number, lo: number, except: number): boolean {
    for (let slot = 0; slot < TICKET_SLOTS; slot++) {
      const at = this.#at(slot);
      const word = Atomics.load(this.#words, at);
      const state = word & 3;
      if (state !== READY && state !== CLAIMED) continue;
      if (state === CLAIMED && ((word >>> 2) & 255) === except) continue;
      if (this.#is(at, sessionNo, hi, lo)) return true;
    }
    return false;
  }

  /** Frees what the dead thread `owner` was writing or had claimed (TK2). @returns what it had claimed, in no order. */
  sweep(owner: number): SweptTicket[] {
    const words = this.#words;
    const swept: SweptTicket[] = [];
    for (let slot = 0; slot < TICKET_SLOTS; slot++) {
      const at = this.#at(slot);
      const word = Atomics.load(words, at);
      const state = word & 3;
      if ((state !== WRITING && state !== CLAIMED) || ((word >>> 2) & 255) !== owner) continue;
      const segment = words[at + W_SEGMENT] as number;
      if (state === CLAIMED) {
        swept.push({
          sessionNo: (words[at + W_SESSION] as number) >>> 0,
          hi: (words[at + W_HI] as number) >>> 0,
          lo: (words[at + W_LO] as number) >>> 0,
          block:
            segment < 0
              ? undefined
              : {
                  segment,
                  offset: this.#floats[at / 2 + W_OFFSET_F64] as number,
                  size: this.#floats[at / 2 + W_SIZE_F64] as number,
                },
        });
      }
      this.done(slot);
    }
    return swept;
  }

  /** Bodies in the object store of everything that is on offer or being read. */
  blocks(): TicketBlock[] {
    const words = this.#words;
    const blocks: TicketBlock[] = [];
    for (let slot = 0; slot < TICKET_SLOTS; slot++) {
      const at = this.#at(slot);
      const state = Atomics.load(words, at) & 3;
      const segment = words[at + W_SEGMENT] as number;
      if ((state !== READY && state !== CLAIMED) || segment < 0) continue;
      blocks.push({
        segment,
        offset: this.#floats[at / 2 + W_OFFSET_F64] as number,
        size: this.#floats[at / 2 + W_SIZE_F64] as number,
      });
    }
    return blocks;
  }

  #is(at: number, sessionNo: number, hi: number, lo: number): boolean {
    const words = this.#words;
    return (
      (words[at + W_LO] as number) >>> 0 === lo >>> 0 &&
      (words[at + W_HI] as number) >>> 0 === hi >>> 0 &&
      (words[at + W_SESSION] as number) >>> 0 === sessionNo >>> 0
    );
  }

  #at(slot: number): number {
    return GLOBAL_WORDS + slot * SLOT_WORDS;
  }
}

function with_(word: number, state: number, owner: number): number {
  return (word & ~1023) | (owner << 2) | state;
}
