// Goal: what a session made can be fetched while it runs, and its outputs afterwards too. Method: a real server; the
// bytes of an object are its positions, so that a range shows which bytes it is.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { connect, connectServer } from 'antrail/client';
import { bundleApp } from '#src/deploy/index.js';
import { type RunningServer, startServer } from '#src/node/index.js';

const APP = `
import { app, bucket, fn } from 'antrail';
const bytes = (size) => new Uint8Array(size).map((_, i) => i % 251);
export default app('object-get', {
  entry: 'hold',
  functions: {
    hold: fn(async (ctx) => {
      ctx.send('made', bytes(100_000), { name: 'large' });
      await new Promise((end) => ctx.signal.addEventListener('abort', end));
    }),
    give: fn((ctx) => {
      for (let i = 0; i < 5; i++) ctx.send('made', bytes(300_000 + i), { name: 'part-' + i, output: true });
    }),
  },
  buckets: { made: bucket({}) },
});`;

let folder: string;
let server: RunningServer;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'antrail-object-get-'));
  server = await startServer({ dataDir: join(folder, 'data'), host: '127.0.0.1', port: 0 });
  await writeFile(join(folder, 'app.ts'), APP);
  const { appName, bundle } = await bundleApp(join(folder, 'app.ts'));
  await connectServer({ url: server.url }).deploy(appName, bundle);
});
after(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

test('a range of a running session’s object has its last byte', async () => {
  const client = connect({ app: 'object-get', url: server.url });
  const handle = await client.start('hold');
  const { session } = handle;
  while ((await client.get('made', 'large', { session }).catch(() => undefined)) === undefined) {
    await new Promise((wake) => setTimeout(wake, 20));
  }
  const part = (start: number, end?: number) =>
    client.get('made', 'large', { session, range: end === undefined ? { start } : { start, end } });
  assert.deepEqual(Array.from(await part(0, 3)), [0, 1, 2, 3]);
  assert.deepEqual(Array.from(await part(10, 10)), [10]);
  assert.equal((await part(99_990)).length, 10);
  await handle.cancel();
});

test('outputs too large for the stream can be fetched, however soon the session ends', async () => {
  const client = connect({ app: 'object-get', url: server.url });
  for (let round = 0; round < 10; round++) {
    const handle = await client.start('give', undefined, { durability: 'none' });
    const sizes: number[] = [];
    for await (const { value } of handle.outputs<Uint8Array>()) sizes.push(value.length);
    assert.deepEqual(sizes, [300_000, 300_001, 300_002, 300_003, 300_004]);
  }
});
