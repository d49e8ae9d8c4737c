// Spills objects that nobody uses when memory is short, and brings them back: the driver of SpillMachine.
//
// Owns: the spill file, checksums of what is in it, requests for objects that are on disk, who is told that there is room.
// Does not own: what moves when (SpillMachine), which object lies where (ObjectBlocks), who uses what (`markUses`).
//
// HO5. The scheduling loop waits for no disk: it sums and hands over one part (SPILL_PART_BYTES) at a time.

import { crc32 } from 'node:zlib';
import { type ErrorData, fromErrorData, PlatformError, toErrorData } from '../../base/index.ts';
import {
  type BlockUse,
  PAGE_BYTES,
  type Slab,
  SPILL_HIGH_SHARE,
  SPILL_PART_BYTES,
  type SpillEffect,
  SpillMachine,
  type SpillTrouble,
  type StoredObject,
  sizeOf,
} from '../../bucket/index.ts';
import type { ScratchFile } from '../../platform/index.ts';
import type { Session } from '../../scheduler/local/index.ts';
import { SPILL_LOOK_MS, SPILL_REPORT_MS } from './limits.ts';
import { isAtHand, type ObjectBlock, ObjectBlocks } from './object-blocks.ts';

export interface SpillerPorts {
  readonly monotonicMs: () => number;
  /** Undefined: nothing is ever spilled. */
  readonly openFile: (() => Promise<ScratchFile>) | undefined;
  /** Says of every object that an attempt uses or may use, and of those that a waiting invocation will. */
  readonly markUses: (used: (object: StoredObject) => void, queued: (object: StoredObject) => void) => void;
  /** What was brought back above the budget is still needed. */
  readonly isOverBudgetInUse: () => boolean;
  readonly report: (message: string) => void;
  /** Calls back once after the sockets and disks had their turn. */
  readonly afterTurn: (callback: () => void) => void;
  /** There is something to do later. */
  readonly onTimer: () => void;
}

export interface ObjectReader {
  /** `end` is exclusive and at most the object's size. Rejects with E_CHECKSUM, E_INTERNAL. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** Idempotent. */
  close(): void;
}

type Loaded = (error: ErrorData | undefined, isOverBudget: boolean) => void;

export class Spiller {
  readonly blocks: ObjectBlocks;
  readonly #slab: Slab;
  readonly #ports: SpillerPorts;
  readonly #machine: SpillMachine;
  readonly #requests = new Map<number, Loaded>();
  #nextRequest = 1;
  #file: Promise<ScratchFile> | undefined;
  /** Nothing is written meanwhile. */
  #cutting: Promise<void> | undefined;
  #isLookDue = false;
  #seenAsks = 0;
  #lookedAtMs = Number.NEGATIVE_INFINITY;
  #isLooking = false;
  #mustLook = false;
  #lookAtMs = Number.POSITIVE_INFINITY;
  #failure: string | undefined;
  #reportedAtMs = Number.NEGATIVE_INFINITY;

  constructor(slab: Slab, fileBytesMax: number, ports: SpillerPorts) {
    this.#slab = slab;
    this.#ports = ports;
    this.blocks = new ObjectBlocks(slab);
    this.#machine = new SpillMachine(fileBytesMax);
  }

  get fileBytes(): number {
    return this.#machine.fileBytes;
  }

  /** Monotonic ms at which `look` has something to do; infinite when nothing waits for time. */
  get nextTimerMs(): number {
    return this.#lookAtMs;
  }

