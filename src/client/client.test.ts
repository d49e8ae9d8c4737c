// Goal: the client speaks the server's HTTP. Method: a real HTTP server that answers by script.

import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { connect, connectServer, PlatformError } from './index.ts';

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}
type Answer = (request: Seen, response: ServerResponse, nth: number) => void;

async function serve(t: TestContext, answer: Answer): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url = '', headers } = request;
    seen.push({ method, url, headers, body: Buffer.concat(chunks) });
    answer(seen.at(-1) as Seen, response, seen.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

function json(response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', 'antrail-session': 'd1-1-a', ...headers });
  response.end(JSON.stringify(value));
}
const problem = (response: ServerResponse, status: number, body: Record<string, unknown>) =>
  json(
    response,
    status,
    { type: 'about:blank', title: 't', status, ...body },
    { 'content-type': 'application/problem+json' },
  );

test('invoke sends JSON as JSON, bytes as bytes, nothing as nothing, and decodes the same', async (t) => {
  const { url, seen } = await serve(t, ({ headers, body }, response) => {
    if (headers['content-type'] === undefined) return json(response, 200, null);
    response.writeHead(200, { 'content-type': headers['content-type'] });
    response.end(body);
  });
  const client = connect({ app: 'my-app', url: `${url}/`, token: 'secret' });
  assert.deepEqual(await client.invoke('f', { a: [1, 'ä'] }), { a: [1, 'ä'] });
  assert.equal(seen[0]?.url, '/v1/apps/my-app/functions/f?mode=sync');
  assert.equal(seen[0]?.headers.authorization, 'Bearer secret');
  assert.equal(seen[0]?.headers['content-type'], 'application/json');
  assert.deepEqual(await client.invoke('f', new Uint8Array([0, 255])), new Uint8Array([0, 255]));
  assert.equal(seen[1]?.headers['content-type'], 'application/octet-stream');
  assert.equal(await client.invoke('f'), null);
  assert.equal(seen[2]?.body.length, 0);
  assert.equal(await client.invoke('f', 'text'), 'text');
  assert.equal(await client.invoke('f', null), null);
  assert.equal(seen[4]?.body.toString(), 'null');
  assert.deepEqual(await client.invoke('f', new Blob(['ab'])), new Uint8Array([97, 98]));
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new Uint8Array([1]));
      controller.enqueue(new Uint8Array([2]));
      controller.close();
    },
  });
  assert.deepEqual(await client.invoke('f', stream), new Uint8Array([1, 2]));
});

test('options become query and headers', async (t) => {
  const { url, seen } = await serve(t, (_, response) => json(response, 202, { session: 'd1-1-a' }));
  const client = connect({ app: 'a', url });
  const options = { timeoutMs: 5, priority: 2, delayMs: 7, durability: 'none', idempotencyKey: 'k' } as const;
  const handle = await client.start('f', 1, options);
  assert.equal(handle.session, 'd1-1-a');
  assert.equal(seen[0]?.url, '/v1/apps/a/functions/f?mode=async&timeoutMs=5&priority=2&delayMs=7&durability=none');
  assert.equal(seen[0]?.headers['idempotency-key'], 'k');
  await client.start('f', new Uint8Array([1]), { tags: { user: 'u', 'a b': '1=2' } });
  assert.equal(seen[1]?.url, '/v1/apps/a/functions/f?mode=async&tag=user%3Du&tag=a+b%3D1%3D2');
  await client.startMany([{ function: 'f', input: 1 }, { function: 'g' }], { tags: { user: 'u' } });
  assert.equal(seen[2]?.url, '/v1/apps/a/sessions?mode=async');
  assert.deepEqual(JSON.parse(String(seen[2]?.body)), {
    entries: [{ function: 'f', input: 1 }, { function: 'g' }],
    tags: { user: 'u' },
  });
  await assert.rejects(client.startMany([{ function: 'f', input: new Uint8Array(1) }]), {
    code: 'E_VALUE_UNSERIALISABLE',
    message: /entries\[0\]\.input/,
  });
});

test('a refused value never leaves and is named by its path', async (t) => {
  const { url, seen } = await serve(t, (_, response) => json(response, 200, null));
  await assert.rejects(connect({ app: 'a', url }).invoke('f', { items: [{ when: 1n }] }), {
    code: 'E_VALUE_UNSERIALISABLE',
    message: /^input\.items\[0\]\.when is a BigInt/,
  });
  assert.equal(seen.length, 0);
});

