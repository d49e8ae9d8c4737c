// Memory of the object store: pages of shared memory, claimed by compare-and-swap from any thread of the app host.
//
// Owns: which page belongs to whom, how many live objects a shared page has.
// Does not own: what an object is, or when it dies (the host frees, see `SessionMachine`).
//
//   segment (growable SharedArrayBuffer)  ┌ page 0 ┬ page 1 ┬ page 2 ┬ … 64 KiB each
//   owner[page]   0 = free, else the owner's number (host 1, instances 2, 3, …)
//   live[page]    shared page: objects alive in it, +1 while its owner still fills it; run: 1 on its first page
//
// SL1. A page is free exactly when owner[page] is 0; only a compare-and-swap from 0 takes it.
// SL2. A shared page becomes free when live[page] drops to 0; the owner's +1 keeps it while it is being filled.
// SL3. `usedPages` never exceeds the capacity; an allocation beyond it is refused before any page is touched. Above the
//      budget an instance first asks the host for room and waits a while (`ask`); the host itself waits for nobody.
// SL4. No thread waits for another: one that dies in the middle leaves pages that bear its number, and `sweep` takes
//      back those in which the host knows no object.
// SL5. Pages are reused from the lowest on: what was never touched stays untouched, so that resident memory follows what
//      is in use at the most, not what was ever allocated. `hint` is a page below which hardly any is free.

import { assert, PlatformError } from '../base/index.ts';
import {
  BUDGET_WAIT_MS,
  CAPACITY_WAIT_MS,
  PAGE_BYTES,
  ROOM_LOOK_MS,
  SEGMENT_BYTES_MAX,
  SEGMENT_GROW_BYTES,
  SEGMENTS_MAX,
  SHARED_PAGE_OBJECT_BYTES_MAX,
} from './limits.ts';

/** Where bytes lie. Plain data, so that it can go into messages. */
export interface SlabRef {
  readonly segment: number;
  /** Bytes from the segment's start, a multiple of 8. */
  readonly offset: number;
  readonly size: number;
}

/** What threads share; goes through `workerData`. */
export interface SlabMemory {
  readonly segments: readonly SharedArrayBuffer[];
  /** Per segment: owner and live words of each page. */
  readonly pages: SharedArrayBuffer;
  /** See the words below. */
  readonly counters: SharedArrayBuffer;
  readonly pagesPerSegment: number;
}

const USED = 0;
const BUDGET = 1;
const HINT = 2;
/** Pages that there are at the most; what is above the budget is for what cannot be spilled. */
const CAPACITY = 3;
/** Counts who asked for room, and up to which of them the host has said that there is none. */
const ASKS = 4;
const ANSWERED = 5;
/** The most pages that anybody asked for since the host looked. */
const ASKED_PAGES = 6;
/** Changes when room was made or denied: who waits, waits on it. */
const ROOM = 7;
/** Why nothing is spilled, as an index into SPILL_TROUBLES. */
const TROUBLE = 8;

/** What the host says of its spill file; for the message of a refusal. */
export const SPILL_TROUBLES = ['none', 'full', 'failing'] as const;
export type SpillTrouble = (typeof SPILL_TROUBLES)[number];
const TROUBLE_TEXTS: Readonly<Record<SpillTrouble, string>> = {
  none: 'and what is in use cannot be spilled',
  full: 'and the spill file has reached spillBytesMax',
  failing: 'and the disk does not take what is spilled (the log of the server says why)',
};

/**
 * @param budgetBytes rounded up to whole pages.
 * @param overBytes what may be in use above the budget; both together at most SEGMENTS_MAX × SEGMENT_BYTES_MAX.
 */
