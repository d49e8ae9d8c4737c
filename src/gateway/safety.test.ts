// Goal: web pages of others, garbage and slow clients do no harm; closing and a used port are orderly.
// Method: raw sockets and headers against a real loopback socket.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { ControlPlane } from './control-plane.ts';
import { createGateway, type GatewayOptions } from './index.ts';
import { jsonPayload, SESSION, scriptedControlPlane, send, sendRaw } from './internal.ts';
import { listeningInodes } from './port-owner.ts';

const INVOKE = '/v1/apps/shop/functions/f';

async function open(t: TestContext, options: Partial<GatewayOptions> = {}, script: Partial<ControlPlane> = {}) {
  const plane = scriptedControlPlane(script);
  const gateway = await createGateway(plane, { host: '127.0.0.1', port: 0, ...options });
  t.after(() => gateway.close());
  return { gateway, url: `http://127.0.0.1:${gateway.port}`, plane };
}

test('a Host that is not ours is refused, with what to do', async (t) => {
  const { url } = await open(t);
  const { host } = new URL(url);
  for (const fine of [host, 'localhost', 'LOCALHOST:1', '127.0.0.1', '127.9.9.9:80', '[::1]', '[::1]:7070']) {
    assert.equal((await send(url, 'GET', '/healthz', { headers: { host: fine } })).status, 200, fine);
  }
  for (const foreign of [
    'evil.example',
    'evil.example:7070',
    'localhost.evil.example',
    '127.evil.example',
    '10.0.0.1',
  ]) {
    const answer = await send(url, 'GET', '/v1/apps', { headers: { host: foreign } });
    assert.equal(answer.status, 403, foreign);
    assert.equal(answer.json().code, 'E_FORBIDDEN');
    assert.match(answer.json().detail, /allowedHosts/);
  }
});

test('allowed hosts, an address of all, and `*`', async (t) => {
  const named = await open(t, { allowedHosts: ['Trail.example'] });
  assert.equal((await send(named.url, 'GET', '/healthz', { headers: { host: 'trail.example:80' } })).status, 200);
  assert.equal((await send(named.url, 'GET', '/healthz', { headers: { host: 'x.trail.example' } })).status, 403);
  const all = await open(t, { host: '0.0.0.0' });
  assert.equal((await send(all.url, 'GET', '/healthz', { headers: { host: '10.1.2.3:7070' } })).status, 200);
  assert.equal((await send(all.url, 'GET', '/healthz', { headers: { host: 'evil.example' } })).status, 403);
  const any = await open(t, { allowedHosts: ['*'] });
  assert.equal((await send(any.url, 'GET', '/healthz', { headers: { host: 'evil.example' } })).status, 200);
});

