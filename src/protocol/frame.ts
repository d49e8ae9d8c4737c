// Frames between server and app host: a msgpack header and raw bytes behind it.
//
//   ┌──────────┬──────────┬────────────┬─────────────┬─────────────┬───
//   │ u32 head │ u16 blob │ u64 size × │ header      │ blob 0      │ blob 1 …
//   │ bytes    │ count    │ blob count │ (msgpack *) │ (raw)       │
//   └──────────┴──────────┴────────────┴─────────────┴─────────────┴───
//
// * or a layout of its own, for what is sent most (lane-frame).
//
// All integers little-endian. Blobs are never serialised, and a large one is received straight into memory that the
// receiver names (`allocate`), so that it is written once. Order is kept within one connection, nowhere else.

import { Packr } from 'msgpackr';
import { assert, PlatformError } from '../base/index.ts';
import { LANE_MARK, laneHeaderBytesMax, readLaneHeader, writeLaneHeader } from './lane-frame.ts';

/** A header above this is a broken peer, not a big message: big things are blobs. */
export const FRAME_HEADER_BYTES_MAX = 64 * 1024 * 1024;
export const FRAME_BLOBS_MAX = 65_535;
/** Blobs up to this are copied into the frame's own buffer; above, they are written as they are. */
export const FRAME_COPY_BYTES_MAX = 16 * 1024;

const FIXED_BYTES = 6;
const packr = new Packr({ useRecords: false, moreTypes: false, mapsAsObjects: true });

/**
 * @param header a plain JSON-like value (Uint8Array allowed, but big ones belong into `blobs`).
 * @returns buffers to be written in this order; a blob above FRAME_COPY_BYTES_MAX is returned as it is, not copied,
 *   and must not change until it is written.
 */
export function encodeFrame(header: unknown, blobs: readonly Uint8Array[] = []): Uint8Array[] {
  const laneBytesMax = laneHeaderBytesMax(header, blobs);
  if (laneBytesMax > 0) return encodeLaneFrame(header, blobs[0], laneBytesMax);
  assert(blobs.length <= FRAME_BLOBS_MAX, 'a frame has at most FRAME_BLOBS_MAX blobs');
  const packed = packr.pack(header);
  assert(packed.length <= FRAME_HEADER_BYTES_MAX, 'a frame header is at most FRAME_HEADER_BYTES_MAX');
  let inline = FIXED_BYTES + 8 * blobs.length + packed.length;
  let separate = false;
  for (const blob of blobs) {
    if (!separate && blob.length <= FRAME_COPY_BYTES_MAX) inline += blob.length;
    else separate = true;
  }
  const buffer = Buffer.allocUnsafe(inline);
  buffer.writeUInt32LE(packed.length, 0);
  buffer.writeUInt16LE(blobs.length, 4);
  let at = FIXED_BYTES;
  for (const blob of blobs) {
    writeSize(buffer, at, blob.length);
    at += 8;
  }
  buffer.set(packed, at);
  at += packed.length;
  const parts: Uint8Array[] = [buffer];
  for (const blob of blobs) {
    if (at + blob.length <= inline && parts.length === 1) {
      buffer.set(blob, at);
      at += blob.length;
    } else if (blob.length > 0) {
      parts.push(blob);
    }
  }
  return parts;
}

/** A frame of one blob at the most. */
function encodeLaneFrame(header: unknown, blob: Uint8Array | undefined, headerBytesMax: number): Uint8Array[] {
  const copied = blob !== undefined && blob.length <= FRAME_COPY_BYTES_MAX;
  const start = FIXED_BYTES + (blob === undefined ? 0 : 8);
  const buffer = Buffer.allocUnsafe(start + headerBytesMax + (copied ? blob.length : 0));
  let at = writeLaneHeader(buffer, start, header);
  buffer.writeUInt32LE(at - start, 0);
  buffer.writeUInt16LE(blob === undefined ? 0 : 1, 4);
  if (blob !== undefined) writeSize(buffer, FIXED_BYTES, blob.length);
  if (copied) {
    buffer.set(blob, at);
    at += blob.length;
  }
  const parts: Uint8Array[] = [buffer.subarray(0, at)];
  if (blob !== undefined && !copied) parts.push(blob);
  return parts;
}

