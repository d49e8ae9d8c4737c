// What an instance tells the host, in shared memory: one writer, one reader, records in order.
//
//        tail (host)          head (instance)
//   ──────▼───────────────────▼──────────────  positions count up modulo 2^32, capacity is a power of two
//   │ read │ record │ record │  free  │
//
// ER1. A record is visible only whole: `head` moves after its last byte is written. So a thread that is killed in the
//      middle of anything leaves a prefix of its story, and the host reads it to the end.
// ER2. A record never wraps; a pad record (kind 0) fills the rest of the ring.
// ER3. A writer that waits for room says so before it looks at `tail` once more; the reader moves `tail` before it looks
//      whether somebody waits. So it is woken, and only then: a wake that nobody waits for costs more than reading a record.

import { assert } from '../../base/index.ts';
import { ByteReader, ByteWriter } from '../../bucket/index.ts';
import { ATOMICS_WAITS, type WordWaits } from './bells.ts';
import { EVENT_RECORD_BYTES_MAX, EVENT_RING_BYTES, RING_FULL_WAIT_MS } from './limits.ts';

const HEAD = 0;
const TAIL = 1;
const WAITING = 2;
const CONTROL_BYTES = 64;
const HEADER_BYTES = 4;
const MASK = EVENT_RING_BYTES - 1;

export function createEventRing(): SharedArrayBuffer {
  return new SharedArrayBuffer(CONTROL_BYTES + EVENT_RING_BYTES);
}

export class EventRingWriter {
  readonly #words: Int32Array;
  readonly #buffer: Buffer;
  readonly #writer: ByteWriter;
  readonly #onFull: () => void;
  readonly #waits: WordWaits;
  #head: number;
  #start = 0;

  /** @param onFull must make the host read: called while the ring is full. */
  constructor(memory: SharedArrayBuffer, onFull: () => void, waits: WordWaits = ATOMICS_WAITS) {
    this.#words = new Int32Array(memory, 0, CONTROL_BYTES / 4);
    this.#buffer = Buffer.from(memory as unknown as ArrayBuffer, CONTROL_BYTES, EVENT_RING_BYTES);
    this.#writer = new ByteWriter(this.#buffer);
    this.#onFull = onFull;
    this.#waits = waits;
    this.#head = Atomics.load(this.#words, HEAD);
  }

  /** Room for one record of at most `bytesMax` bytes; blocks this thread while the host is behind. */
  begin(bytesMax: number): ByteWriter {
    const need = bytesMax + HEADER_BYTES;
    assert(need <= EVENT_RECORD_BYTES_MAX, 'a record is at most EVENT_RECORD_BYTES_MAX');
    let position = this.#head & MASK;
    const toEnd = EVENT_RING_BYTES - position;
    const pad = toEnd < need ? toEnd : 0;
    this.#waitForRoom(need + pad);
    if (pad > 0) {
      if (pad >= HEADER_BYTES) this.#buffer.writeUInt32LE(0, position);
      this.#head = (this.#head + pad) | 0;
      position = 0;
    }
    this.#start = position;
    this.#writer.at = position + HEADER_BYTES;
    return this.#writer;
  }

  /** Makes the record that was begun visible (ER1). */
  commit(): void {
    // Positions stay multiples of 4, so that a pad header always fits or is not needed.
    const length = (this.#writer.at - this.#start + 3) & ~3;
    this.#buffer.writeUInt32LE(length, this.#start);
    this.#head = (this.#head + length) | 0;
    Atomics.store(this.#words, HEAD, this.#head);
  }

  #waitForRoom(need: number): void {
    for (;;) {
      const tail = Atomics.load(this.#words, TAIL);
      if (EVENT_RING_BYTES - ((this.#head - tail) >>> 0) >= need) return;
      this.#onFull();
      Atomics.store(this.#words, WAITING, 1);
      this.#waits.block(this.#words, TAIL, tail, RING_FULL_WAIT_MS);
      Atomics.store(this.#words, WAITING, 0);
    }
  }
}

export class EventRingReader {
  readonly #words: Int32Array;
  readonly #buffer: Buffer;
  readonly #reader: ByteReader;
  #tail = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory, 0, CONTROL_BYTES / 4);
    this.#buffer = Buffer.from(memory as unknown as ArrayBuffer, CONTROL_BYTES, EVENT_RING_BYTES);
    this.#reader = new ByteReader(this.#buffer);
  }

  /** The place behind all that was told by now. */
  get end(): number {
    return Atomics.load(this.#words, HEAD);
  }

  /** The next record before `end`, not yet taken: read it, then `advance`. Undefined when all was read. */
  peek(end = this.end): ByteReader | undefined {
    for (;;) {
      if (((end - this.#tail) | 0) <= 0) return undefined;
      const position = this.#tail & MASK;
      const length = this.#buffer.readUInt32LE(position);
      if (length !== 0) {
        this.#reader.at = position + HEADER_BYTES;
        return this.#reader;
      }
      this.#move((this.#tail + EVENT_RING_BYTES - position) | 0);
    }
  }

  /** All records that are not taken yet, up to `end`; takes none. */
  *ahead(end = this.end): Generator<ByteReader> {
    const reader = new ByteReader(this.#buffer);
    for (let tail = this.#tail; ((end - tail) | 0) > 0; ) {
      const position = tail & MASK;
      const length = this.#buffer.readUInt32LE(position);
      if (length === 0) {
        tail = (tail + EVENT_RING_BYTES - position) | 0;
        continue;
      }
      reader.at = position + HEADER_BYTES;
      yield reader;
      tail = (tail + length) | 0;
    }
  }

  /** The record that `peek` gave is done. */
  advance(): void {
    const length = this.#buffer.readUInt32LE(this.#tail & MASK);
    this.#move((this.#tail + length) | 0);
  }

  #move(tail: number): void {
    this.#tail = tail;
    Atomics.store(this.#words, TAIL, tail);
    if (Atomics.load(this.#words, WAITING) !== 0) Atomics.notify(this.#words, TAIL);
  }
}
