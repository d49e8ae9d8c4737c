// Objects of this host that are not small, by the block of memory that they lie in.
//
// Owns: which objects lie in which block, who holds one from outside the sessions, how many bytes are where.
// Does not own: what is moved (SpillMachine), the moving (Spiller), pages (Slab).
//
// A block is a run of pages with one object in it and perhaps others that are parts of it, or a shared page with all objects
// in it. It is freed when the last of them is gone and nobody holds it.

import {
  isSlabRef,
  isStored,
  PAGE_BYTES,
  SHARED_PAGE_OBJECT_BYTES_MAX,
  type Slab,
  type SlabRef,
  type Spilled,
  type StoredObject,
  sizeOf,
} from '../../bucket/index.ts';
import type { Session } from '../../scheduler/local/index.ts';

interface Member {
  readonly object: StoredObject;
  /** From the block's start. */
  readonly offset: number;
  /** Undefined: of no session that is known. */
  readonly session: Session | undefined;
  /** Its bytes are counted here; those of another object's part are not. */
  readonly countedBytes: number;
}

export interface ObjectBlock {
  readonly id: number;
  readonly pages: number;
  readonly isShared: boolean;
  /** What of it is written. */
  bytes: number;
  /** First page; -1 when it is not in memory. */
  page: number;
  /** Objects that memory was allocated for, gone or not. */
  owners: number;
  readonly members: Map<StoredObject, Member>;
  /** Of what the spill file has, one for each SPILL_PART_BYTES. */
  sums: number[];
  /** Sockets and readers that use it, whatever becomes of the session. */
  holds: number;
  /** Of those, who needs it in memory. */
  pins: number;
}

export interface SessionBytesCount {
  memoryBytes: number;
  spilledBytes: number;
}

export class ObjectBlocks {
  readonly #slab: Slab;
  readonly #byId = new Map<number, ObjectBlock>();
  readonly #byPage = new Map<number, ObjectBlock>();
  readonly #byObject = new Map<StoredObject, ObjectBlock>();
  #nextId = 1;
  #memoryBytes = 0;
  #spilledBytes = 0;

  constructor(slab: Slab) {
    this.#slab = slab;
  }

  /** Bytes of objects in memory; what is part of another object counts once. */
  get memoryBytes(): number {
    return this.#memoryBytes;
  }

  get spilledBytes(): number {
    return this.#spilledBytes;
  }

