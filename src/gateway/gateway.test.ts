// Goal: every row of the HTTP table answers as it says, and calls the control plane with what was sent.
// Method: a scripted control plane behind a real loopback socket.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { PlatformError } from '../base/index.ts';
import type { ControlPlane } from './control-plane.ts';
import { createGateway, type Gateway } from './index.ts';
import {
  type Answer,
  jsonPayload,
  type ScriptedControlPlane,
  SESSION,
  scriptedControlPlane,
  send,
} from './internal.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const INVOKE = '/v1/apps/shop/functions/f';
const OBJECT = '/v1/apps/shop/buckets/b/objects/o';

async function withGateway(
  script: Partial<ControlPlane>,
  use: (url: string, plane: ScriptedControlPlane) => Promise<void>,
): Promise<void> {
  const plane = scriptedControlPlane(script);
  const gateway = await createGateway(plane, { host: '127.0.0.1', port: 0 });
  try {
    await use(gateway.url, plane);
  } finally {
    await gateway.close();
  }
}

function assertProblem(answer: Answer, status: number, code: string): any {
  assert.equal(answer.headers['content-type'], 'application/problem+json');
  const problem = answer.json();
  assert.equal(answer.status, status, problem.detail);
  assert.equal(problem.status, status);
  assert.equal(problem.code, code);
  assert.equal(problem.type, `/docs/errors#${code.toLowerCase()}`);
  assert.ok(problem.title.length > 0 && problem.detail.length > 0);
  return problem;
}

