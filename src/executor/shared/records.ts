// The one table of what an instance tells the host through its event ring.

import type { Hash64 } from '../../base/index.ts';
import {
  type ByteReader,
  objectBytesMax,
  readObject,
  type SlabRef,
  type StoredObject,
  textBytesMax,
  writeObject,
} from '../../bucket/index.ts';
import type { StartKind } from '../../protocol/index.ts';
import type { EventRingWriter } from './event-ring.ts';
import { readTicket, type Ticket, ticketBytesMax, writeTicket } from './ticket-body.ts';

const STARTED = 1;
const SENT = 2;
const ENDED = 3;
const NOTE = 4;
const HANDED_OVER = 5;
const LANE = 6;

export const START_KINDS: readonly StartKind[] = ['inline', 'warm', 'takeover', 'prewarmed', 'cold'];

/** Which attempt speaks. */
export interface Speaker {
  readonly sessionNo: number;
  readonly id: Hash64;
  readonly fence: number;
}

/** A successor that the instance made itself, from a stateless trigger or `ctx.call`. */
export interface InlineFiring {
  /** Index into the bucket's triggers; CALL_TRIGGER for `ctx.call`. */
  readonly trigger: number;
  readonly function: number;
  readonly id: Hash64;
}
export const CALL_TRIGGER = 0xffff;

export interface SentRecord extends Speaker {
  readonly type: 'sent';
  readonly object: StoredObject;
  readonly output: boolean;
  readonly persist: boolean;
  readonly atMs: number;
  /** Undefined: the host evaluates the triggers. Else these are all firings; the instance holds or offers them. */
  readonly firings: readonly InlineFiring[] | undefined;
}

export interface EndedRecord extends Speaker {
  readonly type: 'ended';
  readonly atMs: number;
  /** Busy time of the attempt's instance, ms. */
  readonly error: string | undefined;
  /** Return value; undefined when there was none or when it is of no use. */
  readonly result: StoredObject | undefined;
  /** The instance has given the server the whole account of the session (LaneAccount). */
  readonly told: boolean;
}

/** A session that the server gave to the instance itself. */
export interface LaneRecord extends Speaker {
  readonly type: 'lane';
  readonly ticket: Ticket;
  /** When its attempt began there, warm; undefined: the instance is not free, the host shall queue it. */
  readonly startedAtMs: number | undefined;
}

export type EventRecord =
  | (Speaker & { readonly type: 'started'; readonly start: StartKind; readonly atMs: number })
  | SentRecord
  | EndedRecord
  /** Rare things, as JSON: close, join. */
  | (Speaker & { readonly type: 'note'; readonly note: Note })
  | LaneRecord
  /** The host shall queue it: the instance made it, and there was no room to offer it. */
  | (Speaker & { readonly type: 'handed-over' });

export type Note =
  | { readonly kind: 'close'; readonly bucket: number }
  | { readonly kind: 'join'; readonly bucket: number; readonly names?: readonly string[]; readonly count?: number }
  /** Too many names for a record: their JSON lies there, for the reader to free. */
  | { readonly kind: 'join'; readonly bucket: number; readonly namesAt: SlabRef };

const SPEAKER_BYTES = 17;

export function writeStarted(ring: EventRingWriter, s: Speaker, start: number, atMs: number): void {
  const writer = ring.begin(SPEAKER_BYTES + 9);
  speaker(writer, STARTED, s);
  writer.u8(start);
  writer.f64(atMs);
  ring.commit();
}

export function writeSent(
  ring: EventRingWriter,
  s: Speaker,
  object: StoredObject,
  flags: { readonly output: boolean; readonly persist: boolean },
  atMs: number,
  firings: readonly InlineFiring[] | undefined,
): void {
  const writer = ring.begin(SPEAKER_BYTES + 24 + objectBytesMax(object) + (firings?.length ?? 0) * 16);
  speaker(writer, SENT, s);
  writer.u8((flags.output ? 1 : 0) | (flags.persist ? 2 : 0) | (firings === undefined ? 4 : 0));
  writer.f64(atMs);
  if (firings !== undefined) {
    writer.u32(firings.length);
    for (const firing of firings) {
      writer.u32(firing.trigger * 0x1_0000 + firing.function);
      writer.u32(firing.id.hi);
      writer.u32(firing.id.lo);
    }
  }
  writeObject(writer, object);
  ring.commit();
}

