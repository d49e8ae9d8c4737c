// Goal: the real adapters keep what the ports promise. Method: real folders, sockets and processes.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import type { MonotonicMs } from '../../base/index.ts';
import { type Channel, type KeyValueStore, MemoryKeyValueStore, type ProcessExit, prefixRange } from '../index.ts';
import {
  connectChannel,
  LmdbStore,
  listenForChannels,
  NodeDataFolder,
  nodeClock,
  nodeDigest,
  nodeProcessHost,
  nodeRandom,
  nodeTimers,
} from './index.ts';
import { DISK_RESERVE_BYTES, DISK_RESERVE_SMALL_BYTES } from './limits.ts';

const folder = mkdtempSync(join(tmpdir(), 'antrail-platform-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const bytes = (text: string) => new TextEncoder().encode(text);
const OPTIONS = { blobBytesMax: 1_000_000_000 };

function listed(store: KeyValueStore, prefix: string, reverse: boolean, limit?: number): string[] {
  const range = { ...prefixRange(prefix), reverse, ...(limit === undefined ? {} : { limit }) };
  return Array.from(store.range(range), ([key, value]) => `${key}=${Buffer.from(value).toString()}`);
}

test('LMDB and the store of tests give the same answers to the same changes', async () => {
  let count = 0;
  const key = fc.constantFrom('a/1', 'a/2', 'a/ä', 'a/😀', 'a/\uffff', 'a/1/x', 'b/1', 'a0', 'a/');
  const change = fc.record({ key, value: fc.option(fc.string({ maxLength: 5 }), { nil: undefined }) });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(change, { maxLength: 5 }), { maxLength: 8 }),
      fc.integer({ min: 1, max: 4 }),
      async (transactions, limit) => {
        const lmdb = new LmdbStore(join(folder, `${count++}.lmdb`));
        const memory = new MemoryKeyValueStore();
        for (const changes of transactions) {
          const writes = changes.map((one) =>
            one.value === undefined ? { delete: one.key } : { put: one.key, value: bytes(one.value) },
          );
          await Promise.all([lmdb.transaction(writes), memory.transaction(writes)]);
        }
        for (const prefix of ['a/', 'b/', 'c/']) {
          for (const reverse of [false, true]) {
            assert.deepEqual(listed(lmdb, prefix, reverse), listed(memory, prefix, reverse));
            assert.deepEqual(listed(lmdb, prefix, reverse, limit), listed(memory, prefix, reverse, limit));
          }
        }
        for (const one of transactions.flat()) {
          const [mine, wanted] = [lmdb.get(one.key), memory.get(one.key)];
          assert.deepEqual(mine && Buffer.from(mine).toString(), wanted && Buffer.from(wanted).toString());
        }
        await lmdb.close();
      },
    ),
    { numRuns: 15 },
  );
});

test('what LMDB said is durable is there when it is opened again', async () => {
  const file = join(folder, 'again.lmdb');
  const store = new LmdbStore(file);
  await store.transaction([{ put: 'k', value: bytes('v') }]);
  await store.close();
  await store.close();
  const again = new LmdbStore(file);
  assert.equal(Buffer.from(again.get('k') ?? []).toString(), 'v');
  await again.close();
});

test('a nearly full disk takes small writes, and no large ones; an overfull one none', async () => {
  let free = DISK_RESERVE_BYTES + 500_000;
  const store = new LmdbStore(join(folder, 'full.lmdb'), () => free);
  const put = (size: number) => store.transaction([{ put: `k${size}`, value: new Uint8Array(size) }]);
  const refused = { code: 'E_QUOTA_EXCEEDED' };
  // Both have room, but not together.
  const [first, second] = await Promise.allSettled([put(300_000), put(300_001)]);
  assert.equal(first?.status, 'fulfilled');
  assert.equal((second as PromiseRejectedResult).reason.code, refused.code);
  await put(300_001);
  free = DISK_RESERVE_BYTES - 1;
  await assert.rejects(put(300_002), refused);
  await put(100);
  free = DISK_RESERVE_SMALL_BYTES - 1;
  await assert.rejects(put(101), refused);
  free = Number.POSITIVE_INFINITY;
  await put(101);
  assert.equal(store.get('k300002'), undefined);
  await store.close();
});

test('files are replaced whole, read in parts, and stay inside their folder', async () => {
  const data = new NodeDataFolder(join(folder, 'data'));
  await data.write('x/y/file', bytes('one'));
  await data.write('x/y/file', bytes('second'));
  assert.equal(Buffer.from((await data.read('x/y/file')) ?? []).toString(), 'second');
  assert.equal(Buffer.from((await data.read('x/y/file', { start: 2, end: 4 })) ?? []).toString(), 'co');
  assert.equal((await data.read('x/y/file', { start: 4, end: 100 }))?.length, 2);
  assert.equal(await data.read('x/none'), undefined);
  assert.deepEqual(await data.list('x/y'), ['file'], 'no temporary file is left');
  assert.deepEqual(await data.list('none'), []);
  assert.equal(statSync(join(data.path, 'x/y/file')).mode & 0o777, 0o600);
  await data.link('link', '/somewhere');
  await data.link('link', '/elsewhere');
  assert.equal(readlinkSync(join(data.path, 'link')), '/elsewhere');
  await data.remove('x');
  await data.remove('x');
  await assert.rejects(data.write('../out', bytes('no')), /inside the data folder/);
});

