// What operators and their tools look at.

import { PlatformError } from '../base/index.ts';
import type { LogEntry } from '../protocol/index.ts';
import { HOME_PAGE } from './home-page.ts';
import { LOG_TAIL_DEFAULT, LOG_TAIL_MAX, NAME_CHARS_MAX } from './limits.ts';
import { type Route, route } from './route.ts';
import { streamAnswer } from './streams.ts';

const APP = { app: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'of this app' } } as const;

export const LOOK_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/objects',
    id: 'objects',
    summary: 'Memory and storage that the objects of each app take',
    about:
      'Bytes of objects: in memory, on disk because memory had no room, persisted. With `detail` by session too, which adds ' +
      'up, and the pages of each app host; with `waits` the triggers that hold objects and wait for more.',
    query: {
      ...APP,
      session: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'details of this session only' },
      detail: { type: 'boolean', about: 'by session and app host' },
      waits: { type: 'boolean', about: 'triggers that wait half-filled' },
    },
    answers: { 200: { about: 'per app', body: { schema: 'Objects' } } },
    codes: ['E_APP_UNKNOWN'],
    async answer(exchange, { app, session, detail, waits }) {
      const query = {
        ...(app === undefined ? {} : { app }),
        ...(session === undefined ? {} : { session, detail: true }),
        ...(detail === undefined ? {} : { detail }),
        ...(waits === undefined ? {} : { waits }),
      };
      exchange.json(200, await exchange.gate.controlPlane.objects(query));
    },
  }),
  route({
    method: 'GET',
    path: '/v1/instances',
    id: 'instances',
    summary: 'Live instances, and why they were started and kept',
    query: APP,
    answers: { 200: { about: 'the instances', body: { schema: 'Instances' } } },
    codes: ['E_APP_UNKNOWN'],
    async answer(exchange, { app }) {
      exchange.json(200, await exchange.gate.controlPlane.instances(app));
    },
  }),
  route({
    method: 'GET',
    path: '/v1/nodes',
    id: 'nodes',
    summary: 'Worker nodes',
    answers: { 200: { about: 'the nodes', body: { schema: 'Nodes' } } },
    async answer(exchange) {
      exchange.json(200, await exchange.gate.controlPlane.nodes());
    },
  }),
  route({
    method: 'GET',
    path: '/v1/limits',
    id: 'limits',
    summary: 'Limits and defaults in force, and why they are so',
    answers: { 200: { about: 'the limits', body: { schema: 'Limits' } } },
    async answer(exchange) {
      exchange.json(200, await exchange.gate.controlPlane.limits());
    },
  }),
  route({
    method: 'GET',
    path: '/v1/logs',
    id: 'logs',
    summary: 'What functions logged: one JSON object a line',
    query: {
      ...APP,
      session: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'of this session' },
      follow: { type: 'boolean', about: 'true: goes on with what is logged from now on (false)' },
      tail: { type: 'integer', min: 0, max: LOG_TAIL_MAX, about: `begins with the last so many (${LOG_TAIL_DEFAULT})` },
    },
    answers: { 200: { about: 'log entries', body: 'lines' } },
    codes: ['E_APP_UNKNOWN', 'E_RATE_LIMITED'],
    async answer(exchange, query) {
      const { follow = false, tail = LOG_TAIL_DEFAULT, ...rest } = query;
      exchange.claimSession(query.session);
      await streamAnswer(
        exchange,
        { contentType: 'application/x-ndjson', write: (entry: LogEntry) => `${JSON.stringify(entry)}\n` },
        (signal) => exchange.gate.controlPlane.logs({ ...rest, follow, tail }, signal),
      );
    },
  }),
  route({
    method: 'GET',
    path: '/healthz',
    id: 'healthz',
    summary: 'Whether the process answers',
    answers: { 200: { about: 'it does', body: { schema: 'Status' } } },
    async answer(exchange) {
      exchange.json(200, { status: 'ok' });
    },
  }),
  route({
    method: 'GET',
    path: '/readyz',
    id: 'readyz',
    summary: 'Whether it takes work',
    answers: { 200: { about: 'it does', body: { schema: 'Status' } } },
    codes: ['E_NODE_LOST', 'E_SHUTTING_DOWN'],
    async answer(exchange) {
      const reason = exchange.gate.controlPlane.notReady();
      if (reason === undefined) return exchange.json(200, { status: 'ready' });
      throw new PlatformError('E_NODE_LOST', `Not ready: ${reason}`, { details: { reason }, retryAfterMs: 1_000 });
    },
  }),
  route({
    method: 'GET',
    path: '/metrics',
    id: 'metrics',
    summary: 'Metrics for Prometheus',
    answers: { 200: { about: 'text exposition format 0.0.4', body: 'text' } },
    async answer(exchange) {
      exchange.text(200, 'text/plain; version=0.0.4; charset=utf-8', await exchange.gate.controlPlane.metrics());
    },
  }),
  route({
    method: 'GET',
    path: '/',
    id: 'home',
    summary: 'A page for people',
    answers: { 200: { about: 'the page', body: 'html' } },
    async answer(exchange) {
      exchange.text(200, 'text/html; charset=utf-8', HOME_PAGE, [
        'content-security-policy',
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
      ]);
    },
  }),
];
