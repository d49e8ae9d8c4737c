// An object as it travels between instances and host of one app host: names, and its bytes or where they lie.

import { assert, type Hash64, hexOf } from '../base/index.ts';
import { CONTENT_BYTES, CONTENT_JSON } from '../protocol/index.ts';
import { type ByteReader, type ByteWriter, textBytesMax } from './bytes.ts';
import type { SlabRef } from './slab.ts';

/** The bytes are in the spill file, which the host alone reads. */
export interface Spilled {
  readonly spilled: true;
  readonly size: number;
}

/** Bytes inside the message (JSON may still be a string), a place in the object store, or neither: spilled. */
export type StoredContent = string | Uint8Array | SlabRef | Spilled;

export interface StoredObject {
  /** Index into the app's buckets. */
  readonly bucket: number;
  /** Undefined: `<invocation>.<step>`. */
  readonly name: string | undefined;
  /** Who made it: (0, 0) for objects from outside. */
  readonly producer: Hash64;
  readonly step: number;
  readonly group: string;
  /** Session that made it; undefined: the session that the message is about. */
  readonly session: string | undefined;
  readonly contentType: string;
  readonly content: StoredContent;
  /** The place belongs to another object: it is not freed with this one. */
  readonly alias?: boolean;
  /** Its sender created it and may still read it while it runs. */
  readonly isSeen?: boolean;
  /** Checksum at sending time when `dev` verifies; 0 = none. */
  readonly checksum?: number;
}

export function nameOf(object: StoredObject): string {
  return object.name ?? `${hexOf(object.producer)}.${object.step}`;
}

export function isSlabRef(content: StoredContent): content is SlabRef {
  return typeof content === 'object' && !(content instanceof Uint8Array) && !('spilled' in content);
}

export function isSpilled(content: StoredContent): content is Spilled {
  return typeof content === 'object' && 'spilled' in content;
}

/** Small bytes travel with the object; the others are in the object store, in memory or spilled. */
export function isStored(content: StoredContent): content is SlabRef | Spilled {
  return typeof content === 'object' && !(content instanceof Uint8Array);
}

/** Size in bytes; of a string its UTF-8 size. */
export function sizeOf(object: StoredObject): number {
  const { content } = object;
  if (typeof content === 'string') return Buffer.byteLength(content);
  return content instanceof Uint8Array ? content.length : content.size;
}

/** Upper bound of what `writeObject` writes. */
export function objectBytesMax(object: StoredObject): number {
  const { content } = object;
  const body = typeof content === 'string' ? content.length * 3 : content instanceof Uint8Array ? content.length : 0;
  return (
    64 +
    textBytesMax(object.name) +
    textBytesMax(object.group) +
    textBytesMax(object.session) +
    body +
    (object.contentType === CONTENT_JSON ? 0 : textBytesMax(object.contentType))
  );
}

const TYPE_JSON = 0;
const TYPE_BYTES = 1;
const TYPE_OTHER = 2;
const CONTENT_INLINE = 0;
const CONTENT_SLAB = 1;
const CONTENT_ALIAS = 2;
const CONTENT_SEEN = 3;

export function writeObject(writer: ByteWriter, object: StoredObject): void {
  writer.u32(object.bucket);
  writer.u32(object.producer.hi);
  writer.u32(object.producer.lo);
  writer.u32(object.step);
  writer.u32(object.checksum ?? 0);
  writer.text(object.name);
  writer.text(object.group === '' ? undefined : object.group);
  writer.text(object.session);
  const type = object.contentType;
  if (type === CONTENT_JSON) writer.u8(TYPE_JSON);
  else if (type === CONTENT_BYTES) writer.u8(TYPE_BYTES);
  else {
    writer.u8(TYPE_OTHER);
    writer.text(type);
  }
  const { content } = object;
  if (typeof content === 'string') {
    writer.u8(CONTENT_INLINE);
    writer.text(content);
  } else if (content instanceof Uint8Array) {
    writer.u8(CONTENT_INLINE);
    writer.bytes(content);
  } else {
    assert(isSlabRef(content), 'an object is brought back into memory before it is handed on');
    writer.u8(object.alias === true ? CONTENT_ALIAS : object.isSeen === true ? CONTENT_SEEN : CONTENT_SLAB);
    writer.u32(content.segment);
    writer.f64(content.offset);
    writer.f64(content.size);
  }
}

export function readObject(reader: ByteReader): StoredObject {
  const bucket = reader.u32();
  const hi = reader.u32();
  const lo = reader.u32();
  const step = reader.u32();
  const checksum = reader.u32();
  const name = reader.text();
  const group = reader.text() ?? '';
  const session = reader.text();
  const type = reader.u8();
  const contentType = type === TYPE_JSON ? CONTENT_JSON : type === TYPE_BYTES ? CONTENT_BYTES : (reader.text() ?? '');
  const kind = reader.u8();
  const content: StoredContent =
    kind === CONTENT_INLINE ? reader.bytes() : { segment: reader.u32(), offset: reader.f64(), size: reader.f64() };
  return {
    bucket,
    name,
    producer: { hi, lo },
    step,
    group,
    session,
    contentType,
    content,
    checksum,
    alias: kind === CONTENT_ALIAS,
    isSeen: kind === CONTENT_SEEN,
  };
}