describe('with the default script', () => {
  const plane = scriptedControlPlane();
  let gateway: Gateway;
  const call = (method: string, path: string, sent = {}) => {
    plane.calls.length = 0;
    return send(gateway.url, method, path, sent);
  };
  const lastCall = () => plane.calls.at(-1);
  const lastRequest = () => lastCall()?.args[0] as any;
  before(async () => {
    gateway = await createGateway(plane, { host: '127.0.0.1', port: 0 });
  });
  after(() => gateway.close());

  test('a JSON body and a JSON answer keep their bytes, spaces and digits included', async () => {
    const body = '{"big": 12345678901234567890, "s" : "\\u00e4ä" }\n';
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON ;x=y']) {
      const answer = await call('POST', INVOKE, { body, headers: { 'content-type': type } });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-type'], 'application/json');
      assert.equal(answer.headers['antrail-session'], SESSION);
      assert.equal(answer.body.toString(), body);
    }
  });

  test('any other body is bytes, whatever its type says, and comes back as bytes', async () => {
    const body = Buffer.from([0, 1, 2, 0x7b, 255]);
    const types = ['application/octet-stream', 'image/png', 'application/vnd.x+json', 'garbage', undefined];
    for (const type of types) {
      const headers = type === undefined ? {} : { 'content-type': type };
      const answer = await call('POST', INVOKE, { body, headers });
      assert.equal(answer.status, 200);
      assert.equal(answer.headers['content-type'], 'application/octet-stream');
      assert.deepEqual(answer.body, body);
      assert.equal(lastRequest().entries[0].input.contentType, type ?? 'application/octet-stream');
    }
  });

  test('an empty body is no input, undefined is null', async () => {
    for (const headers of [{}, JSON_TYPE, { 'content-length': 0 }]) {
      const answer = await call('POST', INVOKE, { headers });
      assert.equal(answer.body.toString(), 'null');
      assert.deepEqual(lastCall()?.args, [{ app: 'shop', entries: [{ function: 'f' }], mode: 'sync' }]);
    }
  });

  test('query and headers of an invoke reach the control plane', async () => {
    const query = 'mode=async&timeoutMs=5000&priority=-3&delayMs=10&durability=none&tag=a%3Db%3Dc&tag=k=';
    const answer = await call('POST', `${INVOKE}?${query}`, { headers: { 'idempotency-key': 'k 1' } });
    assert.equal(answer.status, 202);
    assert.deepEqual(answer.json(), { session: SESSION });
    assert.equal(answer.headers.location, `/v1/sessions/${SESSION}`);
    assert.equal(answer.headers['antrail-session'], SESSION);
    assert.deepEqual(lastCall()?.args, [
      {
        app: 'shop',
        entries: [{ function: 'f' }],
        mode: 'async',
        timeoutMs: 5000,
        priority: -3,
        delayMs: 10,
        durability: 'none',
        idempotencyKey: 'k 1',
        tags: { a: 'b=c', k: '' },
      },
    ]);
  });

  test('a wrong query is refused with the parameter and what it may be, before the body', async () => {
    for (const [query, parameter, allowed] of [
      ['mode=later', 'mode', /sync or async/],
      ['timeoutMs=0', 'timeoutMs', /from 1 to/],
      ['timeoutMs=1.5', 'timeoutMs', /integer/],
      ['timeoutMs=99999999999999999999', 'timeoutMs', /integer/],
      ['timeoutMs=', 'timeoutMs', /integer/],
      ['priority=high', 'priority', /integer/],
      ['durability=full', 'durability', /none/],
      ['tag=nokey', 'tag', /key=value/],
      ['mode=sync&mode=async', 'mode', /once/],
      ['timeoutms=5', 'timeoutms', /timeoutMs/],
    ] as const) {
      const answer = await call('POST', `${INVOKE}?${query}`, { body: '{', headers: JSON_TYPE });
      const problem = assertProblem(answer, 400, 'E_REQUEST_INVALID');
      assert.equal(problem.parameter, parameter);
      assert.match(problem.detail, allowed);
      assert.equal(plane.calls.length, 0);
    }
    assert.equal((await call('POST', `${INVOKE}?timeoutms=5`)).json().didYouMean, 'timeoutMs');
    const long = { 'idempotency-key': 'x'.repeat(256) };
    assert.match(assertProblem(await call('POST', INVOKE, { headers: long }), 400, 'E_REQUEST_INVALID').detail, /255/);
  });

  test('several entries make one session', async () => {
    const body = JSON.stringify({ entries: [{ function: 'f', input: { a: 1 } }, { function: 'g' }], tags: { t: 'v' } });
    const answer = await call('POST', '/v1/apps/shop/sessions?timeoutMs=9', { body, headers: JSON_TYPE });
    assert.deepEqual(answer.json(), { a: 1 });
    const entries = [{ function: 'f', input: jsonPayload({ a: 1 }) }, { function: 'g' }];
    assert.deepEqual(lastCall()?.args, [{ app: 'shop', entries, mode: 'sync', timeoutMs: 9, tags: { t: 'v' } }]);
    for (const wrong of [
      '{}',
      '[]',
      '1',
      '{"entries":[]}',
      '{"entries":[{}]}',
      '{"entries":[{"function":"f"}],"tags":1}',
    ]) {
      assertProblem(await call('POST', '/v1/apps/shop/sessions', { body: wrong }), 400, 'E_REQUEST_INVALID');
    }
    assertProblem(await call('POST', '/v1/apps/shop/sessions'), 400, 'E_REQUEST_INVALID');
  });

  test('an object from outside', async () => {
    const query = 'session=e1-9-x&group=g&open=true&idleTimeoutMs=7';
    const answer = await call('POST', `${OBJECT}?${query}`, { body: 'x', headers: { 'content-type': 'text/plain' } });
    assert.equal(answer.status, 202);
    assert.deepEqual(answer.json(), { session: 'e1-9-x', duplicate: false });
    assert.equal(answer.headers['antrail-session'], 'e1-9-x');
    const payload = { contentType: 'text/plain', bytes: Buffer.from('x') };
    const where = { app: 'shop', bucket: 'b', name: 'o' };
    assert.deepEqual(lastCall()?.args, [
      { ...where, payload, session: 'e1-9-x', group: 'g', open: true, idleTimeoutMs: 7 },
    ]);
    const empty = await call('POST', OBJECT);
    assert.deepEqual(empty.json(), { session: SESSION, duplicate: false });
    assert.equal(lastRequest().payload.bytes.length, 0);
  });

  test('names are one percent-encoded segment', async () => {
    for (const name of ['a/b', 'a%2Fb', '%', 'ä ö', '..', '?x=1#y', ':id', '*', 'a+b', 'x;y', '\u{1f41c}']) {
      const path = `/v1/apps/shop/buckets/b/objects/${encodeURIComponent(name)}`;
      const answer = await call('POST', path, { body: 'x' });
      assert.equal(answer.status, 202, path);
      assert.equal(lastRequest().name, name);
    }
    const long = await call('POST', `/v1/apps/shop/buckets/b/objects/${'x'.repeat(1025)}`, { body: 'x' });
    assertProblem(long, 400, 'E_REQUEST_INVALID');
    assertProblem(await call('POST', '/v1/apps/shop/buckets/b/objects/', { body: 'x' }), 400, 'E_REQUEST_INVALID');
  });

  test('close and join from outside', async () => {
    assert.equal((await call('POST', `/v1/sessions/${SESSION}/buckets/b/close`)).status, 202);
    assert.deepEqual(lastCall(), { method: 'closeGroup', args: [SESSION, 'b'] });
    for (const join of [{ names: ['x', 'y'] }, { names: [] }, { count: 0 }]) {
      const answer = await call('POST', `/v1/sessions/${SESSION}/buckets/b/join`, { body: JSON.stringify(join) });
      assert.equal(answer.status, 202);
      assert.equal(answer.headers['antrail-session'], SESSION);
      assert.deepEqual(lastCall(), { method: 'join', args: [SESSION, 'b', join] });
    }
    for (const wrong of ['{}', '{"names":["x"],"count":1}', '{"names":[1]}', '{"count":-1}', '{"count":1.5}']) {
      const answer = await call('POST', `/v1/sessions/${SESSION}/buckets/b/join`, { body: wrong });
      assertProblem(answer, 400, 'E_REQUEST_INVALID');
    }
  });

  test('an object has its own type, ranges and HEAD', async () => {
    const whole = await call('GET', `${OBJECT}?session=${SESSION}`);
    assert.equal(whole.status, 200);
    assert.equal(whole.body.toString(), '0123456789');
    assert.equal(whole.headers['content-type'], 'text/plain');
    assert.equal(whole.headers['accept-ranges'], 'bytes');
    assert.equal(whole.headers['antrail-session'], SESSION);
    assert.match(String(whole.headers['content-security-policy']), /sandbox/);
    assert.deepEqual(lastCall()?.args.slice(0, 4), ['shop', 'b', 'o', SESSION]);
    assert.equal(whole.headers.etag, '"v1"');
    for (const [range, status, bytes, contentRange] of [
      ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
      ['bytes=0-0', 206, '0', 'bytes 0-0/10'],
      ['bytes=7-', 206, '789', 'bytes 7-9/10'],
      ['bytes=7-99', 206, '789', 'bytes 7-9/10'],
      ['bytes=-3', 206, '789', 'bytes 7-9/10'],
      ['bytes=-99', 206, '0123456789', 'bytes 0-9/10'],
      ['bytes=5-2', 200, '0123456789', undefined],
      ['bytes=0-1,3-4', 200, '0123456789', undefined],
      ['lines=1-2', 200, '0123456789', undefined],
      ['bytes=-', 200, '0123456789', undefined],
    ] as const) {
      const answer = await call('GET', OBJECT, { headers: { range } });
      assert.equal(answer.status, status, range);
      assert.equal(answer.body.toString(), bytes, range);
      assert.equal(answer.headers['content-range'], contentRange);
    }
    for (const range of ['bytes=10-', 'bytes=99-100', 'bytes=-0']) {
      const answer = await call('GET', OBJECT, { headers: { range } });
      assertProblem(answer, 416, 'E_REQUEST_INVALID');
      assert.equal(answer.headers['content-range'], 'bytes */10');
    }
    const head = await call('HEAD', OBJECT, { headers: { range: 'bytes=1-2' } });
    assert.equal(head.status, 200);
    assert.equal(head.headers['content-length'], '10');
    assert.equal(head.body.length, 0);
  });

  test('what a client has of an object is not sent again, and the rest only if it is of the same', async () => {
    for (const known of ['"v1"', 'W/"v1"', '"x", "v1"', '*']) {
      const answer = await call('GET', OBJECT, { headers: { 'if-none-match': known } });
      assert.equal(answer.status, 304, known);
      assert.equal(answer.body.length, 0);
      assert.equal(answer.headers.etag, '"v1"');
    }
    assert.equal((await call('HEAD', OBJECT, { headers: { 'if-none-match': '"v1"' } })).status, 304);
    assert.equal((await call('GET', OBJECT, { headers: { 'if-none-match': '"v2"' } })).status, 200);
    const same = await call('GET', OBJECT, { headers: { range: 'bytes=7-', 'if-range': '"v1"' } });
    assert.equal(same.body.toString(), '789');
    for (const other of ['"v2"', 'W/"v1"', 'Mon, 30 Nov 2026 12:00:00 GMT']) {
      for (const range of ['bytes=7-', 'bytes=-3', 'bytes=50-']) {
        const whole = await call('GET', OBJECT, { headers: { range, 'if-range': other } });
        assert.equal(whole.status, 200, other);
        assert.equal(whole.body.toString(), '0123456789');
      }
    }
  });

  test('sessions: record, result, trace, list, cancel, retry, fork', async () => {
    const record = await call('GET', `/v1/sessions/${SESSION}`);
    assert.equal(record.json().state, 'running');
    assert.equal(record.headers['antrail-session'], SESSION);
    assert.deepEqual((await call('GET', `/v1/sessions/${SESSION}/trace`)).json(), {
      session: SESSION,
      invocations: [],
    });
    assert.deepEqual((await call('GET', `/v1/sessions/${SESSION}/result`)).json(), { done: true });
    assert.deepEqual(lastCall()?.args, [SESSION, 0]);
    await call('GET', `/v1/sessions/${SESSION}/result?waitMs=50`);
    assert.equal(lastCall()?.args[1], 50);
    assert.ok(lastCall()?.args[2] instanceof AbortSignal);

    const list = await call('GET', '/v1/sessions?app=shop&state=parked&tag=k%3Dv&limit=3&cursor=c');
    assert.equal(list.json().cursor, 'next');
    assert.deepEqual(lastCall()?.args, [{ app: 'shop', state: 'parked', tag: ['k', 'v'], limit: 3, cursor: 'c' }]);
    await call('GET', '/v1/sessions');
    assert.deepEqual(lastCall()?.args, [{ limit: 100 }]);
    assertProblem(await call('GET', '/v1/sessions?state=done'), 400, 'E_REQUEST_INVALID');
    assertProblem(await call('GET', '/v1/sessions?limit=0'), 400, 'E_REQUEST_INVALID');

    const cancelled = await call('DELETE', `/v1/sessions/${SESSION}`);
    assert.equal(cancelled.status, 202);
    assert.deepEqual(cancelled.json(), { session: SESSION });
    for (const [verb, session] of [
      ['retry', 'e1-2-abc'],
      ['fork', 'e1-3-abc'],
    ] as const) {
      const answer = await call('POST', `/v1/sessions/${SESSION}/${verb}`);
      assert.equal(answer.status, 202);
      assert.deepEqual(answer.json(), { session });
      assert.equal(answer.headers['antrail-session'], session);
      assert.equal(answer.headers.location, `/v1/sessions/${session}`);
    }
  });

  test('apps and triggers', async () => {
    const manifest = { entry: 'f', functions: { f: { kind: 'fn' } }, buckets: {} };
    const bundle = { manifest, main: 'a.js', files: { 'a.js': 'x', 'b.bin': { base64: 'AA==' } } };
    const put = await call('PUT', '/v1/apps/shop', { body: JSON.stringify({ ...bundle, env: { K: 'v' } }) });
    assert.equal(put.status, 201);
    assert.deepEqual(put.json(), { app: 'shop', version: 'v1' });
    assert.deepEqual(lastCall()?.args, ['shop', bundle, { K: 'v' }]);
    for (const wrong of [
      { ...bundle, main: 'c.js' },
      { ...bundle, files: { 'a.js': 1 } },
      { ...bundle, manifest: 1 },
      { ...bundle, env: { K: 1 } },
    ]) {
      const answer = await call('PUT', '/v1/apps/shop', { body: JSON.stringify(wrong) });
      assert.equal(assertProblem(answer, 422, 'E_APP_INVALID').problems.length, 1);
    }
    assert.equal(assertProblem(await call('PUT', '/v1/apps/shop', { body: '{' }), 400, 'E_JSON_INVALID').position, 1);
    assert.equal((await call('GET', '/v1/apps')).json().apps[0].app, 'shop');
    assert.equal((await call('GET', '/v1/apps/shop')).json().versions[0].usedBy, 0);
    assert.equal(assertProblem(await call('GET', '/v1/apps/shp'), 404, 'E_APP_UNKNOWN').didYouMean, 'shop');
    assert.equal((await call('DELETE', '/v1/apps/shop')).status, 200);

    const path = '/v1/apps/shop/buckets/b/triggers/t';
    const trigger = await call('PUT', path, { body: '{"kind":"immediate","run":"f"}' });
    assert.equal(trigger.status, 201);
    assert.deepEqual(lastCall()?.args, ['shop', 'b', 't', { kind: 'immediate', run: 'f' }]);
    assertProblem(await call('PUT', path, { body: '{"run":"f"}' }), 422, 'E_APP_INVALID');
    assert.equal((await call('DELETE', path)).status, 200);
    assert.deepEqual(lastCall(), { method: 'deleteTrigger', args: ['shop', 'b', 't'] });
  });

  test('what operators look at', async () => {
    for (const [path, key] of [
      ['/v1/objects', 'apps'],
      ['/v1/instances', 'instances'],
      ['/v1/nodes', 'nodes'],
      ['/v1/dead-letters', 'deadLetters'],
      ['/v1/limits', 'limits'],
    ] as const) {
      const answer = await call('GET', path);
      assert.equal(answer.status, 200);
      assert.ok(Array.isArray(answer.json()[key]), path);
      assert.equal((await call('HEAD', path)).headers['content-length'], String(answer.body.length));
    }
    await call('GET', '/v1/objects?app=shop');
    assert.deepEqual(lastCall(), { method: 'objects', args: [{ app: 'shop' }] });
    assert.deepEqual((await call('GET', '/healthz')).json(), { status: 'ok' });
    assert.deepEqual((await call('GET', '/readyz')).json(), { status: 'ready' });
    const metrics = await call('GET', '/metrics');
    assert.match(String(metrics.headers['content-type']), /^text\/plain; version=0\.0\.4/);
    const home = await call('GET', '/');
    assert.match(String(home.headers['content-type']), /^text\/html/);
    for (const [, href = ''] of home.body.toString().matchAll(/href="([^"]+)"/g)) {
      assert.equal((await call('GET', href)).status, 200, href);
    }
  });

  test('an unrouted path names the nearest route, a wrong method the right ones', async () => {
    const typo = assertProblem(await call('POST', '/v1/apps/shop/function/f', { body: 'x' }), 404, 'E_REQUEST_INVALID');
    assert.equal(typo.didYouMean, 'POST /v1/apps/{app}/functions/{function}');
    assert.match(typo.detail, /POST \/v1\/apps\/\{app\}\/functions\/\{function\}/);
    assert.match(assertProblem(await call('GET', '/nothing/of/the/kind'), 404, 'E_REQUEST_INVALID').detail, /openapi/);
    const method = await call('PATCH', '/v1/apps/shop');
    assertProblem(method, 405, 'E_REQUEST_INVALID');
    assert.deepEqual(String(method.headers.allow).split(', ').toSorted(), ['DELETE', 'GET', 'HEAD', 'PUT']);
  });
});