export function createSlabMemory(budgetBytes: number, overBytes = 0): SlabMemory {
  const budgetPages = Math.max(1, Math.ceil(budgetBytes / PAGE_BYTES));
  const capacityPages = budgetPages + Math.ceil(overBytes / PAGE_BYTES);
  const segmentCount = Math.ceil((capacityPages * PAGE_BYTES) / SEGMENT_BYTES_MAX);
  assert(segmentCount <= SEGMENTS_MAX, 'the object store has at most SEGMENTS_MAX segments');
  const pagesPerSegment = Math.min(capacityPages, SEGMENT_BYTES_MAX / PAGE_BYTES);
  const segments = Array.from({ length: segmentCount }, () => growable(pagesPerSegment * PAGE_BYTES));
  const counters = new SharedArrayBuffer(64);
  const words = new Int32Array(counters);
  words[BUDGET] = budgetPages;
  words[CAPACITY] = capacityPages;
  return { segments, pages: new SharedArrayBuffer(segmentCount * pagesPerSegment * 8), counters, pagesPerSegment };
}

function growable(maxByteLength: number): SharedArrayBuffer {
  const Growable = SharedArrayBuffer as unknown as new (
    size: number,
    options: { maxByteLength: number },
  ) => SharedArrayBuffer;
  return new Growable(Math.min(SEGMENT_GROW_BYTES, maxByteLength), { maxByteLength });
}

type Growable = SharedArrayBuffer & { grow(size: number): void; readonly maxByteLength: number };

/** How a thread waits for room. */
export interface RoomWait {
  /** Tells the host that somebody waits. */
  ring(): void;
  /** Stops this thread while the word has `value`, `timeoutMs` at the longest. */
  block(words: Int32Array, index: number, value: number, timeoutMs: number): void;
}

export class Slab {
  readonly memory: SlabMemory;
  readonly #owner: Int32Array;
  readonly #live: Int32Array;
  readonly #counters: Int32Array;
  readonly #ownerNumber: number;
  readonly #pageCount: number;
  readonly #roomWait: RoomWait | undefined;
  /** Shared page that this thread fills now; -1 = none. */
  #page = -1;
  #pageFilled = 0;

  /**
   * @param ownerNumber 1 for the host, 2 and up for instances; unique among live threads.
   * @param roomWait undefined: this thread never waits for room (the host).
   */
  constructor(memory: SlabMemory, ownerNumber: number, roomWait?: RoomWait) {
    this.#roomWait = roomWait;
    assert(ownerNumber > 0, 'an owner has a number above 0');
    this.memory = memory;
    this.#pageCount = memory.segments.length * memory.pagesPerSegment;
    const words = new Int32Array(memory.pages);
    this.#owner = words.subarray(0, this.#pageCount);
    this.#live = words.subarray(this.#pageCount);
    this.#counters = new Int32Array(memory.counters);
    this.#ownerNumber = ownerNumber;
  }