  /** Of the pages of all blocks in memory. */
  get pageBytes(): number {
    let pages = 0;
    for (const block of this.#byId.values()) if (block.page >= 0) pages += block.pages;
    return pages * PAGE_BYTES;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** @returns its block, and whether that is new. */
  add(object: StoredObject, session: Session | undefined): { block: ObjectBlock; isNew: boolean } | undefined {
    const { content } = object;
    if (!isSlabRef(content) || this.#byObject.has(object)) return undefined;
    const page = this.#slab.firstPageOf(content);
    let block = this.#byPage.get(page);
    // It is being written and then forgotten.
    if (block !== undefined && isUseless(block)) return undefined;
    const isNew = block === undefined;
    const isOwner = object.alias !== true;
    if (block === undefined) {
      // A part of what nobody knows: it cannot outlive it.
      if (!isOwner) return undefined;
      const isShared = content.size <= SHARED_PAGE_OBJECT_BYTES_MAX;
      block = {
        id: this.#nextId++,
        pages: isShared ? 1 : Math.ceil(content.size / PAGE_BYTES),
        isShared,
        bytes: isShared ? PAGE_BYTES : content.size,
        page,
        owners: 0,
        members: new Map(),
        sums: [],
        holds: 0,
        pins: 0,
      };
      this.#byId.set(block.id, block);
      this.#byPage.set(page, block);
    }
    if (isOwner) block.owners++;
    const offset = content.offset - this.#slab.refOfPage(page, 0, 0).offset;
    const countedBytes = isOwner ? content.size : 0;
    block.members.set(object, { object, offset, session, countedBytes });
    this.#byObject.set(object, block);
    this.#memoryBytes += countedBytes;
    return { block, isNew };
  }

  /** Nobody knows the object any more. @returns its block when that is of no use any more. */
  remove(object: StoredObject): ObjectBlock | undefined {
    const block = this.#byObject.get(object);
    const member = block?.members.get(object);
    if (block === undefined || member === undefined) return undefined;
    this.#byObject.delete(object);
    block.members.delete(object);
    if (block.page >= 0) this.#memoryBytes -= member.countedBytes;
    else this.#spilledBytes -= member.countedBytes;
    return isUseless(block) ? block : undefined;
  }

  /** @returns how to let go of it; that returns the block when it is of no use any more. */
  hold(object: StoredObject, isPin: boolean): (() => ObjectBlock | undefined) | undefined {
    const block = this.#byObject.get(object);
    if (block === undefined) return undefined;
    block.holds++;
    if (isPin) block.pins++;
    return () => {
      block.holds--;
      if (isPin) block.pins--;
      return isUseless(block) ? block : undefined;
    };
  }

  get(id: number): ObjectBlock | undefined {
    return this.#byId.get(id);
  }

  of(object: StoredObject): ObjectBlock | undefined {
    return this.#byObject.get(object);
  }

  /** Where in its block the object begins. */
  offsetOf(object: StoredObject): number {
    return this.#byObject.get(object)?.members.get(object)?.offset ?? 0;
  }

  all(): IterableIterator<ObjectBlock> {
    return this.#byId.values();
  }

  /** Sessions with objects here, with their bytes. */
  bySession(): Map<Session | undefined, SessionBytesCount> {
    const counts = new Map<Session | undefined, SessionBytesCount>();
    for (const { page, members } of this.#byId.values()) {
      for (const { session, countedBytes } of members.values()) {
        let count = counts.get(session);
        if (count === undefined) {
          count = { memoryBytes: 0, spilledBytes: 0 };
          counts.set(session, count);
        }
        if (page >= 0) count.memoryBytes += countedBytes;
        else count.spilledBytes += countedBytes;
      }
    }
    return counts;
  }

  /** The whole block in memory. */
  view({ page, bytes }: ObjectBlock): Uint8Array {
    return this.#slab.view(this.#slab.refOfPage(page, 0, bytes));
  }

  /** Its memory is free: the spill file has it. */
  leaveMemory(block: ObjectBlock): void {
    this.#slab.freePages(block.page, block.pages, block.owners);
    this.#byPage.delete(block.page);
    block.page = -1;
    for (const { object, countedBytes } of block.members.values()) {
      this.#memoryBytes -= countedBytes;
      this.#spilledBytes += countedBytes;
      setContent(object, { spilled: true, size: sizeOf(object) });
    }
  }

  /** Its bytes are in these pages again. */
  enterMemory(block: ObjectBlock, page: number): void {
    block.page = page;
    this.#byPage.set(page, block);
    for (const { object, offset, countedBytes } of block.members.values()) {
      this.#spilledBytes -= countedBytes;
      this.#memoryBytes += countedBytes;
      setContent(object, this.#slab.refOfPage(page, offset, sizeOf(object)));
    }
  }

  /** It is not known any more; its memory is free. */
  forget(block: ObjectBlock): void {
    this.#byId.delete(block.id);
    if (block.page < 0) return;
    this.#byPage.delete(block.page);
    this.#slab.freePages(block.page, block.pages, block.owners);
  }

  /** Every allocation in it is known: no thread goes on filling its page. */
  isComplete(block: ObjectBlock): boolean {
    return this.#slab.liveOf(block.page) === block.owners;
  }

  /** A place for each allocation that is known, for the sweep after a dead thread. */
  *places(): Generator<SlabRef> {
    for (const { page, pages, isShared, owners } of this.#byId.values()) {
      if (page < 0) continue;
      const place = this.#slab.refOfPage(page, 0, isShared ? 1 : pages * PAGE_BYTES);
      for (let i = 0; i < owners; i++) yield place;
    }
  }
}

/** Whether its bytes are in memory or with it. */
export function isAtHand(object: StoredObject): boolean {
  return !isStored(object.content) || isSlabRef(object.content);
}

function isUseless(block: ObjectBlock): boolean {
  return block.members.size === 0 && block.holds === 0;
}

/** The bytes of an object never change; where they are does. */
function setContent(object: StoredObject, content: SlabRef | Spilled): void {
  (object as { content: SlabRef | Spilled }).content = content;
}