test('a failed function is a PlatformError with message, stack, cause, session', async (t) => {
  const { url } = await serve(t, (_, response) =>
    problem(response, 500, {
      code: 'E_FUNCTION_FAILED',
      detail: 'no such campaign',
      name: 'TypeError',
      stack: 'TypeError: no such campaign\n    at lookup (app.ts:12:3)',
      cause: { code: 'E_FUNCTION_FAILED', message: 'inner', name: 'Error', cause: { message: 'innermost' } },
    }),
  );
  await assert.rejects(connect({ app: 'a', url }).invoke('f'), (error) => {
    assert.ok(error instanceof PlatformError);
    assert.equal(error.code, 'E_FUNCTION_FAILED');
    assert.equal(error.message, 'no such campaign');
    assert.equal(error.details.session, 'd1-1-a');
    assert.equal(error.details.name, 'TypeError');
    assert.match(String(error.stack), /^TypeError: no such campaign\n {4}at lookup \(app\.ts:12:3\)/);
    const cause = error.cause as PlatformError;
    assert.equal(cause.message, 'inner');
    assert.equal((cause.cause as Error).message, 'innermost');
    return true;
  });
});

test('details of usage errors arrive; codes from a newer server are kept', async (t) => {
  const { url } = await serve(t, ({ url: path }, response) => {
    if (path.includes('/g')) problem(response, 418, { code: 'E_TEAPOT', detail: 'short' });
    else problem(response, 404, { code: 'E_FUNCTION_UNKNOWN', detail: 'no f', didYouMean: 'ff' });
  });
  const client = connect({ app: 'a', url });
  await assert.rejects(client.invoke('f'), (error: any) => error.details.didYouMean === 'ff' && error.status === 404);
  await assert.rejects(
    client.invoke('g'),
    (error: any) => error.code === 'E_INTERNAL' && error.details.code === 'E_TEAPOT',
  );
});

test('a server that is not there says how to start one; one that is not antrail is told apart', async (t) => {
  const free = await serve(t, (_, response) => {
    response.writeHead(502, { 'content-type': 'text/html' });
    response.end('<h1>Bad gateway</h1>');
  });
  const gone = createServer();
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve));
  const { port } = gone.address() as AddressInfo;
  await new Promise((resolve) => gone.close(resolve));
  await assert.rejects(connect({ app: 'a', url: `http://127.0.0.1:${port}` }).invoke('f'), {
    code: 'E_SERVER_UNREACHABLE',
    message: /No server answers at http:\/\/127\.0\.0\.1:\d+ \(ECONNREFUSED\).*antrail serve/,
  });
  await assert.rejects(connect({ app: 'a', url: free.url }).invoke('f'), {
    code: 'E_SERVER_UNREACHABLE',
    message: /502.*Bad gateway/,
  });
  assert.throws(() => connect({ app: 'a', url: 'localhost:7070' }), { code: 'E_OPTION_INVALID' });
});

test('refusals are repeated only when asked for, and only at the door', async (t) => {
  const { url, seen } = await serve(t, ({ url: path }, response, nth) => {
    if (path.includes('lost')) return problem(response, 503, { code: 'E_NODE_LOST', detail: 'gone', retryAfterMs: 1 });
    if (nth < 3) return problem(response, 503, { code: 'E_QUEUE_FULL', detail: 'full', retryAfterMs: 1 });
    return json(response, 200, nth);
  });
  await assert.rejects(connect({ app: 'a', url }).invoke('f'), { code: 'E_QUEUE_FULL', retryAfterMs: 1 });
  const patient = connect({ app: 'a', url, retry: true });
  assert.equal(await patient.invoke('f'), 3);
  await assert.rejects(patient.invoke('lost'), { code: 'E_NODE_LOST' });
  assert.equal(seen.length, 4);
});

test('result waits over 202 and gives what the sync call would', async (t) => {
  const { url, seen } = await serve(t, (_, response, nth) =>
    nth < 3 ? json(response, 202, { session: 's' }) : json(response, 200, { done: true }),
  );
  assert.deepEqual(await connect({ app: 'a', url }).handle('d1/1').result(), { done: true });
  assert.equal(seen[2]?.url, '/v1/sessions/d1%2F1/result?waitMs=30000');
});

test('outputs come once each and in order over broken connections', async (t) => {
  const event = (n: number, data: object) =>
    `id: ${n}\nevent: output\ndata: ${JSON.stringify({ bucket: 'b', name: `n${n}`, size: 1, contentType: 'x', ...data })}\n\n`;
  const { url, seen } = await serve(t, ({ url: path }, response, nth) => {
    if (path === '/v1/large') {
      response.writeHead(200, { 'content-type': 'application/octet-stream' });
      return response.end('large');
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (nth === 1) {
      response.write(event(1, { json: { a: 1 } }) + event(2, { base64: 'AP8=' }));
      setImmediate(() => response.destroy());
      return;
    }
    // A server that replays more than was asked for.
    return response.end(`${event(2, { base64: 'AP8=' })}${event(3, { href: '/v1/large' })}event: end\ndata: {}\n\n`);
  });
  const values = [];
  for await (const output of connect({ app: 'a', url }).handle('s').outputs()) values.push([output.n, output.value]);
  assert.deepEqual(values, [
    [1, { a: 1 }],
    [2, new Uint8Array([0, 255])],
    [3, new Uint8Array(Buffer.from('large'))],
  ]);
  assert.equal(seen[0]?.headers['last-event-id'], undefined);
  assert.equal(seen[1]?.headers['last-event-id'], '2');
});

test('a problem told inside a stream is thrown with its code', async (t) => {
  const { url } = await serve(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end('event: problem\ndata: {"code":"E_SESSION_LOST","status":404,"detail":"gone"}\n\n');
  });
  await assert.rejects(connect({ app: 'a', url }).handle('s').outputs().next(), { code: 'E_SESSION_LOST' });
  await assert.rejects(connectServer({ url }).logs().next(), { code: 'E_SESSION_LOST', message: 'gone' });
});

