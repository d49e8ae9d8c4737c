// Goal: the way around the router leads where the router would have led, and to nothing else.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { plainRoutes } from './plain-routes.ts';
import { ROUTES } from './routes.ts';

const find = plainRoutes(ROUTES);

test('an invoke with plain names is found, with or without a query', () => {
  for (const rest of ['', '?', '?mode=sync&timeoutMs=5']) {
    const found = find('POST', `/v1/apps/my-app/functions/a.b_$1${rest}`);
    assert.equal(found?.route.id, 'invoke');
    assert.deepEqual({ ...found?.params }, { app: 'my-app', function: 'a.b_$1' });
  }
});

test('everything else is left to the router', () => {
  for (const [method, url] of [
    ['GET', '/v1/apps/a/functions/f'],
    ['POST', '/v1/apps/a/functions/f/'],
    ['POST', '/v1/apps/a/functions/f/g'],
    ['POST', '/v1/apps/a/functions/%66'],
    ['POST', '/v1/apps//functions/f'],
    ['POST', '/v1/apps/a/functions/'],
    ['POST', '/V1/apps/a/functions/f'],
    ['POST', '/v1/apps/a/functions/f#x'],
    ['POST', 'http://127.0.0.1/v1/apps/a/functions/f'],
    ['POST', '/v1/apps/a/sessions'],
    [undefined, undefined],
  ]) {
    assert.equal(find(method, url), undefined, `${method} ${url}`);
  }
});
