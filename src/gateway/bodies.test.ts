// Goal: bodies arrive whole, are refused early and understandably, and cannot hold the gateway.
// Method: a scripted control plane behind a real loopback socket; short times where waiting is the point.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { ControlPlane } from './control-plane.ts';
import { createGateway, type Gateway } from './index.ts';
import { scriptedControlPlane, send, sendRaw } from './internal.ts';
import type { GatewayTiming } from './limits.ts';

const INVOKE = '/v1/apps/shop/functions/f';
const LIMIT = 1024 * 1024;

async function open(t: TestContext, script: Partial<ControlPlane> = {}, timing: Partial<GatewayTiming> = {}) {
  const plane = scriptedControlPlane({ bodyBytesMax: LIMIT, ...script });
  const gateway: Gateway = await createGateway(plane, { host: '127.0.0.1', port: 0, timing });
  t.after(() => gateway.close());
  return { url: gateway.url, plane };
}

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

function noise(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 2654435761) >>> 13;
  return bytes;
}

test('bodies of any size up to the limit come through, announced or in chunks', async (t) => {
  const { url } = await open(t);
  for (const length of [1, 16 * 1024, 16 * 1024 + 1, 65_536, 300_000, LIMIT]) {
    const body = noise(length);
    const announced = await send(url, 'POST', INVOKE, { body });
    assert.equal(digest(announced.body), digest(body), `announced ${length}`);
    const chunks = [body.subarray(0, length >> 1), body.subarray(length >> 1)].filter((part) => part.length > 0);
    const chunked = await send(url, 'POST', INVOKE, { chunks });
    assert.equal(digest(chunked.body), digest(body), `chunked ${length}`);
  }
});

test('bodies at the same time do not mix', async (t) => {
  const { url } = await open(t);
  const bodies = Array.from({ length: 32 }, (_, i) => Buffer.alloc(1_000 + i * 3_000, i));
  const answers = await Promise.all(bodies.map((body) => send(url, 'POST', INVOKE, { body })));
  for (const [i, answer] of answers.entries()) assert.equal(digest(answer.body), digest(bodies[i] as Buffer));
});

