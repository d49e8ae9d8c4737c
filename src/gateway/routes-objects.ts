// Objects as files: their own type, ranges, HEAD.

import { CONTENT_BYTES } from '../protocol/index.ts';
import type { ObjectRange } from './control-plane.ts';
import type { Exchange } from './exchange.ts';
import { NAME_CHARS_MAX } from './limits.ts';
import { type Route, route } from './route.ts';

/** What users store is shown, never run, although it comes from where the console comes from. */
const OBJECT_HEADERS = [
  'accept-ranges',
  'bytes',
  'x-content-type-options',
  'nosniff',
  'content-security-policy',
  "default-src 'none'; sandbox",
] as const;

export const OBJECT_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/apps/{app}/buckets/{bucket}/objects/{name}',
    id: 'getObject',
    summary: 'The bytes of an object, in its own content type',
    about: 'One range of bytes can be asked for; several, and other units, get the whole object.',
    query: {
      session: {
        type: 'text',
        charsMax: NAME_CHARS_MAX,
        about: 'the object of this session; without it the persisted object of that name',
      },
    },
    headers: { range: 'bytes=first-last, bytes=first- or bytes=-count' },
    answers: {
      200: { about: 'the object', body: 'value' },
      206: { about: 'the range', body: 'value' },
    },
    codes: [
      'E_APP_UNKNOWN',
      'E_BUCKET_UNKNOWN',
      'E_OBJECT_UNKNOWN',
      'E_OBJECT_GONE',
      'E_SESSION_UNKNOWN',
      'E_SESSION_LOST',
    ],
    async answer(exchange, { session }) {
      const [app, bucket, name] = [exchange.param('app'), exchange.param('bucket'), exchange.param('name')];
      exchange.claimSession(session);
      const { controlPlane } = exchange.gate;
      const get = (range?: { start: number; end?: number }) =>
        controlPlane.getObject(app, bucket, name, session, range);
      if (exchange.req.method === 'HEAD') return answerHead(exchange, await get({ start: 0, end: 0 }));
      const range = parseRange(exchange.header('range'));
      if (range === undefined) {
        const { payload } = await get();
        return exchange.bytes(200, typeOf(payload.contentType), payload.bytes, OBJECT_HEADERS);
      }
      if (!('last' in range)) return answerRange(exchange, range.start, await get(range));
      // The last bytes: where they begin takes the size.
      const { size } = await get({ start: 0, end: 0 });
      const start = range.last === 0 ? size : Math.max(0, size - range.last);
      return answerRange(exchange, start, await get({ start }));
    },
  }),
];

function answerHead(exchange: Exchange, { payload, size }: ObjectRange): void {
  const { res } = exchange;
  const head = ['content-type', typeOf(payload.contentType), 'content-length', String(size), ...OBJECT_HEADERS];
  if (exchange.session !== undefined) head.push('antrail-session', exchange.session);
  res.writeHead(200, head);
  res.end();
}

function answerRange(exchange: Exchange, start: number, { payload, size }: ObjectRange): void {
  const length = payload.bytes.byteLength;
  if (start >= size || length === 0) {
    const message = `The object has ${size} bytes; the range begins at ${start}.`;
    exchange.problem({ code: 'E_REQUEST_INVALID', message, details: { size } }, 416, [
      'content-range',
      `bytes */${size}`,
    ]);
    return;
  }
  const contentRange = `bytes ${start}-${start + length - 1}/${size}`;
  exchange.bytes(206, typeOf(payload.contentType), payload.bytes, [...OBJECT_HEADERS, 'content-range', contentRange]);
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