async function pair(
  place: string,
): Promise<{ server: Channel; client: Channel; close: () => Promise<void>; address: string }> {
  let accept: (channel: Channel) => void = () => {};
  const accepted = new Promise<Channel>((resolve) => {
    accept = resolve;
  });
  const listener = await listenForChannels(place, OPTIONS, (channel) => accept(channel));
  const client = await connectChannel(listener.address, OPTIONS);
  const server = await accepted;
  return { server, client, address: listener.address, close: () => listener.close() };
}

test('frames arrive whole and in order, small and large ones mixed', async () => {
  const { server, client, close, address } = await pair(folder);
  assert.equal(address, join(folder, 'hosts.sock'));
  const got: string[] = [];
  const done = new Promise<void>((resolve) => {
    server.onMessage((header, blobs) => {
      const { n } = header as { n: number };
      got.push(
        `${n}:${blobs.map((blob) => `${blob.length}${blob.every((byte) => byte === n % 256) ? '' : '!'}`).join(',')}`,
      );
      if (n === 299) resolve();
    });
  });
  const wanted: string[] = [];
  for (let n = 0; n < 300; n++) {
    const sizes = n % 50 === 7 ? [3_000_000] : n % 3 === 0 ? [] : [n, 20_000];
    wanted.push(`${n}:${sizes.join(',')}`);
    client.send(
      { n },
      sizes.map((size) => new Uint8Array(size).fill(n % 256)),
    );
  }
  await done;
  assert.deepEqual(got, wanted);
  await close();
  assert.equal(existsSync(address), false);
});

test('what was sent before a close is delivered; both ends learn of the close once', async () => {
  const { server, client, close } = await pair(folder);
  const got: unknown[] = [];
  server.onMessage((header) => got.push(header));
  const closed = Promise.all(
    [server, client].map((one) => new Promise<void>((resolve) => one.onClose(() => resolve()))),
  );
  client.send({ last: 'words' });
  client.close();
  client.send({ too: 'late' });
  await closed;
  assert.deepEqual(got, [{ last: 'words' }]);
  server.send({ nobody: 'listens' });
  await close();
});

test('a data folder with a long path gets a private folder for its socket, removed at close', async () => {
  const long = join(folder, 'x'.repeat(120));
  mkdirSync(long);
  const { address, close, client } = await pair(long);
  assert.ok(!address.startsWith(long));
  assert.equal(statSync(dirname(address)).mode & 0o777, 0o700);
  client.close();
  await close();
  assert.equal(existsSync(dirname(address)), false);
});

test('a process is told by its lines and its exit, one that cannot start by its exit', async () => {
  const lines: string[] = [];
  const exit = await new Promise<ProcessExit>((resolve) => {
    nodeProcessHost.spawn({
      file: process.execPath,
      args: [
        '-e',
        'console.log("out " + process.env.ONLY, process.env.HOME); console.error("err"); process.stdout.write("rest"); process.exitCode = 3',
      ],
      env: { ONLY: 'this' },
      cwd: folder,
      onLine: (stream, line) => lines.push(`${stream}:${line}`),
      onExit: resolve,
    });
  });
  assert.deepEqual(exit, { exitCode: 3, signal: null });
  assert.deepEqual(lines.sort(), ['stderr:err', 'stdout:out this undefined', 'stdout:rest']);
  const failed = await new Promise<ProcessExit>((resolve) => {
    nodeProcessHost.spawn({
      file: join(folder, 'none'),
      args: [],
      env: {},
      cwd: folder,
      onLine: () => {},
      onExit: resolve,
    });
  });
  assert.match(failed.error ?? '', /ENOENT/);
});

test('a process that cannot be started for want of file descriptors, or of its folder, is an exit with the reason', async () => {
  const door = new URL('./index.js', import.meta.url).href;
  const script = `
    import { openSync } from 'node:fs';
    import { nodeProcessHost } from ${JSON.stringify(door)};
    const start = (cwd) => new Promise((onExit) => nodeProcessHost.spawn(
      { file: process.execPath, args: ['-e', ''], cwd, env: {}, onLine() {}, onExit }));
    const first = await start('/nowhere/at/all');
    try { for (;;) openSync('/dev/null'); } catch {}
    const second = await start('/');
    process.stdout.write(JSON.stringify([first.error, second.error]));
    process.exit(0);`;
  const command = 'ulimit -n 64; exec "$@"';
  const args = ['-c', command, 'sh', process.execPath, '--input-type=module', '-e', script];
  const { stdout, stderr } = spawnSync('/bin/sh', args, { encoding: 'utf8' });
  const [first, second] = JSON.parse(stdout || '[]') as string[];
  assert.match(first ?? stderr, /folder \/nowhere\/at\/all is missing/);
  assert.match(second ?? stderr, /EMFILE/);
});

test('timers never fire early and can be cancelled; digests tell lists of parts apart', async () => {
  const atMs = (nodeClock.monotonicMs() + 12.5) as MonotonicMs;
  const cancel = nodeTimers.set(atMs, () => assert.fail('cancelled'));
  cancel();
  await new Promise<void>((resolve) => nodeTimers.set(atMs, resolve));
  assert.ok(nodeClock.monotonicMs() >= atMs);
  assert.notEqual(nodeDigest(['ab', 'c']), nodeDigest(['a', 'bc']));
  assert.equal(nodeDigest(['a', bytes('b')]), nodeDigest(['a', 'b']));
  assert.notEqual(nodeRandom.uint32(), nodeRandom.uint32());
});