test('the same content again is 200', () =>
  withGateway(
    {
      deploy: async (app) => ({ app, version: 'v7', created: false }),
      putTrigger: async () => ({ created: false }),
    },
    async (url) => {
      const bundle = { manifest: { entry: 'f', functions: {} }, main: 'a', files: { a: '' } };
      const put = await send(url, 'PUT', '/v1/apps/shop', { body: JSON.stringify(bundle) });
      assert.equal(put.status, 200);
      assert.deepEqual(put.json(), { app: 'shop', version: 'v7' });
      const trigger = await send(url, 'PUT', '/v1/apps/a/buckets/b/triggers/t', { body: '{"kind":"immediate"}' });
      assert.equal(trigger.status, 200);
    },
  ));

test('a result that is not there yet is 202, and waiting ends when the client goes', () =>
  withGateway(
    {
      sessionResult: async (_session, waitMs, signal) => {
        if (waitMs > 0) await new Promise((resolve) => signal?.addEventListener('abort', resolve));
        return undefined;
      },
    },
    async (url, plane) => {
      const answer = await send(url, 'GET', `/v1/sessions/${SESSION}/result`);
      assert.equal(answer.status, 202);
      assert.deepEqual(answer.json(), { session: SESSION });
      assert.equal(answer.headers['antrail-session'], SESSION);
      const gone = new AbortController();
      const waiting = fetch(`${url}/v1/sessions/${SESSION}/result?waitMs=60000`, { signal: gone.signal });
      while (plane.calls.length < 2) await new Promise((resolve) => setImmediate(resolve));
      gone.abort();
      await assert.rejects(waiting, { name: 'AbortError' });
      const signal = plane.calls[1]?.args[2] as AbortSignal;
      while (!signal.aborted) await new Promise((resolve) => setImmediate(resolve));
    },
  ));