/** @param error JSON of ErrorData; longer than ERROR_JSON_CHARS_MAX is the caller's fault. */
export function writeEnded(
  ring: EventRingWriter,
  s: Speaker,
  atMs: number,
  error: string | undefined,
  result: StoredObject | undefined,
  told: boolean,
): void {
  const writer = ring.begin(
    SPEAKER_BYTES + 16 + textBytesMax(error) + (result === undefined ? 0 : objectBytesMax(result)),
  );
  speaker(writer, ENDED, s);
  writer.f64(atMs);
  writer.text(error);
  writer.u8((result === undefined ? 0 : 1) | (told ? 2 : 0));
  if (result !== undefined) writeObject(writer, result);
  ring.commit();
}

export function writeNote(ring: EventRingWriter, s: Speaker, note: Note): void {
  const text = JSON.stringify(note);
  const writer = ring.begin(SPEAKER_BYTES + textBytesMax(text));
  speaker(writer, NOTE, s);
  writer.text(text);
  ring.commit();
}

export function writeHandedOver(ring: EventRingWriter, s: Speaker): void {
  const writer = ring.begin(SPEAKER_BYTES);
  speaker(writer, HANDED_OVER, s);
  ring.commit();
}

/** @param startedAtMs undefined: the instance is not free, the host queues it. */
export function writeLane(ring: EventRingWriter, ticket: Ticket, startedAtMs: number | undefined): void {
  const writer = ring.begin(SPEAKER_BYTES + 8 + ticketBytesMax(ticket));
  speaker(writer, LANE, ticket);
  writer.f64(startedAtMs ?? -1);
  writeTicket(writer, ticket);
  ring.commit();
}

function speaker(writer: ReturnType<EventRingWriter['begin']>, kind: number, s: Speaker): void {
  writer.u8(kind);
  writer.u32(s.sessionNo);
  writer.u32(s.id.hi);
  writer.u32(s.id.lo);
  writer.u32(s.fence);
}

export function readRecord(reader: ByteReader): EventRecord {
  const kind = reader.u8();
  const sessionNo = reader.u32();
  const id = { hi: reader.u32(), lo: reader.u32() };
  const fence = reader.u32();
  switch (kind) {
    case STARTED: {
      const start = START_KINDS[reader.u8()] ?? 'warm';
      return { type: 'started', sessionNo, id, fence, start, atMs: reader.f64() };
    }
    case SENT: {
      const flags = reader.u8();
      const atMs = reader.f64();
      let firings: InlineFiring[] | undefined;
      if ((flags & 4) === 0) {
        firings = [];
        const count = reader.u32();
        for (let i = 0; i < count; i++) {
          const which = reader.u32();
          firings.push({
            trigger: which >>> 16,
            function: which & 0xffff,
            id: { hi: reader.u32(), lo: reader.u32() },
          });
        }
      }
      const object = readObject(reader);
      return {
        type: 'sent',
        sessionNo,
        id,
        fence,
        object,
        output: (flags & 1) !== 0,
        persist: (flags & 2) !== 0,
        atMs,
        firings,
      };
    }
    case ENDED: {
      const atMs = reader.f64();
      const error = reader.text();
      const flags = reader.u8();
      const result = (flags & 1) !== 0 ? readObject(reader) : undefined;
      return { type: 'ended', sessionNo, id, fence, atMs, error, result, told: (flags & 2) !== 0 };
    }
    case NOTE:
      return { type: 'note', sessionNo, id, fence, note: JSON.parse(reader.text() ?? '{}') as Note };
    case HANDED_OVER:
      return { type: 'handed-over', sessionNo, id, fence };
    case LANE: {
      const atMs = reader.f64();
      const startedAtMs = atMs < 0 ? undefined : atMs;
      return { type: 'lane', sessionNo, id, fence, startedAtMs, ticket: readTicket(reader) };
    }
    default:
      throw new Error(`unknown record kind ${kind}`);
  }
}
