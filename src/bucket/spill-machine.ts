// Which bytes of the object store lie in memory, which on disk, and which move.
//
// Owns: where each block is, what is written and read now, places in the spill file, who waits for what.
// Does not own: the bytes and their I/O (driver), memory itself (Slab), who uses an object (driver, by `useOf`).
//
//            write ok                     read ok
//   memory ───────────▶ memory and file ◀───────── file
//                             │ drop                ▲
//                             └─────────────────────┘
//
// SP1. A block in use, or one that somebody waits for, stays in memory.
// SP2. The only copy of a block is never dropped: from memory it goes when the file has it, and from the file when nobody
//      needs it any more.
// SP3. What is in the file, or on its way there, is at most `fileBytesMax`.
// SP4. Whoever waits is served or refused: a handler that runs before invocations that do not run yet, else in order. When
//      nothing moves and memory is short, the first goes above the budget, alone.
//
// Objects do not change, so what the file has once stays right: a block that is used again is dropped later without a write.

import { assert, type ErrorData } from '../base/index.ts';
import { Extents, roomOf } from './extents.ts';
import { SPILL_HIGH_SHARE, SPILL_LOW_SHARE, SPILL_RETRY_MS, SPILL_UNDER_WAY_BYTES } from './limits.ts';

/** `queued`: an invocation that waits will need it. `idle`: nobody does for now. */
export type BlockUse = 'used' | 'queued' | 'idle';

export interface SpillView {
  /** Of the slab, whoever uses it. */
  readonly usedBytes: number;
  readonly budgetBytes: number;
  /** What the slab holds at the most. */
  readonly capacityBytes: number;
  /** Somebody waits for room of this size. */
  readonly askedBytes: number;
  /** Bears for the blocks that are asked for in this call. */
  readonly useOf: (block: number) => BlockUse;
  /** What was brought back above the budget has not been used up. */
  readonly isOverBudget: boolean;
  readonly nowMs: number;
}

export type SpillEffect =
  | { readonly type: 'write'; readonly block: number; readonly at: number }
  /** Memory first, then its bytes. */
  | { readonly type: 'read'; readonly block: number; readonly at: number; readonly isOverBudget: boolean }
  /** Its memory is free; the file has it. */
  | { readonly type: 'drop'; readonly block: number }
  | { readonly type: 'loaded'; readonly request: number; readonly isOverBudget: boolean }
  | { readonly type: 'refused'; readonly request: number; readonly error: ErrorData }
  /** Nobody needs it any more: whatever memory it has is free. */
  | { readonly type: 'forget'; readonly block: number };

interface Block {
  readonly id: number;
  /** What it takes in memory. */
  readonly memoryBytes: number;
  /** What is written of it. */
  readonly bytes: number;
  isInMemory: boolean;
  /** Its place in the file; -1 = none. */
  at: number;
  moves: 'no' | 'out' | 'in';
  /** Requests that wait for it. */
  waiters: number;
  isRemoved: boolean;
}

interface Request {
  readonly id: number;
  readonly blocks: readonly number[];
  /** Asked by a handler that runs. */
  readonly isUrgent: boolean;
  isOverBudget: boolean;
}

export class SpillMachine {
  readonly #fileBytesMax: number;
  readonly #blocks = new Map<number, Block>();
  readonly #extents = new Extents();
  #requests: Request[] = [];
  #effects: SpillEffect[] = [];
  /** Of blocks that are being written. */
  #outBytes = 0;
  #movesIn = 0;
  /** Nothing is written before. */
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #isFileFull = false;

  /** @param fileBytesMax of the spill file. */
  constructor(fileBytesMax: number) {
    this.#fileBytesMax = fileBytesMax;
  }

  /** Bytes that are in the file, or on their way there. */
  get fileBytes(): number {
    return this.#extents.usedBytes;
  }

  /** Where the file may be cut. */
  get fileEndBytes(): number {
    return this.#extents.endBytes;
  }

  get moves(): boolean {
    return this.#outBytes > 0 || this.#movesIn > 0;
  }

  get requestCount(): number {
    return this.#requests.length;
  }

  /** The last plan found no room in the file for what it would have written. */
  get isFileFull(): boolean {
    return this.#isFileFull;
  }

  isInMemory(block: number): boolean {
    return this.#block(block).isInMemory;
  }

  isInFile(block: number): boolean {
    const { at, moves } = this.#block(block);
    return at >= 0 && moves !== 'out';
  }

  /** Undefined while the file does not have it. */
  placeOf(block: number): number | undefined {
    return this.isInFile(block) ? this.#block(block).at : undefined;
  }

