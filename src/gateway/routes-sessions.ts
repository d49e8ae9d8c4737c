// Looking at sessions, following them, ending and repeating them.

import { PlatformError } from '../base/index.ts';
import type { SessionState } from '../protocol/index.ts';
import type { OutputEvent } from './control-plane.ts';
import { type Exchange, isJson } from './exchange.ts';
import {
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  NAME_CHARS_MAX,
  OUTPUT_INLINE_BYTES_MAX,
  RESULT_WAIT_MS_MAX,
} from './limits.ts';
import { type Route, route } from './route.ts';
import { sessionPath } from './routes-invoke.ts';
import { streamAnswer } from './streams.ts';

const STATES: readonly SessionState[] = ['running', 'completed', 'failed', 'cancelled', 'parked'];
const UNKNOWN = ['E_SESSION_UNKNOWN', 'E_SESSION_LOST'] as const;

export const SESSION_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/sessions',
    id: 'listSessions',
    summary: 'Sessions, newest first',
    query: {
      app: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'of this app' },
      state: { type: 'enum', values: STATES, about: 'in this state' },
      tag: { type: 'tags', about: 'key=value: with this tag' },
      limit: { type: 'integer', min: 1, max: LIST_LIMIT_MAX, about: `at most so many (${LIST_LIMIT_DEFAULT})` },
      cursor: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'where the last page ended' },
    },
    answers: { 200: { about: 'one page', body: { schema: 'SessionPage' } } },
    async answer(exchange, query) {
      const { tag, limit = LIST_LIMIT_DEFAULT, ...rest } = query;
      const tags = Object.entries(tag ?? {});
      if (tags.length > 1)
        throw new PlatformError('E_REQUEST_INVALID', 'Query parameter `tag` must be given once here.');
      const [first] = tags;
      exchange.json(
        200,
        await exchange.gate.controlPlane.listSessions({
          ...rest,
          limit,
          ...(first === undefined ? {} : { tag: first }),
        }),
      );
    },
  }),
  route({
    method: 'GET',
    path: '/v1/sessions/{id}',
    id: 'getSession',
    summary: 'The record of a session',
    answers: { 200: { about: 'the record', body: { schema: 'Session' } } },
    codes: UNKNOWN,
    async answer(exchange) {
      const session = exchange.param('id');
      exchange.claimSession(session);
      exchange.json(200, await exchange.gate.controlPlane.getSession(session));
    },
  }),
  route({
    method: 'GET',
    path: '/v1/sessions/{id}/result',
    id: 'sessionResult',
    summary: 'Answers as the synchronous call would; 202 before',
    query: { waitMs: { type: 'integer', min: 0, max: RESULT_WAIT_MS_MAX, about: 'waits so long for it (0)' } },
    answers: {
      200: { about: 'the result', body: 'value' },
      202: { about: 'still running', body: { schema: 'SessionReference' } },
    },
    codes: [...UNKNOWN, 'E_FUNCTION_FAILED', 'E_CANCELLED', 'E_PARKED', 'E_TIMEOUT'],
    async answer(exchange, { waitMs = 0 }) {
      const session = exchange.param('id');
      exchange.claimSession(session);
      const outcome = await resultWithin(exchange, session, waitMs);
      if (outcome !== undefined) exchange.outcome(outcome);
      else exchange.json(202, { session });
    },
  }),
  route({
    method: 'GET',
    path: '/v1/sessions/{id}/trace',
    id: 'sessionTrace',
    summary: 'Invocations and attempts of a session',
    answers: { 200: { about: 'the trace', body: { schema: 'Trace' } } },
    codes: UNKNOWN,
    async answer(exchange) {
      const session = exchange.param('id');
      exchange.claimSession(session);
      exchange.json(200, await exchange.gate.controlPlane.trace(session));
    },
  }),
  route({
    method: 'GET',
    path: '/v1/sessions/{id}/outputs',
    id: 'sessionOutputs',
    summary: 'Output objects as server-sent events, until the session ends',
    about:
      'Events `output` with `id: n` and `data: {bucket, name, size, contentType, json | base64 | href}`: ' +
      `\`href\` when it is larger than ${OUTPUT_INLINE_BYTES_MAX} bytes. At last an event \`end\`.`,
    headers: { 'last-event-id': 'goes on after this event; without it all are sent' },
    answers: { 200: { about: 'events', body: 'events' } },
    codes: [...UNKNOWN, 'E_RATE_LIMITED'],
    async answer(exchange) {
      const session = exchange.param('id');
      exchange.claimSession(session);
      const after = lastEventId(exchange);
      const { app } = await exchange.gate.controlPlane.getSession(session);
      await streamAnswer(
        exchange,
        {
          contentType: 'text/event-stream; charset=utf-8',
          heartbeat: ':\n\n',
          write: (output: OutputEvent) => outputEvent(app, session, output),
          end: `event: end\ndata: ${JSON.stringify({ session })}\n\n`,
          problem: (text) => `event: problem\ndata: ${text}\n\n`,
        },
        (signal) => exchange.gate.controlPlane.outputs(session, after, signal),
      );
    },
  }),
  route({
    method: 'DELETE',
    path: '/v1/sessions/{id}',
    id: 'cancelSession',
    summary: 'Cancels a session; repeatable',
    answers: { 202: { about: 'accepted', body: { schema: 'SessionReference' } } },
    codes: UNKNOWN,
    async answer(exchange) {
      const session = exchange.param('id');
      exchange.claimSession(session);
      await exchange.gate.controlPlane.cancelSession(session);
      exchange.json(202, { session });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sessions/{id}/retry',
    id: 'retrySession',
    summary: 'Resumes a parked session, else starts a new one with the same input (`retryOf`)',
    answers: { 202: { about: 'accepted', body: { schema: 'SessionReference' } } },
    codes: [...UNKNOWN, 'E_QUEUE_FULL'],
    answer: (exchange) => again(exchange, exchange.gate.controlPlane.retrySession(exchange.param('id'))),
  }),
  route({
    method: 'POST',
    path: '/v1/sessions/{id}/fork',
    id: 'forkSession',
    summary: 'Starts a new session with the same input (`forkOf`)',
    answers: { 202: { about: 'accepted', body: { schema: 'SessionReference' } } },
    codes: [...UNKNOWN, 'E_QUEUE_FULL'],
    answer: (exchange) => again(exchange, exchange.gate.controlPlane.forkSession(exchange.param('id'))),
  }),
];

