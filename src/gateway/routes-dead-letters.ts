// Invocations that failed for good: looking at them, trying them again, dropping them.

import { DEAD_LETTER_LIST_MAX, NAME_CHARS_MAX } from './limits.ts';
import { type Route, route } from './route.ts';
import { sessionPath } from './routes-invoke.ts';

const UNKNOWN = ['E_DEAD_LETTER_UNKNOWN'] as const;

export const DEAD_LETTER_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/dead-letters',
    id: 'deadLetters',
    summary: 'Invocations that failed for good, newest first',
    query: {
      app: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'of this app' },
      limit: {
        type: 'integer',
        min: 1,
        max: DEAD_LETTER_LIST_MAX,
        about: `at most so many (${DEAD_LETTER_LIST_MAX})`,
      },
    },
    answers: { 200: { about: 'the dead letters', body: { schema: 'DeadLetters' } } },
    codes: ['E_APP_UNKNOWN'],
    async answer(exchange, { limit = DEAD_LETTER_LIST_MAX, ...rest }) {
      exchange.json(200, await exchange.gate.controlPlane.deadLetters({ ...rest, limit }));
    },
  }),
  route({
    method: 'GET',
    path: '/v1/dead-letters/{id}',
    id: 'deadLetter',
    summary: 'One of them: error with stack and causes, attempts, inputs',
    answers: { 200: { about: 'the dead letter', body: { schema: 'DeadLetter' } } },
    codes: UNKNOWN,
    async answer(exchange) {
      exchange.json(200, await exchange.gate.controlPlane.deadLetter(exchange.param('id')));
    },
  }),
  route({
    method: 'POST',
    path: '/v1/dead-letters/{id}/retry',
    id: 'retryDeadLetter',
    summary: 'Tries it again in a session of its own, on the current version; repeatable',
    about:
      'The session names the failed one in `causes`. While it lives, a repeat answers with the same session. When it ' +
      'completes the letter is gone; when it fails the letter stays with the new error.',
    answers: { 202: { about: 'accepted', body: { schema: 'SessionReference' } } },
    codes: [...UNKNOWN, 'E_APP_UNKNOWN', 'E_FUNCTION_UNKNOWN', 'E_OBJECT_GONE', 'E_QUEUE_FULL'],
    async answer(exchange) {
      const { session } = await exchange.gate.controlPlane.retryDeadLetter(exchange.param('id'));
      exchange.session = session;
      exchange.json(202, { session }, ['location', sessionPath(session)]);
    },
  }),
  route({
    method: 'DELETE',
    path: '/v1/dead-letters/{id}',
    id: 'dropDeadLetter',
    summary: 'Drops it; a retry that runs goes on',
    answers: { 202: { about: 'it is gone', body: { schema: 'DeadLetterReference' } } },
    codes: UNKNOWN,
    async answer(exchange) {
      const id = exchange.param('id');
      await exchange.gate.controlPlane.dropDeadLetter(id);
      exchange.json(202, { id });
    },
  }),
];
