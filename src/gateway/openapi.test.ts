// Goal: the OpenAPI document says what is routed, no more and no less, and refers to nothing that is not there.
// Method: the document as served, against the route table and against the router.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createGateway, type Gateway } from './index.ts';
import { scriptedControlPlane, send } from './internal.ts';
import { ROUTES } from './routes.ts';

let gateway: Gateway;
let document: any;

before(async () => {
  gateway = await createGateway(scriptedControlPlane(), { host: '127.0.0.1', port: 0 });
  document = (await send(gateway.url, 'GET', '/v1/openapi.json')).json();
});
after(() => gateway.close());

const operations = () =>
  Object.entries<any>(document.paths).flatMap(([path, item]) =>
    Object.entries<any>(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );

test('every route that clients rely on is there', () => {
  const wanted = `PUT GET DELETE /v1/apps/{app}
    GET /v1/apps
    PUT DELETE /v1/apps/{app}/buckets/{bucket}/triggers/{trigger}
    POST /v1/apps/{app}/functions/{function}
    POST /v1/apps/{app}/sessions
    POST GET DELETE /v1/apps/{app}/buckets/{bucket}/objects/{name}
    GET /v1/apps/{app}/buckets/{bucket}/objects
    POST /v1/sessions/{id}/buckets/{bucket}/close
    POST /v1/sessions/{id}/buckets/{bucket}/join
    GET DELETE /v1/sessions/{id}
    GET /v1/sessions/{id}/result
    GET /v1/sessions/{id}/trace
    GET /v1/sessions/{id}/outputs
    GET /v1/sessions
    POST /v1/sessions/{id}/retry
    POST /v1/sessions/{id}/fork
    GET /v1/objects
    GET /v1/instances
    GET /v1/nodes
    GET /v1/dead-letters
    GET DELETE /v1/dead-letters/{id}
    POST /v1/dead-letters/{id}/retry
    GET /v1/limits
    GET /v1/logs
    GET /healthz
    GET /readyz
    GET /metrics
    GET /v1/openapi.json
    GET /`
    .split('\n')
    .flatMap((line) => {
      const words = line.trim().split(' ');
      const path = words.pop();
      return words.map((method) => `${method} ${path}`);
    });
  assert.deepEqual(
    operations()
      .map(({ method, path }) => `${method} ${path}`)
      .toSorted(),
    wanted.toSorted(),
  );
});

test('what is documented is routed, what is routed is documented', async () => {
  assert.equal(document.openapi, '3.1.0');
  assert.deepEqual(
    operations()
      .map(({ operation }) => operation.operationId)
      .toSorted(),
    ROUTES.map(({ id }) => id).toSorted(),
  );
  assert.equal(new Set(ROUTES.map(({ id }) => id)).size, ROUTES.length);
  for (const { method, path } of operations()) {
    const filled = path.replaceAll(/\{\w+\}/g, 'x');
    const { status } = await send(gateway.url, method, `${filled}?no-such-parameter=1`);
    assert.equal(status, 400, `${method} ${path} must be routed`);
  }
});

test('parameters are those of path, query and headers', () => {
  for (const { path, operation } of operations()) {
    const named = (place: string) => operation.parameters.filter((p: any) => p.in === place).map((p: any) => p.name);
    assert.deepEqual(
      named('path'),
      Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name),
    );
    const row = ROUTES.find(({ id }) => id === operation.operationId);
    assert.deepEqual(named('query'), Object.keys(row?.query ?? {}));
    assert.deepEqual(named('header'), Object.keys(row?.headers ?? {}));
    assert.ok(Object.keys(operation.responses).some((status) => status.startsWith('2')));
    assert.ok(operation.responses[403] !== undefined && operation.responses[500] !== undefined);
  }
});

test('every reference leads to a schema', () => {
  const text = JSON.stringify(document);
  const references = Array.from(text.matchAll(/"#\/components\/schemas\/(\w+)"/g), ([, name]) => name ?? '');
  assert.ok(references.length > 50);
  for (const name of references) assert.ok(Object.hasOwn(document.components.schemas, name), name);
});
