// The route table: everything that the gateway answers is a row here.

import { openApiOf } from './openapi.ts';
import { type Route, route } from './route.ts';
import { APP_ROUTES } from './routes-apps.ts';
import { DEAD_LETTER_ROUTES } from './routes-dead-letters.ts';
import { INVOKE_ROUTES } from './routes-invoke.ts';
import { LOOK_ROUTES } from './routes-look.ts';
import { OBJECT_ROUTES } from './routes-objects.ts';
import { SESSION_ROUTES } from './routes-sessions.ts';

const openApiRoute = route({
  method: 'GET',
  path: '/v1/openapi.json',
  id: 'openapi',
  summary: 'This interface as OpenAPI 3.1',
  answers: { 200: { about: 'the document', body: { schema: 'Any' } } },
  async answer(exchange) {
    exchange.text(200, 'application/json', openApiText);
  },
});

export const ROUTES: readonly Route[] = [
  ...INVOKE_ROUTES,
  ...APP_ROUTES,
  ...OBJECT_ROUTES,
  ...SESSION_ROUTES,
  ...DEAD_LETTER_ROUTES,
  ...LOOK_ROUTES,
  openApiRoute,
];

const openApiText = JSON.stringify(openApiOf(ROUTES));