test('a client that hangs up during a sync call cancels nothing, and the gateway goes on', async () => {
  let answerNow = () => {};
  const outcome = new Promise<void>((resolve) => {
    answerNow = resolve;
  }).then(() => ({ ok: true, payload: jsonPayload(1) }) as const);
  await withGateway({ startSession: async () => ({ session: SESSION, outcome }) }, async (url, plane) => {
    const gone = new AbortController();
    const call = fetch(url + INVOKE, { method: 'POST', signal: gone.signal });
    while (plane.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    gone.abort();
    await assert.rejects(call, { name: 'AbortError' });
    answerNow();
    assert.equal((await send(url, 'POST', INVOKE)).status, 200);
    assert.deepEqual([...new Set(plane.calls.map(({ method }) => method))], ['startSession']);
  });
});

describe('errors', () => {
  const failing = (error: unknown): Partial<ControlPlane> => ({
    startSession: async () => {
      throw error;
    },
  });

  test('what a user function threw: message, class, stack, cause chain, session', () => {
    const cause = {
      code: 'E_FUNCTION_FAILED',
      message: 'inner',
      name: 'RangeError',
      stack: 'RangeError: inner',
    } as const;
    const middle = { code: 'E_FUNCTION_FAILED', message: 'middle', name: 'Error', cause } as const;
    const error = {
      code: 'E_FUNCTION_FAILED',
      message: 'no such campaign',
      name: 'TypeError',
      stack: 'TypeError: no such campaign\n    at f (app.ts:3:1)',
      cause: middle,
      details: { invocation: 'i1', status: 200, code: 'E_FAKE' },
    } as const;
    const outcome = Promise.resolve({ ok: false, error } as const);
    return withGateway(
      { startSession: async () => ({ session: SESSION, outcome }), sessionResult: () => outcome },
      async (url) => {
        const answers = [await send(url, 'POST', INVOKE), await send(url, 'GET', `/v1/sessions/${SESSION}/result`)];
        for (const answer of answers) {
          const problem = assertProblem(answer, 500, 'E_FUNCTION_FAILED');
          assert.equal(answer.headers['antrail-session'], SESSION);
          assert.equal(problem.session, SESSION);
          assert.equal(problem.detail, 'no such campaign');
          assert.equal(problem.name, 'TypeError');
          assert.equal(problem.stack, error.stack);
          assert.equal(problem.invocation, 'i1');
          assert.equal(problem.cause.message, 'middle');
          assert.equal(problem.cause.cause.name, 'RangeError');
        }
      },
    );
  });

  test('every code has its status; overload says when to come back', async () => {
    const { ERROR_TABLE } = await import('../base/index.ts');
    for (const [code, row] of Object.entries(ERROR_TABLE)) {
      const error = new PlatformError(code as keyof typeof ERROR_TABLE, 'why', { details: { session: SESSION, x: 1 } });
      await withGateway(failing(error), async (url) => {
        const answer = await send(url, 'POST', INVOKE);
        const problem = assertProblem(answer, row.status, code);
        assert.equal(problem.x, 1);
        assert.equal(problem.title, row.title);
        if (code !== 'E_SESSION_UNKNOWN') assert.equal(answer.headers['antrail-session'], SESSION);
        const overload = row.status === 429 || row.status === 503;
        assert.equal(answer.headers['retry-after'], overload ? '1' : undefined);
        if (code !== 'E_FUNCTION_FAILED') assert.equal(problem.stack, undefined);
      });
    }
  });

  test('retry-after is in whole seconds, rounded up, never 0', async () => {
    for (const [retryAfterMs, seconds] of [
      [0, '1'],
      [1, '1'],
      [1000, '1'],
      [1001, '2'],
      [60_000, '60'],
    ] as const) {
      await withGateway(failing(new PlatformError('E_TIMEOUT', 'late', { retryAfterMs })), async (url) => {
        const answer = await send(url, 'POST', INVOKE);
        assert.equal(assertProblem(answer, 504, 'E_TIMEOUT').retryAfterMs, retryAfterMs);
        assert.equal(answer.headers['retry-after'], seconds);
      });
    }
  });

  test('what is not ours is logged and tells nothing', async () => {
    for (const thrown of [new Error('password=123'), 'text', undefined, { code: 'E_TIMEOUT' }]) {
      const plane = scriptedControlPlane(failing(thrown));
      const logged: any[] = [];
      const gateway = await createGateway(plane, { host: '127.0.0.1', port: 0, log: (entry) => logged.push(entry) });
      try {
        const answer = await send(gateway.url, 'POST', INVOKE);
        assertProblem(answer, 500, 'E_INTERNAL');
        assert.doesNotMatch(answer.body.toString(), /password|gateway\.ts|at /);
        assert.equal(logged.length, 1);
        assert.equal(logged[0].fields.error, thrown);
      } finally {
        await gateway.close();
      }
    }
  });

  test('details that JSON cannot say cost the details, not the answer', () =>
    withGateway(failing(new PlatformError('E_PARKED', 'parked', { details: { n: 1n } })), async (url) => {
      assertProblem(await send(url, 'POST', INVOKE), 409, 'E_PARKED');
    }));

  test('an unknown session is not repeated as a header, a lost one is', () =>
    withGateway(
      {
        getSession: async (session) => {
          throw new PlatformError(session === 'lost' ? 'E_SESSION_LOST' : 'E_SESSION_UNKNOWN', 'why');
        },
      },
      async (url) => {
        const lost = await send(url, 'GET', '/v1/sessions/lost');
        assert.equal(assertProblem(lost, 404, 'E_SESSION_LOST').session, 'lost');
        assert.equal(lost.headers['antrail-session'], 'lost');
        for (const id of ['x', '%0d%0aset-cookie:%20a', encodeURIComponent('ä'), 'x'.repeat(900)]) {
          const unknown = await send(url, 'GET', `/v1/sessions/${id}`);
          assertProblem(unknown, 404, 'E_SESSION_UNKNOWN');
          assert.equal(unknown.headers['antrail-session'], undefined);
        }
      },
    ));

  test('readiness says what is missing', () =>
    withGateway({ notReady: () => 'recovering the log' }, async (url) => {
      const answer = await send(url, 'GET', '/readyz');
      assert.equal(assertProblem(answer, 503, 'E_NODE_LOST').reason, 'recovering the log');
      assert.equal(answer.headers['retry-after'], '1');
    }));
});