  get usedBytes(): number {
    return Atomics.load(this.#counters, USED) * PAGE_BYTES;
  }

  get budgetBytes(): number {
    return Atomics.load(this.#counters, BUDGET) * PAGE_BYTES;
  }

  /** What can be in use at the most. */
  get capacityBytes(): number {
    return Atomics.load(this.#counters, CAPACITY) * PAGE_BYTES;
  }

  /** Somebody waits for room: tells the host for how much, once, and which `answer` would turn down all who wait now. */
  get asked(): { readonly bytes: number; readonly asks: number } | undefined {
    const asks = Atomics.load(this.#counters, ASKS);
    if (asks === Atomics.load(this.#counters, ANSWERED)) return undefined;
    return { bytes: Atomics.exchange(this.#counters, ASKED_PAGES, 0) * PAGE_BYTES, asks };
  }

  get anybodyAsks(): boolean {
    return this.asks !== Atomics.load(this.#counters, ANSWERED);
  }

  /** Counts up whenever somebody asks for room. */
  get asks(): number {
    return Atomics.load(this.#counters, ASKS);
  }

  /** There is more room: whoever waits looks. */
  tellRoom(): void {
    Atomics.add(this.#counters, ROOM, 1);
    Atomics.notify(this.#counters, ROOM);
  }

  /** Nothing can be spilled for those who asked. */
  answer(asks: number, trouble: SpillTrouble): void {
    Atomics.store(this.#counters, TROUBLE, SPILL_TROUBLES.indexOf(trouble));
    Atomics.store(this.#counters, ANSWERED, asks);
    this.tellRoom();
  }

  /**
   * Takes memory for `size` bytes; its content is whatever was there. Above the budget an instance waits for room first.
   * @throws E_QUOTA_EXCEEDED when the capacity is used up.
   */
  allocate(size: number): SlabRef {
    assert(size >= 0 && Number.isSafeInteger(size), 'a size is a whole number of bytes');
    if (size <= SHARED_PAGE_OBJECT_BYTES_MAX) return this.#allocateShared(size);
    const pages = Math.ceil(size / PAGE_BYTES);
    this.#charge(pages, size);
    const first = this.#claimRun(pages);
    if (first < 0) {
      Atomics.sub(this.#counters, USED, pages);
      throw this.#full(size);
    }
    Atomics.store(this.#live, first, 1);
    return this.#refOf(first, 0, size);
  }

  /** Any thread may free; exactly once per allocation. */
  free(ref: SlabRef): void {
    const first = this.#pageOf(ref);
    assert(Atomics.load(this.#owner, first) !== 0, 'what is freed was allocated');
    if (ref.size <= SHARED_PAGE_OBJECT_BYTES_MAX) {
      this.#release(first);
      return;
    }
    const pages = Math.ceil(ref.size / PAGE_BYTES);
    Atomics.store(this.#live, first, 0);
    for (let page = first; page < first + pages; page++) Atomics.store(this.#owner, page, 0);
    Atomics.sub(this.#counters, USED, pages);
    this.#lowerHint(first);
  }

  /** Number of the page at which the run begins that these bytes are in; of a shared page, that page. */
  firstPageOf(ref: SlabRef): number {
    let page = this.#pageOf(ref);
    while (page > 0 && Atomics.load(this.#live, page) === 0) page--;
    return page;
  }

  /** The place of `size` bytes from the beginning of a page on. */
  refOfPage(page: number, inPage: number, size: number): SlabRef {
    return this.#refOf(page, inPage, size);
  }

  /** Objects alive in a shared page, one more while it is being filled; of a run 1. */
  liveOf(page: number): number {
    return Atomics.load(this.#live, page);
  }

  /**
   * Whole pages, with `live` objects in them: what `freePages` takes back.
   * @throws E_QUOTA_EXCEEDED when the capacity is used up.
   */
  allocatePages(pages: number, live: number): number {
    this.#charge(pages, pages * PAGE_BYTES);
    const first = this.#claimRun(pages);
    if (first < 0) {
      Atomics.sub(this.#counters, USED, pages);
      throw this.#full(pages * PAGE_BYTES);
    }
    Atomics.store(this.#live, first, live);
    return first;
  }

  /** `live` objects of these pages are gone. */
  freePages(first: number, pages: number, live: number): void {
    assert(Atomics.load(this.#owner, first) !== 0, 'what is freed was allocated');
    if (Atomics.sub(this.#live, first, live) !== live) return;
    for (let page = first; page < first + pages; page++) Atomics.store(this.#owner, page, 0);
    Atomics.sub(this.#counters, USED, pages);
    this.#lowerHint(first);
  }

  /** A view of the bytes, no copy. */
  view(ref: SlabRef): Uint8Array {
    return new Uint8Array(this.#segment(ref), ref.offset, ref.size);
  }

  /** The same as a Buffer. */
  buffer(ref: SlabRef): Buffer {
    return Buffer.from(this.#segment(ref) as unknown as ArrayBuffer, ref.offset, ref.size);
  }

  /** The place of memory that is part of this store, so that it can be passed on without a copy; else undefined. */
  refOf(bytes: Uint8Array): SlabRef | undefined {
    const segment = this.memory.segments.indexOf(bytes.buffer as unknown as SharedArrayBuffer);
    if (segment < 0) return undefined;
    return { segment, offset: bytes.byteOffset, size: bytes.byteLength };
  }

  /**
   * After the thread `ownerNumber` died (SL4): its pages are taken back but for the objects in `known`.
   * Call only when everything that the thread reported has been read.
   */
  sweep(ownerNumber: number, known: Iterable<SlabRef>): void {
    const alive = new Map<number, number>();
    for (const ref of known) {
      const page = this.#pageOf(ref);
      const shared = ref.size <= SHARED_PAGE_OBJECT_BYTES_MAX;
      const pages = shared ? 1 : Math.ceil(ref.size / PAGE_BYTES);
      for (let i = 0; i < pages; i++) alive.set(page + i, (alive.get(page + i) ?? 0) + 1);
    }
    for (let page = 0; page < this.#pageCount; page++) {
      if (Atomics.load(this.#owner, page) !== ownerNumber) continue;
      const count = alive.get(page) ?? 0;
      Atomics.store(this.#live, page, count);
      if (count > 0) continue;
      Atomics.store(this.#owner, page, 0);
      Atomics.sub(this.#counters, USED, 1);
      this.#lowerHint(page);
    }
  }

  /** Recounts from scratch; for tests and the simulator: (SL1) to (SL3). */
  checkInvariants(): void {
    let used = 0;
    for (let page = 0; page < this.#pageCount; page++) if (Atomics.load(this.#owner, page) !== 0) used++;
    assert(used === Atomics.load(this.#counters, USED), 'usedPages counts the pages that have an owner');
    assert(used <= Atomics.load(this.#counters, CAPACITY), 'usedPages is within the capacity');
  }

  #allocateShared(size: number): SlabRef {
    const room = (Math.max(size, 1) + 7) & ~7;
    if (this.#page < 0 || this.#pageFilled + room > PAGE_BYTES) {
      this.#charge(1, size);
      const page = this.#claimRun(1);
      if (page < 0) {
        Atomics.sub(this.#counters, USED, 1);
        throw this.#full(size);
      }
      Atomics.store(this.#live, page, 1);
      const before = this.#page;
      this.#page = page;
      this.#pageFilled = 0;
      if (before >= 0) this.#release(before);
    }
    Atomics.add(this.#live, this.#page, 1);
    const ref = this.#refOf(this.#page, this.#pageFilled, size);
    this.#pageFilled += room;
    return ref;
  }

  #release(page: number): void {
    if (Atomics.sub(this.#live, page, 1) !== 1) return;
    Atomics.store(this.#owner, page, 0);
    Atomics.sub(this.#counters, USED, 1);
    this.#lowerHint(page);
  }

  #lowerHint(page: number): void {
    for (let hint = Atomics.load(this.#counters, HINT); page < hint; ) {
      const seen = Atomics.compareExchange(this.#counters, HINT, hint, page);
      if (seen === hint) return;
      hint = seen;
    }
  }

  /** (SL3) */
  #charge(pages: number, size: number): void {
    if (this.#take(pages, BUDGET)) return;
    const wait = this.#roomWait;
    if (wait !== undefined && this.#ask(wait, pages, BUDGET, BUDGET_WAIT_MS) && this.#take(pages, BUDGET)) return;
    if (this.#take(pages, CAPACITY)) return;
    if (wait !== undefined && pages <= Atomics.load(this.#counters, CAPACITY)) {
      while (this.#ask(wait, pages, CAPACITY, CAPACITY_WAIT_MS)) if (this.#take(pages, CAPACITY)) return;
    }
    throw this.#full(size);
  }

  #take(pages: number, limit: number): boolean {
    if (Atomics.add(this.#counters, USED, pages) + pages <= Atomics.load(this.#counters, limit)) return true;
    Atomics.sub(this.#counters, USED, pages);
    return false;
  }

  /** Asks the host for room and waits. @returns whether there is some; false: it has none, or it took too long. */
  #ask(wait: RoomWait, pages: number, limit: number, waitMsMax: number): boolean {
    const words = this.#counters;
    for (let most = Atomics.load(words, ASKED_PAGES); most < pages; most = Atomics.load(words, ASKED_PAGES)) {
      if (Atomics.compareExchange(words, ASKED_PAGES, most, pages) === most) break;
    }
    const ask = (Atomics.add(words, ASKS, 1) + 1) | 0;
    wait.ring();
    for (let waitedMs = 0; waitedMs < waitMsMax; ) {
      const room = Atomics.load(words, ROOM);
      if (Atomics.load(words, USED) + pages <= Atomics.load(words, limit)) return true;
      if (((Atomics.load(words, ANSWERED) - ask) | 0) >= 0) return false;
      wait.block(words, ROOM, room, ROOM_LOOK_MS);
      // Whoever is told of room waits for his turn, not for the disk.
      if (Atomics.load(words, ROOM) === room) waitedMs += ROOM_LOOK_MS;
    }
    return false;
  }

  #full(size: number): PlatformError {
    const { capacityBytes, budgetBytes, usedBytes } = this;
    const trouble = SPILL_TROUBLES[Atomics.load(this.#counters, TROUBLE)] ?? 'none';
    return new PlatformError(
      'E_QUOTA_EXCEEDED',
      `the object store is full: ${size} bytes do not fit, ${usedBytes} of ${capacityBytes} bytes are in use ` +
        `(objectBytesMax ${budgetBytes}, the rest objectOverBytesMax), ${TROUBLE_TEXTS[trouble]}. ` +
        'Let sessions end, send less at once, or raise these limits in the server configuration',
      { retryAfterMs: 1_000, details: { limitBytes: capacityBytes, usedBytes } },
    );
  }

  /** @returns the first of `pages` neighbours that are ours now (SL1), or -1. */
  #claimRun(pages: number): number {
    const start = Atomics.load(this.#counters, HINT);
    const found = this.#claimBetween(start, this.#pageCount, pages);
    const first = found >= 0 ? found : this.#claimBetween(0, this.#pageCount, pages);
    if (first < 0) return -1;
    // A run may have left smaller gaps behind it. Who freed a page meanwhile has lowered the hint: it stays.
    if (pages === 1 || first === start) Atomics.compareExchange(this.#counters, HINT, start, first + pages);
    this.#grow(first, pages);
    return first;
  }

  #claimBetween(from: number, to: number, pages: number): number {
    const perSegment = this.memory.pagesPerSegment;
    let run = 0;
    for (let page = from; page < to; page++) {
      if (page % perSegment === 0) run = this.#giveBack(page, run);
      if (Atomics.load(this.#owner, page) !== 0) {
        run = this.#giveBack(page, run);
        continue;
      }
      if (Atomics.compareExchange(this.#owner, page, 0, this.#ownerNumber) !== 0) {
        run = this.#giveBack(page, run);
        continue;
      }
      if (++run === pages) return page - pages + 1;
    }
    this.#giveBack(to, run);
    return -1;
  }

  /** Frees the `run` pages before `page` that were claimed on the way. */
  #giveBack(page: number, run: number): 0 {
    for (let i = page - run; i < page; i++) Atomics.store(this.#owner, i, 0);
    if (run > 0) this.#lowerHint(page - run);
    return 0;
  }

  #grow(first: number, pages: number): void {
    const segment = this.memory.segments[Math.floor(first / this.memory.pagesPerSegment)] as Growable;
    const end = ((first % this.memory.pagesPerSegment) + pages) * PAGE_BYTES;
    while (segment.byteLength < end) {
      const wanted = Math.min(segment.maxByteLength, Math.ceil(end / SEGMENT_GROW_BYTES) * SEGMENT_GROW_BYTES);
      try {
        segment.grow(wanted);
      } catch {
        // Another thread grew it beyond `wanted` in between; look again.
        if (segment.byteLength < end && segment.byteLength >= wanted) throw new Error('the segment cannot grow');
      }
    }
  }

  #refOf(page: number, inPage: number, size: number): SlabRef {
    const perSegment = this.memory.pagesPerSegment;
    return {
      segment: Math.floor(page / perSegment),
      offset: (page % perSegment) * PAGE_BYTES + inPage,
      size,
    };
  }

  #pageOf(ref: SlabRef): number {
    return ref.segment * this.memory.pagesPerSegment + Math.floor(ref.offset / PAGE_BYTES);
  }

  #segment(ref: SlabRef): SharedArrayBuffer {
    const segment = this.memory.segments[ref.segment];
    assert(segment !== undefined, 'a reference names a segment of this store');
    return segment;
  }
}
