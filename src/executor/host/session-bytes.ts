// Bytes of the objects of this host's sessions.
//
// Owns: where an object's bytes are (with it, or in the slab), and when they are freed.
// Does not own: the layout of the slab (bucket), what is on disk (Spiller), which sessions are released (SessionMachine), what
// runs where (Instances).
//
// HO3. Bytes are freed when their session is released, no handler reads them, and the socket has taken what is still to be
//      written of them. What a reader of the server's holds stays until that is done. Of a session that was stopped no
//      handler begins any more in an instance that has said so; until all have, its bytes stay.

import { PlatformError } from '../../base/index.ts';
import {
  isSlabRef,
  isSpilled,
  isStored,
  type Slab,
  type SlabRef,
  type StoredContent,
  type StoredObject,
  sizeOf,
} from '../../bucket/index.ts';
import type { ObjectHeader } from '../../protocol/index.ts';
import type { Session } from '../../scheduler/local/index.ts';
import type { Instances } from './instances.ts';
import type { ObjectReader, Spiller } from './spiller.ts';
import type { EndedSessions } from './trace.ts';

/** Producer of what comes from the server. */
const OUTSIDE = { hi: 0, lo: 0 };

export class SessionBytes {
  readonly #slab: Slab;
  readonly #inlineBytesMax: number;
  readonly #instances: Instances;
  readonly #ended: EndedSessions;
  readonly #spiller: Spiller;
  /** How much of a session the socket has still to take, in objects. */
  readonly #unwritten = new Map<Session, number>();
  /** Released, but an overtaken handler still runs. */
  readonly #lingering = new Map<number, Session>();
  /** Slots of instances that were told to begin nothing of a session any more, by its number, and have not said so. */
  readonly #stopping = new Map<number, Set<number>>();

  constructor(slab: Slab, inlineBytesMax: number, instances: Instances, ended: EndedSessions, spiller: Spiller) {
    this.#slab = slab;
    this.#inlineBytesMax = inlineBytesMax;
    this.#instances = instances;
    this.#ended = ended;
    this.#spiller = spiller;
  }

