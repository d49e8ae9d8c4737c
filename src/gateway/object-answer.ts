// Objects as files: their own type, ranges, conditions, and no more in memory per reader than one part.
//
// OA1. The next part is asked for when the socket has taken the last.
// OA2. Whatever ends the answer (its end, an error, a reader that goes or takes nothing for streamStallMs) closes the object.

import { once } from 'node:events';
import { PlatformError } from '../base/index.ts';
import { CONTENT_BYTES } from '../protocol/index.ts';
import type { ObjectSource } from './control-plane.ts';
import type { Exchange } from './exchange.ts';
import { OBJECT_READERS_MAX } from './limits.ts';
import type { Watched } from './watch.ts';

/** What users store is shown, never run, although it comes from where the console comes from. */
const OBJECT_HEADERS = [
  'accept-ranges',
  'bytes',
  'x-content-type-options',
  'nosniff',
  'content-security-policy',
  "default-src 'none'; sandbox",
] as const;

export type OpenObject = (first: { start: number; end: number }) => Promise<ObjectSource>;

const WHOLE = { start: 0, end: Number.MAX_SAFE_INTEGER };
const NOTHING = { start: 0, end: 0 };

export async function answerObject(exchange: Exchange, open: OpenObject): Promise<void> {
  const range = parseRange(exchange.header('range'));
  if (exchange.req.method === 'HEAD') {
    const source = await open(NOTHING);
    source.close();
    if (isUnchanged(exchange, source)) return answerHead(exchange, 304, [], source);
    return answerHead(exchange, 200, ['content-length', String(source.size)], source);
  }
  // Of the last bytes the size says where they begin: one more question, and nothing is read.
  const isSuffix = range !== undefined && 'last' in range;
  const wanted =
    range === undefined ? WHOLE : isSuffix ? NOTHING : { start: range.start, end: (range.end ?? WHOLE.end) + 1 };
  let source = await open(wanted);
  try {
    if (isUnchanged(exchange, source)) return answerHead(exchange, 304, [], source);
    const { size } = source;
    if (range === undefined || !isSameAsBefore(exchange, source)) {
      if (wanted !== WHOLE) {
        source.close();
        source = await open(WHOLE);
      }
      return await answerPart(exchange, source, 200, 0, source.size);
    }
    let { start } = wanted;
    let end = Math.min(wanted.end, size);
    if (isSuffix) {
      start = range.last === 0 ? size : Math.max(0, size - range.last);
      end = size;
      source.close();
      source = await open({ start, end });
    }
    if (start >= end) return refuseRange(exchange, start, size);
    return await answerPart(exchange, source, 206, start, end);
  } finally {
    source.close();
  }
}

async function answerPart(
  exchange: Exchange,
  source: ObjectSource,
  status: number,
  start: number,
  end: number,
): Promise<void> {
  const more = [...headersOf(source)];
  if (status === 206) more.push('content-range', `bytes ${start}-${end - 1}/${source.size}`);
  const first = start < end ? await source.read(start, end) : new Uint8Array(0);
  if (first.length === end - start) {
    exchange.bytes(status, typeOf(source.contentType), first, more);
    return;
  }
  const { gate, res } = exchange;
  if (gate.room.objectReaders >= OBJECT_READERS_MAX) {
    throw new PlatformError('E_RATE_LIMITED', `${OBJECT_READERS_MAX} objects are being read, which is the limit.`, {
      retryAfterMs: 1_000,
    });
  }
  const reading = new Reading(exchange);
  try {
    const head = ['content-type', typeOf(source.contentType), 'content-length', String(end - start), ...more];
    if (exchange.session !== undefined) head.push('antrail-session', exchange.session);
    if (gate.closing) head.push('connection', 'close');
    res.writeHead(status, head);
    let part = first;
    for (let at = start; ; ) {
      // A source that has no more says so by an error; one that gives nothing would never end.
      if (part.length === 0) throw new PlatformError('E_OBJECT_GONE', 'The object ended before its size.');
      at += part.length;
      if (!(await reading.write(part))) return;
      if (at >= end) break;
      part = await source.read(at, end);
    }
    res.end();
  } catch (thrown) {
    // Its length was announced: who reads it sees that it is not whole.
    gate.log({
      level: 'warn',
      message: 'an object was not read to its end',
      fields: { url: exchange.req.url, error: thrown },
    });
    res.destroy();
  } finally {
    reading.close();
  }
}

