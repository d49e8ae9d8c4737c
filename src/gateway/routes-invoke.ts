// Starting sessions: one function, several, or an object put into a bucket from outside.

import { PlatformError } from '../base/index.ts';
import { CONTENT_BYTES, CONTENT_JSON, type Payload } from '../protocol/index.ts';
import type { StartRequest } from './control-plane.ts';
import type { Exchange } from './exchange.ts';
import {
  DURATION_MS_MAX,
  ENTRIES_MAX,
  IDEMPOTENCY_KEY_CHARS_MAX,
  JOIN_NAMES_MAX,
  NAME_CHARS_MAX,
  PRIORITY_MAX,
  TAG_CHARS_MAX,
  TAGS_MAX,
} from './limits.ts';
import type { QueryOf } from './query.ts';
import { type Route, route } from './route.ts';

const START_QUERY = {
  mode: { type: 'enum', values: ['sync', 'async'], about: 'sync (default): the result; async: 202 once it is kept' },
  timeoutMs: { type: 'integer', min: 1, max: DURATION_MS_MAX, about: 'deadline of the session' },
  priority: { type: 'integer', min: -PRIORITY_MAX, max: PRIORITY_MAX, about: 'higher goes first' },
  delayMs: { type: 'integer', min: 0, max: DURATION_MS_MAX, about: 'starts so much later' },
  durability: { type: 'enum', values: ['none'], about: 'none: an async start is not written before the 202' },
} as const;
const TAG = { tag: { type: 'tags', about: 'key=value, repeatable; `GET /v1/sessions?tag=` finds it' } } as const;
const START_ANSWERS = {
  200: { about: 'the result', body: 'value' },
  202: { about: 'started', body: { schema: 'SessionReference' } },
} as const;
const START_CODES = [
  'E_APP_UNKNOWN',
  'E_FUNCTION_UNKNOWN',
  'E_JSON_INVALID',
  'E_BODY_TOO_LARGE',
  'E_INPUT_INVALID',
  'E_IDEMPOTENCY_MISMATCH',
  'E_CANCELLED',
  'E_PARKED',
  'E_RATE_LIMITED',
  'E_QUOTA_EXCEEDED',
  'E_FUNCTION_FAILED',
  'E_QUEUE_FULL',
  'E_NODE_LOST',
  'E_TIMEOUT',
] as const;
const IDEMPOTENCY_HEADER = {
  'idempotency-key': `1 to ${IDEMPOTENCY_KEY_CHARS_MAX} characters; same key and body: same session and bytes`,
};
const EMPTY_BYTES: Payload = { contentType: CONTENT_BYTES, bytes: new Uint8Array(0) };

type StartQuery = QueryOf<typeof START_QUERY & typeof TAG>;

export const INVOKE_ROUTES: readonly Route[] = [
  route({
    method: 'POST',
    path: '/v1/apps/{app}/functions/{function}',
    id: 'invoke',
    hot: true,
    summary: 'Starts a session with one entry function',
    about:
      'A client that hangs up during a synchronous call does not cancel the session; DELETE /v1/sessions/{id} does.',
    query: { ...START_QUERY, ...TAG },
    headers: IDEMPOTENCY_HEADER,
    body: 'value',
    bodyOptional: true,
    answers: START_ANSWERS,
    codes: START_CODES,
    async answer(exchange, query) {
      const app = exchange.param('app');
      const name = exchange.param('function');
      const key = idempotencyKey(exchange);
      if (key === undefined && query.delayMs === undefined && !exchange.isTooLong) {
        const refusal = exchange.gate.controlPlane.refusal(app, exchange.announcedBytes);
        if (refusal !== undefined) return exchange.refuse(refusal);
      }
      const input = await exchange.value();
      const entry = input === undefined ? { function: name } : { function: name, input };
      await start(exchange, app, [entry], query, key, query.tag);
    },
  }),
  route({
    method: 'POST',
    path: '/v1/apps/{app}/sessions',
    id: 'startSession',
    summary: 'Starts one session with several entry functions',
    query: START_QUERY,
    headers: IDEMPOTENCY_HEADER,
    body: { schema: 'SessionStart' },
    answers: START_ANSWERS,
    codes: START_CODES,
    async answer(exchange, query) {
      const app = exchange.param('app');
      const key = idempotencyKey(exchange);
      const body = await exchange.jsonObject('{ entries: [{ function, input? }…], tags? }');
      await start(exchange, app, entriesOf(body.entries), query, key, tagsOf(body.tags));
    },
  }),
  route({
    method: 'POST',
    path: '/v1/apps/{app}/buckets/{bucket}/objects/{name}',
    id: 'putObject',
    summary: 'Puts an object into a bucket from outside; its triggers fire',
    query: {
      session: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'a running session; without it a new one is opened' },
      group: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'group of the object' },
      open: { type: 'boolean', about: 'true: the new session stays open for more objects' },
      idleTimeoutMs: {
        type: 'integer',
        min: 1,
        max: DURATION_MS_MAX,
        about: 'an open session ends after so long without anything (600000)',
      },
    },
    body: 'value',
    bodyOptional: true,
    answers: { 202: { about: 'taken', body: { schema: 'ObjectTaken' } } },
    codes: [
      'E_APP_UNKNOWN',
      'E_BUCKET_UNKNOWN',
      'E_SESSION_UNKNOWN',
      'E_SESSION_LOST',
      'E_SESSION_ENDED',
      'E_OBJECT_EXISTS',
      'E_BODY_TOO_LARGE',
      'E_INPUT_INVALID',
      'E_QUOTA_EXCEEDED',
      'E_QUEUE_FULL',
    ],
    async answer(exchange, query) {
      const app = exchange.param('app');
      const bucket = exchange.param('bucket');
      const name = exchange.param('name');
      exchange.claimSession(query.session);
      const payload = (await exchange.value()) ?? EMPTY_BYTES;
      const taken = await exchange.gate.controlPlane.putObject({ app, bucket, name, payload, ...query });
      exchange.session = taken.session;
      exchange.json(202, { session: taken.session, duplicate: taken.duplicate });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sessions/{id}/buckets/{bucket}/close',
    id: 'closeGroup',
    summary: 'What ctx.closeGroup does, from outside',
    answers: { 202: { about: 'accepted', body: { schema: 'SessionReference' } } },
    codes: ['E_SESSION_UNKNOWN', 'E_SESSION_LOST', 'E_SESSION_ENDED', 'E_BUCKET_UNKNOWN'],
    async answer(exchange) {
      const session = exchange.param('id');
      exchange.claimSession(session);
      await exchange.gate.controlPlane.closeGroup(session, exchange.param('bucket'));
      exchange.json(202, { session });
    },
  }),
  route({
    method: 'POST',
    path: '/v1/sessions/{id}/buckets/{bucket}/join',
    id: 'join',
    summary: 'What ctx.join does, from outside',
    body: { schema: 'Join' },
    answers: { 202: { about: 'accepted', body: { schema: 'SessionReference' } } },
    codes: ['E_SESSION_UNKNOWN', 'E_SESSION_LOST', 'E_SESSION_ENDED', 'E_BUCKET_UNKNOWN'],
    async answer(exchange) {
      const session = exchange.param('id');
      const bucket = exchange.param('bucket');
      exchange.claimSession(session);
      const join = joinOf(await exchange.jsonObject('{ names: [text…] } or { count: number }'));
      await exchange.gate.controlPlane.join(session, bucket, join);
      exchange.json(202, { session });
    },
  }),
];