  /** Somebody waits for room, or more is in use than shall be. */
  get #isShort(): boolean {
    const { budgetBytes, usedBytes, anybodyAsks } = this.#slab;
    return anybodyAsks || usedBytes > budgetBytes * SPILL_HIGH_SHARE;
  }

  /** Somebody has asked for room since it looked. */
  get hasNews(): boolean {
    return this.#slab.asks !== this.#seenAsks;
  }

  /** Cheap; call it when objects may have come. */
  lookIfShort(): void {
    if (!this.#isShort) return;
    const nowMs = this.#ports.monotonicMs();
    // Who uses what takes long to find out, and nobody waits for it.
    if (this.#slab.anybodyAsks || nowMs >= this.#lookedAtMs + SPILL_LOOK_MS) this.look();
    else this.#lookAt(this.#lookedAtMs + SPILL_LOOK_MS);
  }

  add(object: StoredObject, session: Session | undefined): void {
    const added = this.blocks.add(object, session);
    if (added === undefined || !added.isNew) return;
    const { id, pages, bytes } = added.block;
    this.#machine.add(id, pages * PAGE_BYTES, bytes);
  }

  /** Nobody knows the object any more. @returns false when it was not known here. */
  remove(object: StoredObject): boolean {
    if (this.blocks.of(object) === undefined) return false;
    this.#drop(this.blocks.remove(object));
    return true;
  }

  /**
   * Its bytes stay, whatever becomes of its session, until the callback is called.
   * @param isPin where they are in memory.
   */
  hold(object: StoredObject, isPin: boolean): (() => void) | undefined {
    const release = this.blocks.hold(object, isPin);
    if (release === undefined) return undefined;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#drop(release());
    };
  }

  /**
   * Brings objects back into memory. @returns undefined when all are there; else how to give up, until `done` was called.
   * @param isUrgent a handler that runs waits for it.
   */
  load(objects: readonly StoredObject[], isUrgent: boolean, done: Loaded): (() => void) | undefined {
    if (objects.every(isAtHand)) return undefined;
    const blocks = new Set<number>();
    for (const object of objects) {
      const block = this.blocks.of(object);
      if (block !== undefined) blocks.add(block.id);
    }
    const request = this.#nextRequest++;
    this.#requests.set(request, done);
    this.#machine.want(request, [...blocks], isUrgent);
    this.look();
    return () => {
      if (!this.#requests.delete(request)) return;
      this.#machine.cancel(request);
      this.look();
    };
  }

  /**
   * Reads copies of parts of an object, from the file past the memory. Its bytes stay until `close`, whatever becomes of its
   * session. Undefined: it is not kept here.
   */
  reader(object: StoredObject): ObjectReader | undefined {
    const block = this.blocks.of(object);
    const close = this.hold(object, false);
    if (block === undefined || close === undefined) return undefined;
    const offset = this.blocks.offsetOf(object);
    return { read: (start, end) => this.#copyOut(block, offset + start, Math.max(0, end - start)), close };
  }

  async #copyOut(block: ObjectBlock, from: number, size: number): Promise<Uint8Array> {
    const into = new Uint8Array(size);
    for (let at = from; at < from + size; ) {
      const part = Math.floor(at / SPILL_PART_BYTES);
      const partEnd = Math.min(from + size, (part + 1) * SPILL_PART_BYTES);
      // Whichever has it now: it may be moved between two parts.
      const bytes = block.page >= 0 ? this.blocks.view(block) : undefined;
      if (bytes !== undefined) into.set(bytes.subarray(at, partEnd), at - from);
      else {
        const whole = await this.#readPart(block, part);
        into.set(whole.subarray(at - part * SPILL_PART_BYTES, partEnd - part * SPILL_PART_BYTES), at - from);
      }
      at = partEnd;
    }
    return into;
  }

  /** Moves what there is to move. Call it when memory is short, and when a timer is due. */
  look(): void {
    this.#mustLook = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    while (this.#mustLook) {
      this.#mustLook = false;
      this.#plan();
    }
    this.#isLooking = false;
  }

  async close(): Promise<void> {
    await this.#file?.then(
      (file) => file.close(),
      () => {},
    );
  }

  checkInvariants(): void {
    this.#machine.checkInvariants();
  }

  // ── deciding ───────────────────────────────────────────────────────────────────────────────────────────────────

  #plan(): void {
    const { monotonicMs, isOverBudgetInUse, openFile } = this.#ports;
    this.#lookAtMs = Number.POSITIVE_INFINITY;
    this.#lookedAtMs = monotonicMs();
    const { asked } = this.#slab;
    if (asked !== undefined) this.#seenAsks = asked.asks;
    const nowMs = this.#lookedAtMs;
    let uses: Map<number, BlockUse> | undefined;
    const effects = this.#machine.plan({
      usedBytes: this.#slab.usedBytes,
      budgetBytes: this.#slab.budgetBytes,
      capacityBytes: this.#slab.capacityBytes,
      askedBytes: asked?.bytes ?? 0,
      isOverBudget: isOverBudgetInUse(),
      nowMs,
      useOf: (id) => {
        if (openFile === undefined) return 'used';
        uses ??= this.#usesNow();
        return uses.get(id) ?? 'idle';
      },
    });
    this.#carryOut(effects);
    const { moves, requestCount, isFileFull } = this.#machine;
    if (asked !== undefined) {
      if (effects.some(({ type }) => type === 'drop')) this.#slab.tellRoom();
      // What is being written will make room; the end of the write looks again.
      else if (!moves) this.#slab.answer(asked.asks, this.#trouble(isFileFull));
    }
    // What waits for others to end, or for the disk to work again.
    if (requestCount > 0 || (this.#failure !== undefined && this.#isShort)) this.#lookAt(nowMs + SPILL_LOOK_MS);
  }

  #lookAt(atMs: number): void {
    if (atMs >= this.#lookAtMs) return;
    this.#lookAtMs = atMs;
    this.#ports.onTimer();
  }

  /** Once for all that moved in this turn. */
  #lookAfterTurn(): void {
    if (this.#isLookDue) return;
    this.#isLookDue = true;
    this.#ports.afterTurn(() => {
      this.#isLookDue = false;
      this.look();
      if (this.blocks.size === 0) this.#cut();
    });
  }

  #trouble(isFileFull: boolean): SpillTrouble {
    if (this.#failure !== undefined) return 'failing';
    return isFileFull ? 'full' : 'none';
  }

  #usesNow(): Map<number, BlockUse> {
    const uses = new Map<number, BlockUse>();
    this.#ports.markUses(
      (object) => this.#mark(uses, object, 'used'),
      (object) => this.#mark(uses, object, 'queued'),
    );
    for (const block of this.blocks.all()) {
      if (block.pins > 0 || (block.page >= 0 && !this.blocks.isComplete(block))) uses.set(block.id, 'used');
    }
    return uses;
  }

  #mark(uses: Map<number, BlockUse>, object: StoredObject, use: BlockUse): void {
    const block = this.blocks.of(object);
    if (block !== undefined && uses.get(block.id) !== 'used') uses.set(block.id, use);
  }

  #carryOut(effects: readonly SpillEffect[]): void {
    for (const effect of effects) {
      switch (effect.type) {
        case 'write':
          void this.#write(this.#block(effect.block), effect.at);
          break;
        case 'read':
          this.#bringIn(this.#block(effect.block), effect.at);
          break;
        case 'drop':
          this.blocks.leaveMemory(this.#block(effect.block));
          break;
        case 'forget':
          this.blocks.forget(this.#block(effect.block));
          if (this.#slab.anybodyAsks) this.#slab.tellRoom();
          break;
        case 'loaded':
        case 'refused': {
          const done = this.#requests.get(effect.request);
          this.#requests.delete(effect.request);
          done?.(effect.type === 'refused' ? effect.error : undefined, effect.type === 'loaded' && effect.isOverBudget);
          break;
        }
      }
    }
  }

  #drop(block: ObjectBlock | undefined): void {
    if (block === undefined) return;
    this.#carryOut(this.#machine.remove(block.id));
    if (this.#machine.requestCount > 0) this.look();
    else if (this.blocks.size === 0) this.#cut();
  }

  // ── moving ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #write(block: ObjectBlock, at: number): Promise<void> {
    let error: ErrorData | undefined;
    const sums: number[] = [];
    try {
      await this.#cutting;
      const file = await this.#open();
      const bytes = this.blocks.view(block);
      for (let from = 0; from < bytes.length; from += SPILL_PART_BYTES) {
        const part = bytes.subarray(from, Math.min(bytes.length, from + SPILL_PART_BYTES));
        sums.push(crc32(part));
        await file.write(part, at + from);
      }
      block.sums = sums;
      this.#failure = undefined;
    } catch (thrown) {
      error = toErrorData(thrown);
      this.#failed(thrown);
    }
    this.#carryOut(this.#machine.wrote(block.id, error, this.#ports.monotonicMs()));
    this.#lookAfterTurn();
  }

  #bringIn(block: ObjectBlock, at: number): void {
    let page: number;
    try {
      page = this.#slab.allocatePages(block.pages, block.owners);
    } catch {
      this.#carryOut(this.#machine.readDenied(block.id));
      return;
    }
    void this.#read(block, page, at);
  }

  async #read(block: ObjectBlock, page: number, at: number): Promise<void> {
    let error: ErrorData | undefined;
    try {
      const file = await this.#open();
      const bytes = this.#slab.view(this.#slab.refOfPage(page, 0, block.bytes));
      for (let part = 0; part * SPILL_PART_BYTES < bytes.length; part++) {
        const from = part * SPILL_PART_BYTES;
        const into = bytes.subarray(from, Math.min(bytes.length, from + SPILL_PART_BYTES));
        await file.read(into, at + from);
        checkPart(block, part, into);
      }
      this.blocks.enterMemory(block, page);
    } catch (thrown) {
      error = readError(thrown);
      this.#ports.report(error.message);
      this.#slab.freePages(page, block.pages, block.owners);
    }
    this.#carryOut(this.#machine.wasRead(block.id, error));
    this.#lookAfterTurn();
  }

  async #readPart(block: ObjectBlock, part: number): Promise<Uint8Array> {
    const at = this.#machine.placeOf(block.id);
    if (at === undefined) throw new PlatformError('E_OBJECT_GONE', 'the object was freed while it was read');
    const from = part * SPILL_PART_BYTES;
    const into = new Uint8Array(Math.min(SPILL_PART_BYTES, block.bytes - from));
    try {
      await (await this.#open()).read(into, at + from);
      checkPart(block, part, into);
    } catch (thrown) {
      const error = readError(thrown);
      this.#ports.report(error.message);
      throw fromErrorData(error);
    }
    return into;
  }

  #open(): Promise<ScratchFile> {
    const { openFile } = this.#ports;
    if (openFile === undefined) return Promise.reject(new Error('there is no spill file'));
    this.#file ??= openFile().catch((error) => {
      this.#file = undefined;
      throw error;
    });
    return this.#file;
  }

  /** Nothing is in the file: its space is the disk's again. */
  #cut(): void {
    if (this.#file === undefined || this.#cutting !== undefined) return;
    if (this.#machine.fileEndBytes > 0 || this.#machine.moves) return;
    this.#cutting = this.#file
      .then((file) => file.cut(0))
      .catch((error) => this.#failed(error))
      .finally(() => {
        this.#cutting = undefined;
      });
  }

  #failed(thrown: unknown): void {
    this.#failure = thrown instanceof Error ? thrown.message : String(thrown);
    const nowMs = this.#ports.monotonicMs();
    if (nowMs < this.#reportedAtMs + SPILL_REPORT_MS) return;
    this.#reportedAtMs = nowMs;
    this.#ports.report(`objects cannot be spilled, they stay in memory: ${this.#failure}`);
  }

  #block(id: number): ObjectBlock {
    const block = this.blocks.get(id);
    if (block === undefined) throw new Error('the machine speaks of blocks that are known');
    return block;
  }
}

function checkPart(block: ObjectBlock, part: number, bytes: Uint8Array): void {
  if (crc32(bytes) === block.sums[part]) return;
  throw new PlatformError(
    'E_CHECKSUM',
    `a spilled object of ${sizeOfMembers(block)} bytes is not what was written: the disk or somebody else changed the spill file`,
  );
}

function sizeOfMembers({ members }: ObjectBlock): number {
  let sum = 0;
  for (const { object } of members.values()) sum += sizeOf(object);
  return sum;
}

function readError(thrown: unknown): ErrorData {
  if (thrown instanceof PlatformError) return toErrorData(thrown);
  const why = thrown instanceof Error ? thrown.message : String(thrown);
  return { code: 'E_INTERNAL', message: `a spilled object cannot be read from disk: ${why}` };
}
