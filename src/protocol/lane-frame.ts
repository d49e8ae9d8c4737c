// Headers of the two messages that every small synchronous session costs, in a layout of their own: a tenth of the time of
// msgpack, which must find out at each message what it looks like. Whatever does not fit the layout goes as msgpack.
//
//   u8 0xc1 (no msgpack begins so) │ u8 kind │ u8 flags │ u32 run │ kind's numbers │ session │ kind's texts
//
// Little-endian; a text is u16 length and UTF-8. Sizes of blobs are the frame's.

import type { HostToServer, LaneAccount, ServerToHost } from './host-messages.ts';
import { INPUT_BUCKET } from './manifest.ts';
import type { ObjectHeader, PayloadHeader } from './values.ts';
import { CONTENT_BYTES, CONTENT_JSON } from './values.ts';

type Start = ServerToHost & { readonly type: 'session-start' };
type Outcome = HostToServer & { readonly type: 'session-outcome' };
type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** First byte of such a header. */
export const LANE_MARK = 0xc1;
const START = 1;
const OUTCOME = 2;

const HAS_BLOB = 1;
const IS_BYTES = 2;
const HAS_TYPE = 4;
const HAS_DEADLINE = 8;
const HAS_ACCOUNT = 16;
const IS_FINAL = 32;

const FIXED_BYTES = 7;
const START_BYTES = 24;
const OUTCOME_BYTES = 28;
const TEXT_CHARS_MAX = 1_024;

/** Upper bound of the header's size; 0: it does not fit the layout. */
export function laneHeaderBytesMax(header: unknown, blobs: readonly Uint8Array[]): number {
  const message = header as Start | Outcome | null | undefined;
  if (message?.type === 'session-outcome') {
    const { payload, session } = message;
    const fits =
      payload?.size === blobs[0]?.length && blobs.length < 2 && areShort(session, payload?.contentType ?? '');
    return fits ? FIXED_BYTES + OUTCOME_BYTES + textBytesMax(session) + textBytesMax(payload?.contentType ?? '') : 0;
  }
  if (message?.type !== 'session-start') return 0;
  const { session, entries, durable, open, objects } = message;
  const entry = entries[0];
  if (entry === undefined || entries.length > 1 || durable || open !== undefined || objects !== undefined) return 0;
  const input = entry.inputs[0];
  if (entry.inputs.length > 1 || blobs.length > 1 || input?.size !== blobs[0]?.length) return 0;
  if (input !== undefined && !isPlain(input, session)) return 0;
  const contentType = input?.contentType ?? '';
  if (!areShort(session, entry.function) || contentType.length > TEXT_CHARS_MAX) return 0;
  return FIXED_BYTES + START_BYTES + textBytesMax(session) + textBytesMax(entry.function) + textBytesMax(contentType);
}

/** @param header one that fits. @returns the position behind it. */
export function writeLaneHeader(buffer: Buffer, from: number, header: unknown): number {
  const message = header as Start | Outcome;
  buffer[from] = LANE_MARK;
  buffer.writeUInt32LE(message.run, from + 3);
  let at = from + FIXED_BYTES;
  if (message.type === 'session-outcome') {
    const { payload, account } = message;
    buffer[from + 1] = OUTCOME;
    buffer[from + 2] =
      typeFlags(payload?.contentType) | (message.final ? IS_FINAL : 0) | (account === undefined ? 0 : HAS_ACCOUNT);
    at = buffer.writeDoubleLE(message.busyMs, at);
    if (account !== undefined) {
      at = buffer.writeUInt32LE(account.objects, at);
      at = buffer.writeDoubleLE(account.bytes, at);
      at = buffer.writeDoubleLE(account.meteredMs, at);
    }
    at = writeText(buffer, at, message.session);
    return writeType(buffer, at, payload?.contentType);
  }
  const { deadlineInMs, entries } = message;
  const entry = entries[0];
  const contentType = entry?.inputs[0]?.contentType;
  buffer[from + 1] = START;
  buffer[from + 2] = typeFlags(contentType) | (deadlineInMs === undefined ? 0 : HAS_DEADLINE);
  at = buffer.writeDoubleLE(message.priority, at);
  at = buffer.writeDoubleLE(message.givenAtMs ?? 0, at);
  if (deadlineInMs !== undefined) at = buffer.writeDoubleLE(deadlineInMs, at);
  at = writeText(buffer, at, message.session);
  at = writeText(buffer, at, entry?.function ?? '');
  return writeType(buffer, at, contentType);
}