async function again(exchange: Exchange, begun: Promise<{ session: string }>): Promise<void> {
  exchange.claimSession(exchange.param('id'));
  const { session } = await begun;
  exchange.session = session;
  exchange.json(202, { session }, ['location', sessionPath(session)]);
}

/** Whoever hangs up while waiting is no longer waited for. */
async function resultWithin(exchange: Exchange, session: string, waitMs: number) {
  const { controlPlane } = exchange.gate;
  if (waitMs === 0) return controlPlane.sessionResult(session, 0);
  const gone = new AbortController();
  const onClose = () => gone.abort();
  exchange.res.once('close', onClose);
  try {
    return await controlPlane.sessionResult(session, waitMs, gone.signal);
  } finally {
    exchange.res.off('close', onClose);
  }
}

function lastEventId(exchange: Exchange): number {
  const text = exchange.header('last-event-id');
  if (text === undefined || text === '') return 0;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new PlatformError(
    'E_REQUEST_INVALID',
    'Header `last-event-id` must be the number of an event of this stream.',
    {
      details: { parameter: 'last-event-id' },
    },
  );
}

function outputEvent(app: string, session: string, output: OutputEvent): string {
  const { bucket, name, payload } = output;
  const size = payload.bytes.byteLength;
  const data = JSON.stringify({ bucket, name, size, contentType: payload.contentType });
  return `id: ${output.n}\nevent: output\ndata: ${data.slice(0, -1)},${contentField(app, session, output)}}\n\n`;
}

function contentField(app: string, session: string, { bucket, name, payload }: OutputEvent): string {
  const { bytes } = payload;
  if (bytes.byteLength > OUTPUT_INLINE_BYTES_MAX) {
    return `"href":${JSON.stringify(objectPath(app, bucket, name, session))}`;
  }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!isJson(payload.contentType)) return `"base64":"${buffer.toString('base64')}"`;
  // JSON has line breaks between tokens only, and an event's data must have none.
  return `"json":${buffer.toString('utf8').replace(/[\r\n]+/g, ' ')}`;
}

export function objectPath(app: string, bucket: string, name: string, session: string): string {
  const [a, b, n, s] = [app, bucket, name, session].map(encodeURIComponent);
  return `/v1/apps/${a}/buckets/${b}/objects/${n}?session=${s}`;
}