/** @returns when the answer is written. */
async function start(
  exchange: Exchange,
  app: string,
  entries: StartRequest['entries'],
  query: StartQuery,
  idempotencyKey: string | undefined,
  tags: StartRequest['tags'],
): Promise<void> {
  const { tag: _, mode = 'sync', ...rest } = query;
  const started = await exchange.gate.controlPlane.startSession({
    app,
    entries,
    mode,
    ...rest,
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(tags === undefined ? {} : { tags }),
  });
  exchange.session = started.session;
  if (mode === 'sync') exchange.outcome(await started.outcome);
  else exchange.json(202, { session: started.session }, ['location', sessionPath(started.session)]);
}

export function sessionPath(session: string): string {
  return `/v1/sessions/${encodeURIComponent(session)}`;
}

function idempotencyKey(exchange: Exchange): string | undefined {
  const key = exchange.header('idempotency-key');
  if (key === undefined || (key.length > 0 && key.length <= IDEMPOTENCY_KEY_CHARS_MAX)) return key;
  throw new PlatformError(
    'E_REQUEST_INVALID',
    `Header \`idempotency-key\` must have 1 to ${IDEMPOTENCY_KEY_CHARS_MAX} characters; it has ${key.length}.`,
    { details: { parameter: 'idempotency-key' } },
  );
}

function entriesOf(value: unknown): StartRequest['entries'] {
  if (!Array.isArray(value) || value.length === 0 || value.length > ENTRIES_MAX) {
    throw bodyInvalid('entries', `a list of 1 to ${ENTRIES_MAX} entries { function, input? }`);
  }
  return value.map((entry: unknown, i) => {
    const { function: name, input } = (entry ?? {}) as { function?: unknown; input?: unknown };
    if (typeof name !== 'string' || name.length === 0)
      throw bodyInvalid(`entries[${i}].function`, 'the name of a function');
    if (input === undefined) return { function: name };
    return { function: name, input: { contentType: CONTENT_JSON, bytes: Buffer.from(JSON.stringify(input)) } };
  });
}

function tagsOf(value: unknown): Record<string, string> | undefined {
  if (value === undefined) return undefined;
  const tags = typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : undefined;
  const fits = (text: unknown) => typeof text === 'string' && text.length <= TAG_CHARS_MAX;
  if (
    tags === undefined ||
    tags.length > TAGS_MAX ||
    !tags.every(([key, text]) => key !== '' && fits(key) && fits(text))
  ) {
    throw bodyInvalid('tags', `an object of at most ${TAGS_MAX} texts of at most ${TAG_CHARS_MAX} characters`);
  }
  return Object.fromEntries(tags) as Record<string, string>;
}

function joinOf(body: Record<string, unknown>): { names: readonly string[] } | { count: number } {
  const { names, count } = body;
  if ((names === undefined) === (count === undefined))
    throw bodyInvalid('names` or `count', 'given, and only one of them');
  if (names === undefined) {
    if (!Number.isSafeInteger(count) || (count as number) < 0) throw bodyInvalid('count', 'an integer from 0 up');
    return { count: count as number };
  }
  if (!Array.isArray(names) || names.length > JOIN_NAMES_MAX || !names.every((name) => typeof name === 'string')) {
    throw bodyInvalid('names', `a list of at most ${JOIN_NAMES_MAX} texts`);
  }
  return { names };
}

function bodyInvalid(field: string, allowed: string): PlatformError {
  return new PlatformError('E_REQUEST_INVALID', `\`${field}\` in the body must be ${allowed}.`, {
    details: { parameter: field, allowed },
  });
}
