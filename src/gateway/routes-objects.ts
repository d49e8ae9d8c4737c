// Objects: read as files, listed and deleted when persisted.

import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, NAME_CHARS_MAX } from './limits.ts';
import { answerObject } from './object-answer.ts';
import { type Route, route } from './route.ts';

const SESSION_QUERY = {
  session: {
    type: 'text',
    charsMax: NAME_CHARS_MAX,
    about: 'the object of this session; without it the persisted object of that name',
  },
} as const;

export const OBJECT_ROUTES: readonly Route[] = [
  route({
    method: 'GET',
    path: '/v1/apps/{app}/buckets/{bucket}/objects/{name}',
    id: 'getObject',
    summary: 'The bytes of an object, in its own content type',
    about:
      'One range of bytes can be asked for; several, and other units, get the whole object. The ETag is that of these ' +
      'bytes for ever: If-None-Match is answered with 304, a range with another If-Range with the whole object.',
    query: SESSION_QUERY,
    headers: {
      range: 'bytes=first-last, bytes=first- or bytes=-count',
      'if-range': 'the ETag of what the client has',
      'if-none-match': 'ETags of what the client has',
    },
    answers: {
      200: { about: 'the object', body: 'value' },
      206: { about: 'the range', body: 'value' },
      304: { about: 'the client has it', body: 'empty' },
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
      await answerObject(exchange, (first) => controlPlane.openObject(app, bucket, name, session, first));
    },
  }),
  route({
    method: 'DELETE',
    path: '/v1/apps/{app}/buckets/{bucket}/objects/{name}',
    id: 'deleteObject',
    summary: 'Removes a persisted object',
    about: 'Objects of sessions go with their session. Who reads it meanwhile reads it to the end.',
    answers: { 200: { about: 'it is gone', body: { schema: 'Any' } } },
    codes: ['E_APP_UNKNOWN', 'E_BUCKET_UNKNOWN', 'E_OBJECT_UNKNOWN'],
    async answer(exchange) {
      const [app, bucket, name] = [exchange.param('app'), exchange.param('bucket'), exchange.param('name')];
      await exchange.gate.controlPlane.deleteObject(app, bucket, name);
      exchange.json(200, { app, bucket, name });
    },
  }),
  route({
    method: 'GET',
    path: '/v1/apps/{app}/buckets/{bucket}/objects',
    id: 'listObjects',
    summary: 'Persisted objects of a bucket, by name',
    query: {
      prefix: { type: 'text', charsMax: NAME_CHARS_MAX, about: 'names that begin with this' },
      limit: { type: 'integer', min: 1, max: LIST_LIMIT_MAX, about: `default ${LIST_LIMIT_DEFAULT}` },
      cursor: { type: 'text', charsMax: 8 * NAME_CHARS_MAX, about: 'of the answer before' },
    },
    answers: {
      200: { about: '`{objects: [{name, size, contentType, session, at}], cursor?}`', body: { schema: 'Any' } },
    },
    codes: ['E_APP_UNKNOWN', 'E_BUCKET_UNKNOWN'],
    async answer(exchange, { prefix, limit = LIST_LIMIT_DEFAULT, cursor }) {
      const query = {
        limit,
        ...(prefix === undefined ? {} : { prefix }),
        ...(cursor === undefined ? {} : { cursor }),
      };
      const listed = await exchange.gate.controlPlane.listObjects(
        exchange.param('app'),
        exchange.param('bucket'),
        query,
      );
      exchange.json(200, listed);
    },
  }),
];