test('an error of the session ends outputs without a retry', async (t) => {
  const { url, seen } = await serve(t, (_, response) =>
    problem(response, 404, { code: 'E_SESSION_LOST', detail: 'lost in a restart' }),
  );
  const outputs = connect({ app: 'a', url }).handle('s').outputs();
  await assert.rejects(outputs.next(), { code: 'E_SESSION_LOST' });
  assert.equal(seen.length, 1);
});

test('put, get with ranges, close, join, cancel and state use the documented requests', async (t) => {
  const { url, seen } = await serve(t, ({ url: path, headers }, response) => {
    if (path.includes('/state/none')) return problem(response, 404, { code: 'E_KEY_UNKNOWN', detail: 'no' });
    if (headers.range !== undefined) {
      response.writeHead(206, { 'content-type': 'application/json' });
      return response.end('"ab');
    }
    return json(response, 200, { session: 's', duplicate: false });
  });
  const client = connect({ app: 'a', url });
  const put = await client.put('in', 'x/y', new Uint8Array([1]), { session: 's', group: 'g', open: true });
  assert.deepEqual(put, { session: 's', duplicate: false });
  await client.get('in', 'x', { session: 's' });
  const part = await client.get('in', 'x', { range: { start: 0, end: 2 } });
  assert.deepEqual(part, new Uint8Array(Buffer.from('"ab')));
  const { stream } = await client.getStream('in', 'x');
  assert.equal(await new Response(stream).text(), '{"session":"s","duplicate":false}');
  await client.close('in', { session: 's' });
  await client.join('in', ['p', 'q'], { session: 's' });
  await client.join('in', 3, { session: 's' });
  await client.handle('s').cancel();
  assert.equal(await client.state.get('none'), undefined);
  await client.state.delete('none');
  await client.state.put('k/1', { v: 1 });
  assert.deepEqual(
    seen.map(({ method, url: path, headers, body }) =>
      [method, path, headers.range, body.length > 1 ? String(body) : undefined].filter((part) => part !== undefined),
    ),
    [
      ['POST', '/v1/apps/a/buckets/in/objects/x%2Fy?session=s&group=g&open=true'],
      ['GET', '/v1/apps/a/buckets/in/objects/x?session=s'],
      ['GET', '/v1/apps/a/buckets/in/objects/x', 'bytes=0-2'],
      ['GET', '/v1/apps/a/buckets/in/objects/x'],
      ['POST', '/v1/sessions/s/buckets/in/close'],
      ['POST', '/v1/sessions/s/buckets/in/join', '{"names":["p","q"]}'],
      ['POST', '/v1/sessions/s/buckets/in/join', '{"count":3}'],
      ['DELETE', '/v1/sessions/s'],
      ['GET', '/v1/apps/a/state/none'],
      ['DELETE', '/v1/apps/a/state/none'],
      ['PUT', '/v1/apps/a/state/k%2F1', '{"v":1}'],
    ],
  );
});

test('an aborted wait rejects with its reason', async (t) => {
  const { url } = await serve(t, () => undefined);
  const abort = new AbortController();
  const result = connect({ app: 'a', url }).handle('s').result({ signal: abort.signal });
  setImmediate(() => abort.abort(new Error('enough')));
  await assert.rejects(result, /enough/);
});

test('the server client deploys, and reads logs as lines or as events', async (t) => {
  const { url, seen } = await serve(t, ({ method, url: path }, response) => {
    if (method === 'PUT') return json(response, 201, { app: 'a', version: 'v1' });
    if (path.includes('session=')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      return response.end('event: log\ndata: {"message":"one"}\n\n');
    }
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    return response.end('{"message":"one"}\n{"message":"two"}\n');
  });
  const server = connectServer({ url });
  const bundle = { manifest: { entry: 'f', functions: {}, buckets: {} }, main: 'm.js', files: { 'm.js': '' } };
  assert.deepEqual(await server.deploy('a', bundle, { K: 'v' }), { app: 'a', version: 'v1', created: true });
  assert.deepEqual(JSON.parse(String(seen[0]?.body)), { ...bundle, env: { K: 'v' } });
  const messages = [];
  for await (const entry of server.logs({ app: 'a', tail: 5 })) messages.push(entry.message);
  for await (const entry of server.logs({ session: 's' })) messages.push(entry.message);
  assert.deepEqual(messages, ['one', 'two', 'one']);
  assert.equal(seen[1]?.url, '/v1/logs?app=a&tail=5');
});