test('a connection is kept from body to body, whole or in parts', async (t) => {
  const { url } = await open(t);
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  t.after(() => socket.destroy());
  socket.setEncoding('latin1');
  let said = '';
  socket.on('data', (text: string) => {
    said += text;
  });
  for (let i = 0; i < 20; i++) {
    const body = `"${i}:${'x'.repeat(i * 7)}"`;
    const head = `POST ${INVOKE} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    said = '';
    // The parts are apart for the server too when each has been taken before the next is written.
    const parts = i % 2 === 0 ? [head + body] : [head, body.slice(0, 2), body.slice(2)];
    for (const part of parts) {
      await new Promise((taken) => socket.write(part, taken));
      await new Promise((turn) => setImmediate(turn));
    }
    while (!said.endsWith(body)) await once(socket, 'data');
    assert.match(said, /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(said, /connection: close/i);
  }
  assert.equal(socket.readyState, 'open');
});

test('bytes in shared memory can be answered', async (t) => {
  const bytes = new Uint8Array(new SharedArrayBuffer(100_000)).subarray(10);
  bytes.fill(7);
  const payload = { contentType: 'application/octet-stream', bytes };
  const { url } = await open(t, {
    startSession: async () => ({ session: 'e1-1-a', outcome: Promise.resolve({ ok: true, payload } as const) }),
  });
  assert.equal(digest((await send(url, 'POST', INVOKE)).body), digest(bytes));
});

test('above the limit: 413 with the limit and how to raise it; the answer arrives, not a reset', async (t) => {
  const { url, plane } = await open(t);
  const large = noise(8 * LIMIT);
  const chunks = Array.from({ length: 64 }, (_, i) => large.subarray(i * 131_072, (i + 1) * 131_072));
  for (const sent of [{ body: large }, { chunks }, { body: noise(LIMIT + 1) }]) {
    const answer = await send(url, 'POST', INVOKE, sent);
    assert.equal(answer.status, 413);
    const problem = answer.json();
    assert.equal(problem.code, 'E_BODY_TOO_LARGE');
    assert.equal(problem.limitBytes, LIMIT);
    assert.match(problem.detail, /1048576 bytes.*bodyBytesMax/);
  }
  assert.equal(plane.calls.length, 0);
  assert.equal((await send(url, 'POST', INVOKE, { body: 'x' })).status, 200);
});

test('the limit is live, and holds for deployments too', async (t) => {
  const { url, plane } = await open(t);
  Object.assign(plane, { bodyBytesMax: 10 });
  assert.equal((await send(url, 'POST', INVOKE, { body: '0123456789' })).status, 200);
  assert.equal((await send(url, 'POST', INVOKE, { body: '0123456789x' })).json().limitBytes, 10);
  assert.equal((await send(url, 'PUT', '/v1/apps/a', { body: '{"manifest":{}}' })).status, 413);
});

test('a client that asks first is told before it sends', async (t) => {
  const { url } = await open(t);
  const { port } = new URL(url);
  for (const [length, status, continued] of [
    [LIMIT + 1, 413, false],
    [3, 200, true],
  ] as const) {
    const headers = { expect: '100-continue', 'content-length': length };
    const req = request({ host: '127.0.0.1', port, method: 'POST', path: INVOKE, agent: false, headers });
    let wasContinued = false;
    req.on('continue', () => {
      wasContinued = true;
      req.end('abc');
    });
    req.flushHeaders();
    const [res] = await once(req, 'response');
    assert.equal(res.statusCode, status);
    assert.equal(wasContinued, continued);
    res.resume();
    await once(res, 'end');
    req.destroy();
  }
});

test('what is refused for other reasons is refused before its body', async (t) => {
  const { url, plane } = await open(t);
  const body = noise(LIMIT);
  for (const [path, headers, status] of [
    [`${INVOKE}?mode=x`, {}, 400],
    ['/v1/nothing', {}, 404],
    [INVOKE, { origin: 'http://evil.example' }, 403],
  ] as const) {
    const answer = await send(url, 'POST', path, { body, headers });
    assert.equal(answer.status, status);
    assert.equal(answer.headers.connection, 'close');
  }
  assert.equal(plane.calls.length, 0);
});

test('invalid JSON is refused with its position, whatever its size', async (t) => {
  const { url, plane } = await open(t);
  const headers = { 'content-type': 'application/json' };
  const large = `["${'ä'.repeat(100_000)}", oops]`;
  for (const [body, position] of [
    ['{"a":}', 5],
    ['{"a":1', 6],
    [' ', 1],
    [large, large.indexOf('oops')],
  ] as const) {
    const answer = await send(url, 'POST', INVOKE, { body, headers });
    assert.equal(answer.status, 400);
    assert.equal(answer.json().code, 'E_JSON_INVALID');
    assert.equal(answer.json().position, position);
    assert.match(answer.json().detail, /line 1, column/);
  }
  assert.equal(plane.calls.length, 0);
  const fine = JSON.stringify('ä'.repeat(200_000));
  assert.equal((await send(url, 'POST', INVOKE, { body: fine, headers })).body.toString(), fine);
});

test('a body that stalls is given up with 408', async (t) => {
  const { url, plane } = await open(t, {}, { tickMs: 5, bodyStallMs: 20 });
  for (const part of ['', 'abc']) {
    const head = `POST ${INVOKE} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n${part}`;
    const said = await sendRaw(url, head);
    assert.match(said, /^HTTP\/1\.1 408 /);
    assert.match(said, /gave|given up/);
  }
  assert.equal(plane.calls.length, 0);
});

test('a client that goes away while sending leaves nothing behind', async (t) => {
  const { url, plane } = await open(t);
  const { port } = new URL(url);
  for (const head of ['content-length: 100000', 'transfer-encoding: chunked']) {
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`POST ${INVOKE} HTTP/1.1\r\nhost: 127.0.0.1\r\n${head}\r\n\r\n5\r\nabcde`);
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.destroy();
    await once(socket, 'close');
  }
  assert.equal((await send(url, 'POST', INVOKE, { body: 'x' })).status, 200);
  assert.equal(plane.calls.length, 1);
});

test('bodies under way together have a limit', async (t) => {
  const { url } = await open(t, { bodyBytesMax: 1_000 });
  const { port } = new URL(url);
  const held = Array.from({ length: 4 }, () => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`POST ${INVOKE} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n${'x'.repeat(990)}`);
    return socket;
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  const answer = await send(url, 'POST', INVOKE, { body: 'x'.repeat(900) });
  assert.equal(answer.status, 429);
  assert.equal(answer.json().code, 'E_QUOTA_EXCEEDED');
  assert.equal(answer.headers['retry-after'], '1');
  for (const socket of held) socket.destroy();
  await Promise.all(held.map((socket) => once(socket, 'close')));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal((await send(url, 'POST', INVOKE, { body: 'x'.repeat(900) })).status, 200);
});

test('a start for which there is no room is refused before its body, except a repeat that may have been accepted', async (t) => {
  const full = { code: 'E_QUEUE_FULL' as const, message: 'full', retryAfterMs: 2_300 };
  const { url, plane } = await open(t, { refusal: (_app, bytes) => (bytes > 3 ? full : undefined) });
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(`POST ${INVOKE} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 500000\r\n\r\nabc`);
  const [said] = (await once(socket, 'data')) as [Buffer];
  assert.match(said.toString(), /^HTTP\/1\.1 503 .*\r\nretry-after: 3\r\n.*"retryAfterMs":2300/s);
  socket.destroy();
  assert.equal(plane.calls.length, 0);
  const repeat = await send(url, 'POST', INVOKE, { body: 'abcdef', headers: { 'idempotency-key': 'k' } });
  assert.equal(repeat.status, 200);
  assert.equal((await send(url, 'POST', INVOKE, { body: 'abc' })).status, 200, 'what fits is taken');
});

test('a body that can never be taken is too large, not early, however full the app is', async (t) => {
  const refusal = { code: 'E_QUEUE_FULL' as const, message: 'full', retryAfterMs: 100 };
  const { url } = await open(t, { refusal: () => refusal });
  const head = `POST ${INVOKE} HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${LIMIT + 1}\r\nconnection: close\r\n\r\n`;
  assert.match(await sendRaw(url, head), /^HTTP\/1\.1 413 .*E_BODY_TOO_LARGE/s);
});

test('no header is left out, however many come', async (t) => {
  const { url } = await open(t);
  const many = 'x:1\r\n'.repeat(2_500);
  const head = `POST ${INVOKE} HTTP/1.1\r\nhost: localhost\r\n${many}content-length: 2\r\nconnection: close\r\n\r\n`;
  assert.match(await sendRaw(url, `${head}hi`), /\r\n\r\nhi$/);
});

test('garbage behind a request that is being answered is refused behind its answer', async (t) => {
  let begin = () => {};
  let answer = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const { startSession } = scriptedControlPlane();
  const { url } = await open(t, {
    startSession: async (request) => {
      const { session, outcome } = await startSession(request);
      begin();
      return { session, outcome: answered.then(() => outcome) };
    },
  });
  const head = `POST ${INVOKE} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n`;
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  t.after(() => socket.destroy());
  socket.setEncoding('latin1');
  let said = '';
  socket.on('data', (text: string) => {
    said += text;
  });
  socket.write(`${head}hi`);
  await begun;
  for (let i = 0; i < 20; i++) {
    await new Promise((taken) => socket.write('GARBAGE\r\n\r\n', taken));
    await new Promise((turn) => setImmediate(turn));
  }
  assert.equal(said, '');
  answer();
  await once(socket, 'end');
  assert.deepEqual(said.match(/HTTP\/1\.1 \d+/g), ['HTTP/1.1 200', 'HTTP/1.1 400']);
});