function writeSize(buffer: Buffer, at: number, size: number): void {
  buffer.writeUInt32LE(size >>> 0, at);
  buffer.writeUInt32LE(Math.floor(size / 0x1_0000_0000), at + 4);
}

export interface Frame {
  readonly header: unknown;
  readonly blobs: readonly Uint8Array[];
}

export interface FrameDecoderOptions {
  /** Memory for one blob of `size` bytes; asked once per blob when its header is complete. Default: ordinary memory. */
  readonly allocate?: ((header: unknown, index: number, size: number) => Uint8Array) | undefined;
  /** Sum of the blobs of one frame; above it the connection is broken with E_PROTOCOL. */
  readonly blobBytesMax: number;
}

/** Cuts a byte stream into frames. Feed chunks in order; throws E_PROTOCOL on garbage, after which it must be dropped. */
export class FrameDecoder {
  readonly #options: FrameDecoderOptions;
  #pending: Buffer | undefined;
  #header: unknown;
  #sizes: number[] = [];
  #blobs: Uint8Array[] = [];
  #filled = 0;
  #inBlobs = false;

  constructor(options: FrameDecoderOptions) {
    this.#options = options;
  }

  /** Calls `onFrame` for each frame that is complete now. A blob may be a view of `chunk`: the chunk must not be reused. */
  push(chunk: Uint8Array, onFrame: (frame: Frame) => void): void {
    let data = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    if (this.#pending !== undefined) {
      data = Buffer.concat([this.#pending, data]);
      this.#pending = undefined;
    }
    let at = 0;
    for (;;) {
      if (this.#inBlobs) {
        at = this.#readBlobs(data, at);
        if (this.#inBlobs) return;
        const frame = { header: this.#header, blobs: this.#blobs };
        this.#header = undefined;
        this.#blobs = [];
        onFrame(frame);
        continue;
      }
      if (data.length - at < FIXED_BYTES) break;
      const headerBytes = data.readUInt32LE(at);
      const count = data.readUInt16LE(at + 4);
      if (headerBytes > FRAME_HEADER_BYTES_MAX) throw new PlatformError('E_PROTOCOL', 'a frame header is too large');
      const start = at + FIXED_BYTES + 8 * count;
      if (data.length < start + headerBytes) break;
      this.#sizes = [];
      let sum = 0;
      for (let i = 0; i < count; i++) {
        const offset = at + FIXED_BYTES + 8 * i;
        const size = data.readUInt32LE(offset) + data.readUInt32LE(offset + 4) * 0x1_0000_0000;
        this.#sizes.push(size);
        sum += size;
      }
      if (sum > this.#options.blobBytesMax) throw new PlatformError('E_PROTOCOL', `a frame carries ${sum} bytes`);
      try {
        const header = data.subarray(start, start + headerBytes);
        this.#header = header[0] === LANE_MARK ? readLaneHeader(header, this.#sizes) : packr.unpack(header);
      } catch (cause) {
        throw new PlatformError('E_PROTOCOL', 'a frame header is not what it says', { cause });
      }
      at = start + headerBytes;
      this.#filled = 0;
      this.#inBlobs = true;
    }
    if (at < data.length) this.#pending = data.subarray(at);
  }

  /** @returns the position behind what was taken; `#inBlobs` is false when the frame is complete. */
  #readBlobs(data: Buffer, from: number): number {
    let at = from;
    for (;;) {
      const index = this.#blobs.length - (this.#filled > 0 ? 1 : 0);
      const size = this.#sizes[index];
      if (size === undefined) {
        this.#inBlobs = false;
        return at;
      }
      if (this.#filled === 0) {
        // A whole small blob that is here already stays a view of the chunk.
        if (this.#options.allocate === undefined && data.length - at >= size) {
          this.#blobs.push(data.subarray(at, at + size));
          at += size;
          continue;
        }
        const target = this.#options.allocate?.(this.#header, index, size) ?? new Uint8Array(size);
        assert(target.length === size, 'memory for a blob has the size of the blob');
        if (size === 0) {
          this.#blobs.push(target);
          continue;
        }
        if (at >= data.length) return at;
        this.#blobs.push(target);
      }
      const target = this.#blobs[index] as Uint8Array;
      const take = Math.min(size - this.#filled, data.length - at);
      target.set(data.subarray(at, at + take), this.#filled);
      this.#filled += take;
      at += take;
      if (this.#filled < size) return at;
      this.#filled = 0;
    }
  }
}
