// Goal: garbage on every door is cut off while others are served, and what the command line prints is what HTTP answers.
// Method: a real server, raw sockets, the real command line.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CLI, Served, until } from '../fixtures/served.ts';

const APP = `
import { app, bucket, fn, immediate } from 'antrail';
export default app('doors', {
  entry: 'version',
  functions: {
    version: fn(() => 'v2'),
    fan: fn((ctx, [n]) => { for (let i = 0; i < n!.json<number>(); i++) ctx.send('parts', i); }),
    part: fn((ctx, [one]) => { ctx.output(one!.json()); }),
    say: fn((ctx, [one]) => { ctx.log(one!.json(), { n: 1 }); console.log('console ' + one!.json()); }),
  },
  buckets: { parts: bucket({ on: { each: immediate({ run: 'part' }) } }) },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

test('garbage on the port is answered or cut off, and others are served meanwhile', async () => {
  const { port } = new URL(server.url);
  const garbage = [
    Buffer.from(Array.from({ length: 4_096 }, (_, i) => (i * 131) & 255)),
    Buffer.from('GET / HTTP/1.1\r\nhost: x\r\nbroken\r\n\r\n'),
    Buffer.from(`GET / HTTP/1.1\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`),
    Buffer.from('POST /v1/apps/doors/functions/version HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n'),
    Buffer.from(
      'POST /v1/apps/doors/functions/version HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
    ),
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]),
  ];
  const sockets = garbage.map((bytes) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    socket.end(bytes);
    return once(socket, 'close');
  });
  assert.equal((await server.call('doors/version')).json, 'v2');
  await Promise.all(sockets);
});

test('garbage and wrong tokens on the socket of the hosts are cut off', async () => {
  const name = readdirSync(server.dataDir).find((file) => file.endsWith('.sock') || /sock/.test(file)) ?? '';
  assert.notEqual(name, '', `a socket among ${readdirSync(server.dataDir)}`);
  const frame = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)]);
  const closed = [
    Buffer.from(Array.from({ length: 10_000 }, (_, i) => (i * 37) & 255)),
    Buffer.alloc(64, 255),
    Buffer.alloc(64, 0),
    frame('{"type":"hello","protocol":1,"token":"wrong","pid":1}'),
    Buffer.alloc(0),
  ].map(async (bytes) => {
    const socket: Socket = connect(join(server.dataDir, name));
    socket.on('error', () => {});
    socket.resume();
    if (bytes.length > 0) socket.write(bytes);
    await once(socket, 'close');
  });
  for (let i = 0; i < 20; i++) assert.equal((await server.call('doors/version')).json, 'v2');
  await Promise.all(closed);
});

test('two hundred callers at once, some slow and some gone, are all served', async () => {
  const { port } = new URL(server.url);
  const slow = Array.from({ length: 20 }, async (_, i) => {
    const socket = connect(Number(port), '127.0.0.1');
    socket.on('error', () => {});
    const text =
      'POST /v1/apps/doors/functions/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 1\r\n\r\n';
    for (const part of [text.slice(0, 20), text.slice(20, 60), text.slice(60)]) {
      socket.write(part);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (i % 2 === 0) {
      socket.destroy();
      return;
    }
    socket.write('1');
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    await once(socket, 'close');
    assert.match(Buffer.concat(chunks).toString(), /^HTTP\/1\.1 200 [\s\S]*"v2"$/);
  });
  const calls = Array.from({ length: 200 }, async () => assert.equal((await server.call('doors/version')).json, 'v2'));
  await Promise.all([...calls, ...slow]);
  assert.equal((await server.get('/healthz')).status, 200);
});

function cli(...args: string[]): Promise<{ code: number | null; out: string }> {
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, ANTRAIL_URL: server.url },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let out = '';
  child.stdout.on('data', (data) => {
    out += data;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out })));
}

test('what the command line prints with --json is the answer over HTTP', async () => {
  const session = await server.start('doors/fan', 2, { query: { tag: 'a=b' } });
  await server.ended(session);
  for (const [args, path] of [
    [['apps'], '/v1/apps'],
    [['app', 'doors'], '/v1/apps/doors'],
    [['sessions', '--app', 'doors'], '/v1/sessions?app=doors'],
    [['session', session], `/v1/sessions/${session}`],
    [['trace', session], `/v1/sessions/${session}/trace`],
    [['dead-letters'], '/v1/dead-letters'],
    [['limits'], '/v1/limits'],
  ] as const) {
    const { code, out } = await cli(...args, '--json');
    assert.equal(code, 0, args.join(' '));
    assert.deepEqual(JSON.parse(out), (await server.get(path)).json, args.join(' '));
  }
});

test('logs -f shows what is logged from now on, one JSON object a line', async () => {
  const child = spawn(process.execPath, [CLI, 'logs', 'doors', '-f', '--json'], {
    env: { ...process.env, ANTRAIL_URL: server.url },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let out = '';
  child.stdout.on('data', (data) => {
    out += data;
  });
  let n = 0;
  const lines = await until(async () => {
    await server.call('doors/say', `said ${n++}`);
    const all = out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
    const has = (message: RegExp) => all.some((one: { message: string }) => message.test(one.message));
    return has(/^said/) && has(/^console said/) ? all : undefined;
  }, 'both kinds of lines arrive');
  child.kill('SIGINT');
  await once(child, 'close');
  const said = lines.find(({ message }: { message: string }) => message.startsWith('said'));
  assert.equal(said.app, 'doors');
  assert.equal(said.level, 'info');
  assert.ok(said.session.length > 0);
  const answered = (await server.get('/v1/logs?app=doors&tail=1000')).bytes.toString().split('\n').filter(Boolean);
  for (const line of lines)
    assert.ok(
      answered.some((other) => JSON.stringify(JSON.parse(other)) === JSON.stringify(line)),
      JSON.stringify(line),
    );
});