/**
 * @param header begins with LANE_MARK.
 * @param sizes of the frame's blobs.
 * @throws RangeError when it is not what writeLaneHeader writes.
 */
export function readLaneHeader(header: Buffer, sizes: readonly number[]): Start | Outcome {
  const reader = new Reader(header);
  const flags = header[2] as number;
  const run = header.readUInt32LE(3);
  if (sizes.length !== (flags & HAS_BLOB)) throw new RangeError('a header names as many blobs as its frame has');
  let message: Start | Outcome;
  if (header[1] === OUTCOME) message = readOutcome(reader, flags, run, sizes[0]);
  else if (header[1] === START) message = readStart(reader, flags, run, sizes[0]);
  else throw new RangeError('a header is of a known kind');
  if (reader.at !== header.length) throw new RangeError('a header ends where its last text does');
  return message;
}

function readOutcome(reader: Reader, flags: number, run: number, size: number | undefined): Outcome {
  const busyMs = reader.f64();
  let account: LaneAccount | undefined;
  if ((flags & HAS_ACCOUNT) !== 0) account = { objects: reader.u32(), bytes: reader.f64(), meteredMs: reader.f64() };
  const session = reader.text();
  const final = (flags & IS_FINAL) !== 0;
  const message: Writable<Outcome> = { type: 'session-outcome', session, run, final, busyMs };
  if (size !== undefined) message.payload = { contentType: readType(reader, flags), size } satisfies PayloadHeader;
  if (account !== undefined) message.account = account;
  return message;
}

function readStart(reader: Reader, flags: number, run: number, size: number | undefined): Start {
  const priority = reader.f64();
  const givenAtMs = reader.f64();
  const deadlineInMs = (flags & HAS_DEADLINE) === 0 ? undefined : reader.f64();
  const session = reader.text();
  const name = reader.text();
  const inputs: ObjectHeader[] = [];
  if (size !== undefined) {
    inputs.push({ bucket: INPUT_BUCKET, name: '0', group: '', session, contentType: readType(reader, flags), size });
  }
  const message: Writable<Start> = {
    type: 'session-start',
    session,
    run,
    entries: [{ function: name, inputs }],
    priority,
    durable: false,
  };
  if (deadlineInMs !== undefined) message.deadlineInMs = deadlineInMs;
  if (givenAtMs !== 0) message.givenAtMs = givenAtMs;
  return message;
}

/** The body of a request, as every entry has it. */
function isPlain({ bucket, name, group, session }: ObjectHeader, of: string): boolean {
  return bucket === INPUT_BUCKET && name === '0' && group === '' && session === of;
}

function areShort(one: string, other: string): boolean {
  return one.length <= TEXT_CHARS_MAX && other.length <= TEXT_CHARS_MAX;
}

function typeFlags(contentType: string | undefined): number {
  if (contentType === undefined) return 0;
  return HAS_BLOB | (contentType === CONTENT_JSON ? 0 : contentType === CONTENT_BYTES ? IS_BYTES : HAS_TYPE);
}

function writeType(buffer: Buffer, at: number, contentType: string | undefined): number {
  if (contentType === undefined || contentType === CONTENT_JSON || contentType === CONTENT_BYTES) return at;
  return writeText(buffer, at, contentType);
}

function readType(reader: Reader, flags: number): string {
  if ((flags & HAS_TYPE) !== 0) return reader.text();
  return (flags & IS_BYTES) !== 0 ? CONTENT_BYTES : CONTENT_JSON;
}

function textBytesMax(text: string): number {
  return 2 + 3 * text.length;
}

function writeText(buffer: Buffer, at: number, text: string): number {
  const start = at + 2;
  let end = start;
  // Ids and names are short and ASCII: a loop beats the call into native code.
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 127) {
      end = start + buffer.write(text, start, 'utf8');
      break;
    }
    buffer[end++] = unit;
  }
  buffer.writeUInt16LE(end - start, at);
  return end;
}

class Reader {
  readonly #buffer: Buffer;
  at = FIXED_BYTES;

  constructor(buffer: Buffer) {
    this.#buffer = buffer;
  }

  u32(): number {
    const value = this.#buffer.readUInt32LE(this.at);
    this.at += 4;
    return value;
  }

  f64(): number {
    const value = this.#buffer.readDoubleLE(this.at);
    this.at += 8;
    return value;
  }

  text(): string {
    const start = this.at + 2;
    const end = start + this.#buffer.readUInt16LE(this.at);
    if (end > this.#buffer.length) throw new RangeError('a text ends inside its header');
    this.at = end;
    return this.#buffer.toString('utf8', start, end);
  }
}