test('a page of another site can change nothing', async (t) => {
  const { url, plane } = await open(t, { allowedHosts: ['trail.example'] });
  const { host, port } = new URL(url);
  for (const [headers, status] of [
    [{}, 200],
    [{ origin: `http://${host}` }, 200],
    [{ origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ origin: 'https://trail.example', 'sec-fetch-site': 'cross-site' }, 200],
    [{ origin: 'http://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: 'garbage' }, 403],
    [{ origin: `http://localhost:${port}` }, 403],
    [{ origin: 'http://127.0.0.1:1' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
  ] as const) {
    const answer = await send(url, 'POST', INVOKE, { headers });
    assert.equal(answer.status, status, JSON.stringify(headers));
    assert.equal(answer.headers['access-control-allow-origin'], undefined);
    const read = await send(url, 'GET', '/healthz', { headers });
    assert.equal(read.status, 200);
  }
  assert.equal(plane.calls.length, 5);
  assert.equal(
    (await send(url, 'DELETE', '/v1/apps/shop', { headers: { origin: 'http://evil.example' } })).status,
    403,
  );
});

test('garbage is answered and does no harm', async (t) => {
  const { url, plane } = await open(t);
  const head = 'host: 127.0.0.1\r\nconnection: close\r\n';
  for (const [bytes, status] of [
    ['hello\r\n\r\n', 400],
    ['\0\0\0\0\r\n\r\n', 400],
    [`GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n`, 400],
    [`GET /healthz HTTP/1.1\r\n${head}bad header\r\n\r\n`, 400],
    [`GET /healthz HTTP/1.1\r\n${head}x: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
    [`GET /v1/apps/${'y'.repeat(20_000)} HTTP/1.1\r\n${head}\r\n`, 431],
    [`GET /v1/apps/%zz HTTP/1.1\r\n${head}\r\n`, 400],
    [`GET /v1/apps/%ff HTTP/1.1\r\n${head}\r\n`, 400],
    [`POST ${INVOKE} HTTP/1.1\r\n${head}content-length: 1\r\ncontent-length: 2\r\n\r\nx`, 400],
    [`POST ${INVOKE} HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\nzz\r\n`, 400],
    [`GET //evil.example HTTP/1.1\r\n${head}\r\n`, 404],
    [`GET http://[ HTTP/1.1\r\n${head}\r\n`, 400],
    [`OPTIONS * HTTP/1.1\r\n${head}\r\n`, 404],
    [`GET /healthz?x=1 HTTP/1.1\r\n${head}\r\n`, 400],
    [`GET /healthz?%zz HTTP/1.1\r\n${head}\r\n`, 400],
  ] as const) {
    const said = await sendRaw(url, bytes);
    assert.match(said, new RegExp(`^HTTP/1\\.1 ${status} `), `${JSON.stringify(bytes.slice(0, 60))}: ${said}`);
    assert.match(said, /application\/problem\+json/);
    assert.match(said, /E_REQUEST_INVALID/);
  }
  assert.equal(plane.calls.length, 0);
  assert.equal((await send(url, 'GET', '/healthz')).status, 200);
});

test('requests in one connection are answered in order', async (t) => {
  const { url } = await open(t);
  const one = (name: string, last = '') =>
    `POST /v1/apps/shop/buckets/b/objects/${name}?session=${name} HTTP/1.1\r\nhost: localhost\r\n${last}content-length: 1\r\n\r\nx`;
  const said = await sendRaw(url, one('a') + one('b') + one('c', 'connection: close\r\n'));
  assert.deepEqual(
    Array.from(said.matchAll(/antrail-session: (\w)/g), ([, name]) => name),
    ['a', 'b', 'c'],
  );
});

test('close lets what runs end, refuses what comes, and can be called twice', async (t) => {
  let finish = () => {};
  const outcome = new Promise<void>((resolve) => {
    finish = resolve;
  }).then(() => ({ ok: true, payload: jsonPayload('done') }) as const);
  const { gateway, url, plane } = await open(t, {}, { startSession: async () => ({ session: SESSION, outcome }) });
  const agent = new Agent({ keepAlive: true });
  const { port } = new URL(url);
  const req = request({ host: '127.0.0.1', port, method: 'POST', path: INVOKE, agent }).end();
  // A connection on which a request has begun when closing begins.
  const late = connect(Number(port), '127.0.0.1');
  late.write('POST /v1/apps/shop/functions/f HTTP/1.1\r\nhost: localhost\r\n');
  while (plane.calls.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
  await new Promise((resolve) => setTimeout(resolve, 20));
  const closed = Promise.all([gateway.close(), gateway.close()]);
  late.write('\r\n');
  const [said] = await once(late.setEncoding('latin1'), 'data');
  assert.match(said, /^HTTP\/1\.1 503 /);
  assert.match(said, /E_SHUTTING_DOWN/);
  assert.match(said, /retry-after: 1/i);
  finish();
  const [res] = await once(req, 'response');
  assert.equal(res.statusCode, 200);
  assert.equal(res.headers.connection, 'close');
  res.resume();
  await closed;
  await gateway.close();
  agent.destroy();
  await assert.rejects(send(url, 'GET', '/healthz'), { code: 'ECONNREFUSED' });
});

test('close does not wait for a connection that never asked anything', async (t) => {
  const { gateway, url } = await open(t, { timing: { closeGraceMs: 60_000 } });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  await once(socket, 'connect');
  await (await fetch(`${url}/healthz`)).text();
  const ended = once(socket.resume(), 'close');
  await gateway.close();
  await ended;
});

test('close cuts what does not end in time', async (t) => {
  const { gateway, url } = await open(
    t,
    { timing: { closeGraceMs: 50 } },
    { startSession: () => new Promise(() => {}) },
  );
  const call = send(url, 'POST', INVOKE);
  const cut = assert.rejects(call, { code: 'ECONNRESET' });
  await new Promise((resolve) => setTimeout(resolve, 20));
  await gateway.close();
  await cut;
});

test('a used port is told with its holder and the way out', async (t) => {
  const { gateway } = await open(t);
  const { port } = gateway;
  await assert.rejects(createGateway(scriptedControlPlane(), { host: '127.0.0.1', port }), (error: any) => {
    assert.equal(error.code, 'E_PORT_IN_USE');
    assert.match(error.message, new RegExp(`Port ${port} .*--port N.*--port 0`));
    if (process.platform === 'linux') assert.match(error.message, new RegExp(`pid ${process.pid}\\)`));
    return true;
  });
});

test('the table of sockets is read by port and state', () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100
   1: 0100007F:1B9E 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 777 1 0000000000000000 20
   2: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 0000000000000000 100
`;
  assert.deepEqual(listeningInodes(table, 7070), ['12345']);
  assert.deepEqual(listeningInodes('', 7070), []);
});

test('the address can be IPv6 or a name', async (t) => {
  const six = await createGateway(scriptedControlPlane(), { host: '::1', port: 0 }).catch(() => undefined);
  if (six === undefined) return t.skip('this machine has no IPv6 loopback');
  t.after(() => six.close());
  assert.equal(six.url, `http://[::1]:${six.port}`);
  assert.equal((await fetch(`${six.url}/healthz`)).status, 200);
  return undefined;
});

test('localhost works, on each address that it has', async (t) => {
  const { gateway } = await open(t, { host: 'localhost' });
  assert.equal(gateway.url, `http://localhost:${gateway.port}`);
  assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200);
});