  /** Its bytes are in memory. */
  add(id: number, memoryBytes: number, bytes: number): void {
    assert(!this.#blocks.has(id), 'a block is added once');
    this.#blocks.set(id, {
      id,
      memoryBytes,
      bytes,
      isInMemory: true,
      at: -1,
      moves: 'no',
      waiters: 0,
      isRemoved: false,
    });
  }

  /** Nobody needs it any more. */
  remove(id: number): SpillEffect[] {
    this.#effects = [];
    const block = this.#block(id);
    block.isRemoved = true;
    for (const request of this.#requests.filter(({ blocks }) => blocks.includes(id))) {
      this.#refuse(request, { code: 'E_OBJECT_GONE', message: 'the object was freed while it was brought back' });
    }
    if (block.moves === 'no') this.#forget(block);
    return this.#effects;
  }

  /** `loaded` or `refused` follows, unless it is cancelled. @param isUrgent a handler that runs waits for it. */
  want(request: number, blocks: readonly number[], isUrgent: boolean): void {
    for (const id of blocks) this.#block(id).waiters++;
    const asked: Request = { id: request, blocks, isUrgent, isOverBudget: false };
    const place = isUrgent ? this.#requests.findIndex((other) => !other.isUrgent) : -1;
    if (place < 0) this.#requests.push(asked);
    else this.#requests.splice(place, 0, asked);
  }

  cancel(request: number): void {
    const found = this.#requests.find(({ id }) => id === request);
    if (found !== undefined) this.#leave(found);
  }

  wrote(id: number, error?: ErrorData, nowMs = 0): SpillEffect[] {
    this.#effects = [];
    const block = this.#block(id);
    assert(block.moves === 'out', 'what was written was on its way out');
    block.moves = 'no';
    this.#outBytes -= block.memoryBytes;
    if (error !== undefined) {
      // (SP2) It is in memory as before.
      this.#extents.give(block.at, block.bytes);
      block.at = -1;
      this.#notBeforeMs = nowMs + SPILL_RETRY_MS;
    }
    if (block.isRemoved) this.#forget(block);
    return this.#effects;
  }

  /** @param error no memory, or bytes that cannot be read: whoever waits for them is told. */
  wasRead(id: number, error?: ErrorData): SpillEffect[] {
    this.#effects = [];
    const block = this.#block(id);
    assert(block.moves === 'in', 'what was read was on its way in');
    block.moves = 'no';
    this.#movesIn--;
    block.isInMemory = error === undefined;
    if (error !== undefined) {
      for (const request of this.#requests.filter(({ blocks }) => blocks.includes(id))) this.#refuse(request, error);
    }
    if (block.isRemoved) this.#forget(block);
    return this.#effects;
  }

  /** There was no memory for it after all: it is tried again. */
  readDenied(id: number): SpillEffect[] {
    this.#effects = [];
    const block = this.#block(id);
    assert(block.moves === 'in', 'what was to be read was on its way in');
    block.moves = 'no';
    this.#movesIn--;
    if (block.isRemoved) this.#forget(block);
    return this.#effects;
  }

  /** Decides what to move now. Call it when anything has changed. */
  plan(view: SpillView): SpillEffect[] {
    this.#effects = [];
    let usedBytes = view.usedBytes;
    const first = this.#requests[0];
    const missing = first === undefined ? 0 : this.#missingBytes(first);
    const isShort = view.askedBytes > 0 || usedBytes > view.budgetBytes * SPILL_HIGH_SHARE;
    const aimBytes = view.budgetBytes * (isShort ? SPILL_LOW_SHARE : 1);
    this.#isFileFull = false;
    if (isShort || missing > 0) usedBytes -= this.#makeRoom(usedBytes + view.askedBytes + missing - aimBytes, view);
    let isOverBudget = view.isOverBudget;
    while (this.#requests.length > 0) {
      const request = this.#requests[0] as Request;
      const need = this.#missingBytes(request);
      if (need === 0) {
        if (request.blocks.some((id) => !this.#block(id).isInMemory)) break; // under way
        this.#leave(request);
        this.#effects.push({ type: 'loaded', request: request.id, isOverBudget: request.isOverBudget });
        continue;
      }
      if (need > view.capacityBytes || this.#isStuck(request, usedBytes + need, view)) {
        this.#refuse(request, tooMuch(need, view));
        continue;
      }
      if (usedBytes + need > view.budgetBytes) {
        // (SP4)
        const mayExceed = request.isUrgent || !isOverBudget;
        if (this.#outBytes > 0 || !mayExceed || usedBytes + need > view.capacityBytes) break;
        request.isOverBudget = !request.isUrgent;
        isOverBudget ||= request.isOverBudget;
      }
      usedBytes += need;
      for (const id of new Set(request.blocks)) this.#bringIn(this.#block(id), usedBytes > view.budgetBytes);
    }
    return this.#effects;
  }

  /** Recounts (SP1) to (SP3); tests and the simulator call it after every event. */
  checkInvariants(): void {
    let fileBytes = 0;
    let outBytes = 0;
    const waiters = new Map<number, number>();
    for (const { blocks } of this.#requests) for (const id of blocks) waiters.set(id, (waiters.get(id) ?? 0) + 1);
    for (const block of this.#blocks.values()) {
      if (block.at >= 0) fileBytes += roomOf(block.bytes);
      if (block.moves === 'out') outBytes += block.memoryBytes;
      assert(block.isInMemory || block.at >= 0, 'every block is somewhere (SP2)');
      assert(block.waiters === (waiters.get(block.id) ?? 0), 'waiters are counted');
      assert(!block.isRemoved || block.moves !== 'no', 'a removed block is forgotten unless it moves');
    }
    assert(fileBytes === this.#extents.usedBytes, 'places in the file add up');
    assert(fileBytes <= this.#fileBytesMax, 'the file is within its limit (SP3)');
    assert(outBytes === this.#outBytes, 'what is written is counted');
  }

  /** @returns the bytes that are free at once. */
  #makeRoom(wantedBytes: number, view: SpillView): number {
    let freed = 0;
    let coming = 0;
    const idle: Block[] = [];
    const queued: Block[] = [];
    if (wantedBytes <= 0) return 0;
    for (const block of this.#blocks.values()) {
      if (!block.isInMemory || block.isRemoved || block.waiters > 0) continue;
      const use = view.useOf(block.id);
      if (use === 'used') continue; // (SP1)
      if (block.moves === 'out') coming += block.memoryBytes;
      else if (block.moves === 'no') (use === 'idle' ? idle : queued).push(block);
    }
    // Nobody waits for the idle ones: the oldest first. Of the others the last in the queue is needed last.
    const order = [...largeFirst(idle, wantedBytes), ...largeFirst(queued.reverse(), wantedBytes)];
    for (const block of order) {
      if (freed >= wantedBytes) return freed;
      if (block.at < 0) continue;
      block.isInMemory = false;
      this.#effects.push({ type: 'drop', block: block.id });
      freed += block.memoryBytes;
    }
    if (view.nowMs < this.#notBeforeMs) return freed;
    for (const block of order) {
      if (freed + coming >= wantedBytes || this.#outBytes >= SPILL_UNDER_WAY_BYTES) break;
      if (block.at >= 0) continue;
      if (this.#extents.usedBytes + roomOf(block.bytes) > this.#fileBytesMax) {
        this.#isFileFull = true;
        continue; // (SP3)
      }
      block.at = this.#extents.take(block.bytes);
      block.moves = 'out';
      this.#outBytes += block.memoryBytes;
      coming += block.memoryBytes;
      this.#effects.push({ type: 'write', block: block.id, at: block.at });
    }
    return freed;
  }

  #bringIn(block: Block, isOverBudget: boolean): void {
    if (block.isInMemory || block.moves === 'in') return;
    block.moves = 'in';
    this.#movesIn++;
    this.#effects.push({ type: 'read', block: block.id, at: block.at, isOverBudget });
  }

  #missingBytes({ blocks }: Request): number {
    let sum = 0;
    for (const id of new Set(blocks)) {
      const block = this.#block(id);
      if (!block.isInMemory && block.moves === 'no') sum += block.memoryBytes;
    }
    return sum;
  }

  /** Nothing that moves or runs will make room for so much. */
  #isStuck({ isUrgent }: Request, wantedBytes: number, { capacityBytes, useOf, nowMs }: SpillView): boolean {
    if (wantedBytes <= capacityBytes || this.moves) return false;
    if (isUrgent) return true;
    if (!this.#isFileFull && nowMs >= this.#notBeforeMs) return false;
    for (const { id, isInMemory } of this.#blocks.values()) if (isInMemory && useOf(id) === 'used') return false;
    return true;
  }

  #refuse(request: Request, error: ErrorData): void {
    this.#leave(request);
    this.#effects.push({ type: 'refused', request: request.id, error });
  }

  #leave(request: Request): void {
    this.#requests = this.#requests.filter((other) => other !== request);
    for (const id of request.blocks) this.#block(id).waiters--;
  }

  #forget(block: Block): void {
    assert(block.waiters === 0, 'nobody waits for what nobody needs');
    if (block.at >= 0) this.#extents.give(block.at, block.bytes);
    this.#blocks.delete(block.id);
    this.#effects.push({ type: 'forget', block: block.id });
  }

  #block(id: number): Block {
    const block = this.#blocks.get(id);
    assert(block !== undefined, 'a block is known until it is forgotten');
    return block;
  }
}

/** In their order, but those that would hardly help come last. */
function largeFirst(blocks: readonly Block[], wantedBytes: number): Block[] {
  const isLarge = ({ memoryBytes }: Block) => memoryBytes * 64 >= wantedBytes;
  return [...blocks.filter(isLarge), ...blocks.filter((block) => !isLarge(block))];
}

function tooMuch(needBytes: number, { capacityBytes, budgetBytes }: SpillView): ErrorData {
  return {
    code: 'E_QUOTA_EXCEEDED',
    message:
      `${needBytes} bytes of objects must be brought back into memory at once, and the object store holds ` +
      `${capacityBytes} bytes at the most: take fewer objects at once, or raise objectBytesMax (now ${budgetBytes}) or ` +
      'objectOverBytesMax in the server configuration',
    details: { limitBytes: capacityBytes },
    retryAfterMs: 1_000,
  };
}