  // ── in ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Memory for a blob of the server's: large ones go straight into the object store. */
  allocateBlob(size: number): Uint8Array {
    if (size <= this.#inlineBytesMax) return new Uint8Array(size);
    try {
      return this.#slab.view(this.#slab.allocate(size));
    } catch {
      // The store is full: whoever wants to store it will say so.
      return new Uint8Array(size);
    }
  }

  /** A blob that nobody stores. */
  freeBlob(bytes: Uint8Array): void {
    const ref = this.#slab.refOf(bytes);
    if (ref !== undefined) this.#slab.free(ref);
  }

  /**
   * The object that came from the server with these bytes; large ones are in the slab, if need be from now on.
   * @throws E_QUOTA_EXCEEDED when the slab is full.
   */
  objectOf(header: ObjectHeader, bytes: Uint8Array, bucket: number, session: string): StoredObject {
    let content: StoredContent = bytes;
    if (bytes.length > this.#inlineBytesMax) {
      let ref = this.#slab.refOf(bytes);
      if (ref === undefined) {
        ref = this.#slab.allocate(bytes.length);
        this.#slab.view(ref).set(bytes);
      }
      content = ref;
    }
    return {
      bucket,
      name: header.name,
      producer: OUTSIDE,
      step: 0,
      group: header.group,
      session: header.session === session ? undefined : header.session,
      contentType: header.contentType,
      content,
    };
  }

  /** It counts among the objects of its session from now on. */
  added(object: StoredObject, session: Session | undefined): void {
    if (isStored(object.content)) this.#spiller.add(object, session);
  }

  // ── read ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A view, if the bytes are not on disk. */
  bytesOf(object: StoredObject): Uint8Array | undefined {
    const { content } = object;
    if (typeof content === 'string') return Buffer.from(content);
    if (isSpilled(content)) return undefined;
    return isSlabRef(content) ? this.#slab.view(content) : content;
  }

  /** Reads parts of an object, wherever its bytes are; they stay until `close`. */
  reader(object: StoredObject): ObjectReader {
    const kept = this.#spiller.reader(object);
    if (kept !== undefined) return kept;
    const bytes = this.bytesOf(object);
    return {
      read: async (start, end) => {
        if (bytes === undefined) throw new PlatformError('E_OBJECT_GONE', 'the object was freed');
        return Uint8Array.from(bytes.subarray(start, end));
      },
      close: () => {},
    };
  }

  /** All of it. Rejects like `reader`. */
  async copyOf(object: StoredObject): Promise<Uint8Array> {
    const reader = this.reader(object);
    try {
      return await reader.read(0, sizeOf(object));
    } finally {
      reader.close();
    }
  }

  /** Both are in memory: the driver has seen to it. */
  sameContent(a: StoredObject, b: StoredObject): boolean {
    if (a.contentType !== b.contentType || sizeOf(a) !== sizeOf(b)) return false;
    const [one, other] = [this.bytesOf(a), this.bytesOf(b)];
    return one !== undefined && other !== undefined && Buffer.compare(one, other) === 0;
  }

  // ── freed ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Nobody took the object. */
  discard(object: StoredObject): void {
    if (!isStored(object.content) || this.#spiller.remove(object)) return;
    if (isSlabRef(object.content) && object.alias !== true) this.#slab.free(object.content);
  }

  /** (HO3): a callback that lets go of the session's bytes; undefined for what is copied anyway. */
  holding(session: Session, object: StoredObject): (() => void) | undefined {
    if (!isStored(object.content)) return undefined;
    const unpin = this.#spiller.hold(object, true);
    this.#unwritten.set(session, (this.#unwritten.get(session) ?? 0) + 1);
    return () => {
      unpin?.();
      const left = (this.#unwritten.get(session) ?? 1) - 1;
      if (left > 0) this.#unwritten.set(session, left);
      else {
        this.#unwritten.delete(session);
        if (session.state === 'ended') this.#freeWhenUnread(session);
      }
    };
  }

  /** The same for several objects of one message. */
  holdingAll(session: Session, objects: readonly StoredObject[]): (() => void) | undefined {
    const callbacks = objects.flatMap((object) => this.holding(session, object) ?? []);
    if (callbacks.length === 0) return undefined;
    return () => {
      for (const callback of callbacks) callback();
    };
  }

  /** One that has ended, and whose objects somebody still uses. */
  unfreed(id: string): Session | undefined {
    for (const session of this.#lingering.values()) if (session.id === id) return session;
    for (const session of this.#unwritten.keys()) if (session.id === id) return session;
    return undefined;
  }

  /** Frees the session's objects as soon as nobody uses them. */
  release(session: Session): void {
    if (!this.#unwritten.has(session)) this.#freeWhenUnread(session);
  }

  /** Each of these instances is told that it shall begin nothing of the session any more; `stopped` follows. */
  stopping(sessionNo: number, slots: Iterable<number>): void {
    this.#stopping.set(sessionNo, new Set(slots));
  }

  /** What the instance has begun of the session until now was read from its ring; it begins no more. */
  stopped(sessionNo: number, slot: number): void {
    const slots = this.#stopping.get(sessionNo);
    if (slots === undefined || !slots.delete(slot) || slots.size > 0) return;
    this.#stopping.delete(sessionNo);
    this.noLongerRead(sessionNo);
  }

  /** The instance is gone. */
  instanceGone(slot: number): void {
    for (const sessionNo of [...this.#stopping.keys()]) this.stopped(sessionNo, slot);
  }

  /** An attempt of the session is over: what waited for it may be freed now. */
  noLongerRead(sessionNo: number): void {
    if (this.#lingering.size === 0) return;
    const session = this.#lingering.get(sessionNo);
    if (session === undefined) return;
    this.#lingering.delete(sessionNo);
    this.#freeWhenUnread(session);
  }

  /** Frees what an instance that is gone had allocated, and no session and no ticket knows of. */
  sweep(owner: number): void {
    this.#slab.sweep(owner, this.#knownPlaces());
  }

  *#knownPlaces(): Generator<SlabRef> {
    yield* this.#spiller.blocks.places();
    for (const pool of this.#instances.pools.values()) yield* pool.tickets.blocks();
  }

  /** Sessions that are over and whose objects are still read. */
  get lingering(): Iterable<Session> {
    return this.#lingering.values();
  }

  /** Overtaken handlers may still read the objects: they are told to stop, and then replaced. */
  #freeWhenUnread(session: Session): void {
    const mayBegin = this.#stopping.has(session.no);
    if (mayBegin || this.#instances.runsSomethingOf(session.no)) this.#lingering.set(session.no, session);
    else this.#free(session);
  }

  #free(session: Session): void {
    for (const object of session.objects) this.discard(object);
    this.#ended.add(session);
  }
}

/** None of it is on disk. */
export function isWhole(parts: readonly (Uint8Array | undefined)[]): parts is readonly Uint8Array[] {
  return !parts.includes(undefined);
}