/** One answer that is under way. */
class Reading implements Watched {
  readonly #exchange: Exchange;
  readonly #abort = new AbortController();
  readonly #gone = () => this.#abort.abort();
  #ticksStalled = 0;

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
    exchange.gate.room.objectReaders++;
    exchange.gate.room.watch.add(this);
    exchange.res.on('close', this.#gone);
  }

  tick(): void {
    const { res, gate } = this.#exchange;
    const { watch } = gate.room;
    if (!res.writableNeedDrain) this.#ticksStalled = 0;
    else if (++this.#ticksStalled > watch.ticksOf(gate.timing.streamStallMs)) res.destroy();
  }

  /** (OA1) @returns false when the reader has gone. */
  async write(part: Uint8Array): Promise<boolean> {
    const { res } = this.#exchange;
    if (res.destroyed || this.#abort.signal.aborted) return false;
    if (res.write(Buffer.from(part.buffer, part.byteOffset, part.byteLength))) return true;
    try {
      await once(res, 'drain', { signal: this.#abort.signal });
    } catch {
      return false;
    }
    this.#ticksStalled = 0;
    return true;
  }

  close(): void {
    const { res, gate } = this.#exchange;
    gate.room.objectReaders--;
    gate.room.watch.delete(this);
    res.off('close', this.#gone);
  }
}

function answerHead(exchange: Exchange, status: number, more: readonly string[], source: ObjectSource): void {
  const { res } = exchange;
  const head = [...more, ...headersOf(source)];
  if (status === 200) head.push('content-type', typeOf(source.contentType));
  if (exchange.session !== undefined) head.push('antrail-session', exchange.session);
  res.writeHead(status, head);
  res.end();
}

function refuseRange(exchange: Exchange, start: number, size: number): void {
  const message = `The object has ${size} bytes; the range begins at ${start}.`;
  exchange.problem({ code: 'E_REQUEST_INVALID', message, details: { size } }, 416, [
    'content-range',
    `bytes */${size}`,
  ]);
}

function headersOf(source: ObjectSource): readonly string[] {
  return [...OBJECT_HEADERS, 'etag', etagOf(source)];
}

function etagOf({ version }: ObjectSource): string {
  return `"${version}"`;
}

function isUnchanged(exchange: Exchange, source: ObjectSource): boolean {
  const known = exchange.header('if-none-match');
  if (known === undefined) return false;
  const etag = etagOf(source);
  return known.trim() === '*' || known.split(',').some((one) => one.trim().replace(/^W\//, '') === etag);
}

/** What a client has of it is of this version: only then it may have just the rest. A date is never exact enough. */
function isSameAsBefore(exchange: Exchange, source: ObjectSource): boolean {
  const condition = exchange.header('if-range');
  return condition === undefined || condition.trim() === etagOf(source);
}

type RangeWanted = { start: number; end?: number } | { last: number };

/** @returns undefined for none, and for what RFC 9110 lets a server ignore. `end` is the last byte, included. */
function parseRange(header: string | undefined): RangeWanted | undefined {
  const match = /^bytes=\s*(\d{0,15})-(\d{0,15})\s*$/i.exec(header ?? '');
  if (match === null) return undefined;
  const [, first = '', last = ''] = match;
  if (first === '') return last === '' ? undefined : { last: Number(last) };
  if (last === '') return { start: Number(first) };
  if (Number(last) < Number(first)) return undefined;
  return { start: Number(first), end: Number(last) };
}

/** A type that cannot stand in a header is none. */
function typeOf(contentType: string): string {
  return /^[\t\x20-\x7e]+$/.test(contentType) ? contentType : CONTENT_BYTES;
}
