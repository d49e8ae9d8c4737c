// Goal: objects for which memory has no room go to disk and come back, unchanged; nothing fails below the quota, what is
// above it is refused by name, and afterwards memory and disk are free. Method: a real server with a budget of 64 MB and apps
// that move many times as much; hosts killed, disks that are full or lie.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { accounts, assertBalanced, assertNothingLeft } from '../fixtures/accounts.ts';
import { needs } from '../fixtures/needs.ts';
import { residentBytes, Served, until } from '../fixtures/served.ts';

const MIB = 1024 * 1024;
const BUDGET = 64 * MIB;

const APP = `
import { app, bucket, byName, dynamicGroup, dynamicJoin, fn, immediate } from 'antrail';
import { crc32 } from 'node:zlib';
const fill = (bytes, seed) => { for (let i = 0; i < bytes.length; i += 997) bytes[i] = (seed + i) % 251; return bytes; };
const check = (o) => {
  const seed = Number(o.name.split('-')[1]);
  for (let i = 0; i < o.bytes.length; i += 997) if (o.bytes[i] !== (seed + i) % 251) throw new Error(o.name + ' changed at ' + i);
  return o.size;
};
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
const sum = (all) => all.reduce((n, o) => n + check(o), 0);
export default app('spill', {
  entry: 'burst',
  functions: {
    // Copies what it sends, so that nothing of it is in use while it runs.
    burst: fn((ctx, [spec]) => {
      const { count, size, bucket } = spec.json();
      ctx.join('sums', count);
      for (let i = 0; i < count; i++) ctx.send(bucket, fill(new Uint8Array(size), i), { name: 'o-' + i });
    }),
    // Creates in place: what it sent stays readable for it while it runs.
    create: fn((ctx, [spec]) => {
      const { count, size } = spec.json();
      ctx.join('sums', count);
      const first = ctx.createObject('work', 'o-0', size);
      fill(first.bytes, 0);
      ctx.sendObject(first);
      for (let i = 1; i < count; i++) { const o = ctx.createObject('work', 'o-' + i, size); fill(o.bytes, i); ctx.sendObject(o); }
      check(first);
    }),
    count: fn((ctx, [o]) => ctx.send('sums', check(o), { name: 's' + o.name })),
    add: fn((ctx, all) => ctx.output(all.reduce((n, o) => n + o.json(), 0))),
    gather: fn((ctx, all) => ctx.output(sum(all))),
    // Holds everything until it is told to go on, then reads it by name.
    hoard: fn(async (ctx, [spec]) => {
      const { count, size } = spec.json();
      for (let i = 0; i < count; i++) ctx.send('kept', fill(new Uint8Array(size), i), { name: 'o-' + i });
      ctx.send('kept', 'sent', { name: 'sent' });
      for (;;) { try { await ctx.getObject('kept', 'go'); break; } catch (e) { if (e.code !== 'E_OBJECT_UNKNOWN') throw e; await sleep(20); } }
      let n = 0;
      for (let i = 0; i < count; i++) n += check(await ctx.getObject('kept', 'o-' + i));
      return n;
    }),
    small: fn((ctx, [spec]) => {
      const { count, size } = spec.json();
      for (let i = 0; i < count; i++) { const o = ctx.createObject('all', 'o-' + i, size); fill(o.bytes, i); ctx.sendObject(o); }
      ctx.closeGroup('all');
    }),
    one: fn((ctx, [o]) => o.size),
  },
  buckets: {
    work: bucket({ on: { each: immediate({ run: 'count' }) } }),
    all: bucket({ on: { group: dynamicGroup({ run: 'gather' }) } }),
    sums: bucket({ on: { all: dynamicJoin({ run: 'add' }) } }),
    kept: bucket({}),
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start({ objectBytesMax: BUDGET });
  await server.deploy(APP);
});
after(() => server.close());

const spilled = async () => (await accounts(server)).apps.find(({ app }) => app === 'spill')?.spilledBytes ?? 0;

for (const name of ['burst', 'create']) {
  test(`${name}: 500 MB go through a store of 64 MB`, async () => {
    const answer = await server.call(`spill/${name}`, { count: 500, size: MIB, bucket: 'work' });
    assert.equal(answer.json, 500 * MIB, answer.bytes.toString());
    await assertNothingLeft(server);
  });
}

test('what one invocation takes may be more than the budget', async () => {
  const answer = await server.call('spill/small', { count: 200, size: MIB });
  assert.equal(answer.json, 200 * MIB, answer.bytes.toString());
  await assertNothingLeft(server);
});

test('objects too small for pages of their own are spilled by the page', async () => {
  const answer = await server.call('spill/small', { count: 15_000, size: 10_000 });
  assert.equal(answer.json, 150_000_000, answer.bytes.toString());
  await assertNothingLeft(server);
});

test('objects that nobody uses are on disk; by name and over HTTP they are as they were', async () => {
  const resident = residentBytes(await server.host('spill'));
  const sessions = await Promise.all([0, 1].map(() => server.start('spill/hoard', { count: 150, size: MIB })));
  await until(async () => {
    for (const session of sessions) {
      const sent = await server.get('/v1/apps/spill/buckets/kept/objects/sent', { query: { session } });
      if (sent.status !== 200) return false;
    }
    return (await spilled()) > 200 * MIB;
  }, 'all is sent and most of it spilled');
  const seen = await assertBalanced(server);
  assert.equal(seen.apps[0]?.objects, 2 * 152);
  assert.ok((seen.apps[0]?.memoryBytes ?? 0) < 80 * MIB, `${seen.apps[0]?.memoryBytes} bytes in memory`);
  assert.ok(residentBytes(await server.host('spill')) - resident < 150 * MIB, 'resident memory follows the budget');
  const [session = ''] = sessions;
  for (const i of [0, 75, 149]) {
    const part = await server.get(`/v1/apps/spill/buckets/kept/objects/o-${i}`, { query: { session } });
    assert.equal(part.bytes.length, MIB);
    assert.ok(
      part.bytes.every((byte, at) => byte === (at % 997 === 0 ? (i + at) % 251 : 0)),
      `o-${i}`,
    );
  }
  for (const id of sessions) {
    await server.ask('POST', '/v1/apps/spill/buckets/kept/objects/go', 1, { query: { session: id } });
    assert.equal((await server.result(id)).json, 150 * MIB);
  }
  await assertNothingLeft(server);
});

test('two apps that spill at once do not mix', async () => {
  await server.deploy(APP.replace("app('spill'", "app('other'"));
  const answers = await Promise.all(
    ['spill', 'other', 'spill', 'other'].map((app) =>
      server.call(`${app}/burst`, { count: 120, size: MIB, bucket: 'work' }),
    ),
  );
  for (const answer of answers) assert.equal(answer.json, 120 * MIB, answer.bytes.toString());
  await assertNothingLeft(server);
});

test('a thousand sessions leave memory level', async () => {
  const pid = await server.host('spill');
  const round = async (sessions: number) => {
    const spec = { count: 2, size: 200_000, bucket: 'work' };
    for (let i = 0; i < sessions; i += 10) {
      const answers = await Promise.all(Array.from({ length: 10 }, () => server.call('spill/burst', spec)));
      for (const answer of answers) assert.equal(answer.json, 400_000, answer.bytes.toString());
    }
    return residentBytes(pid);
  };
  const before = await round(200);
  const after = await round(800);
  // 400 MB went through; a leak of a tenth of it would show.
  assert.ok(after - before < 40 * MIB, `${after - before} bytes more`);
  await assertNothingLeft(server);
});

test('cancelled in the middle of it, sessions leave nothing in memory or on disk', async () => {
  const sessions = await Promise.all([0, 1, 2].map(() => server.start('spill/hoard', { count: 100, size: MIB })));
  await until(async () => (await spilled()) > 50 * MIB, 'some of it is spilled');
  for (const session of sessions) await server.ask('DELETE', `/v1/sessions/${session}`);
  for (const session of sessions) assert.equal((await server.ended(session)).state, 'cancelled');
  await assertNothingLeft(server);
});

test('a host killed while it spills loses nothing that was accepted, and its disk space is free', async () => {
  const sessions = await Promise.all(
    [0, 1].map(() => server.start('spill/burst', { count: 150, size: MIB, bucket: 'work' })),
  );
  await until(async () => spillFileOf(await server.host('spill')) !== undefined, 'it spills');
  process.kill(await server.host('spill'), 'SIGKILL');
  for (const session of sessions) assert.equal((await server.result(session)).json, 150 * MIB);
  assert.deepEqual(readdirSync(`${server.dataDir}/spill`), [], 'no file is left');
  await assertNothingLeft(server);
});

test('garbage in the spill file is told apart, and only to who needs it', async () => {
  const session = await server.start('spill/hoard', { count: 150, size: MIB });
  const other = await server.start('spill/hoard', { count: 2, size: MIB });
  await until(async () => (await spilled()) > 80 * MIB, 'it spills');
  const place = spillFileOf(await server.host('spill')) ?? assert.fail('there is a spill file');
  const file = await open(place, 'r+');
  const { size } = statSync(place);
  for (let at = 5_000; at < size; at += MIB) await file.write(Buffer.from('garbage'), 0, 7, at);
  await file.close();
  await server.ask('POST', '/v1/apps/spill/buckets/kept/objects/go', 1, { query: { session } });
  const answer = await server.result(session);
  assert.equal(answer.status, 500, answer.bytes.toString().slice(0, 200));
  assert.match(answer.json.detail, /not what was written/);
  await server.ask('DELETE', `/v1/sessions/${other}`);
  await server.ended(other);
  await assertNothingLeft(server);
});

test(
  'a disk that takes no more costs nothing that fits into memory, and what does not fit says why',
  await needs('prlimit'),
  async () => {
    const pid = await server.host('spill');
    execFileSync('prlimit', ['--pid', String(pid), `--fsize=${20 * MIB}:`]);
    // 64 MB and what may be above it (1 GiB): all of it stays in memory.
    const answer = await server.call('spill/burst', { count: 200, size: MIB, bucket: 'work' });
    assert.equal(answer.json, 200 * MIB, answer.bytes.toString());
    const tooMuch = await server.call('spill/burst', { count: 1_300, size: MIB, bucket: 'kept' });
    assert.equal(tooMuch.status, 429, tooMuch.bytes.toString().slice(0, 300));
    assert.equal(tooMuch.json.code, 'E_QUOTA_EXCEEDED');
    assert.match(tooMuch.json.detail, /objectBytesMax.*the disk does not take what is spilled/);
    const logs = (await server.get('/v1/logs?app=spill')).bytes.toString();
    assert.match(logs, /objects cannot be spilled, they stay in memory: EFBIG/);
    await assertNothingLeft(server);
    execFileSync('prlimit', ['--pid', String(pid), '--fsize=unlimited:']);
    const again = await server.call('spill/burst', { count: 200, size: MIB, bucket: 'work' });
    assert.equal(again.json, 200 * MIB, 'the disk works again');
    assert.equal(await server.host('spill'), pid, 'the host has lived through it');
    await assertNothingLeft(server);
  },
);

test('above the quota on disk the sender is refused by name, and what was there is as it was', async () => {
  const small = await Served.start({ objectBytesMax: 32 * MIB, objectOverBytesMax: 32 * MIB, spillBytesMax: 64 * MIB });
  try {
    await small.deploy(APP);
    const session = await small.start('spill/hoard', { count: 60, size: MIB });
    const at = '/v1/apps/spill/buckets/kept/objects';
    await until(
      async () => (await small.get(`${at}/sent`, { query: { session } })).status === 200,
      'all of it is sent',
    );
    const refused = await small.call('spill/burst', { count: 200, size: MIB, bucket: 'kept' });
    assert.equal(refused.json.code, 'E_QUOTA_EXCEEDED', refused.bytes.toString().slice(0, 300));
    assert.match(refused.json.detail, /the spill file has reached spillBytesMax/);
    await small.ask('POST', `${at}/go`, 1, { query: { session } });
    assert.equal((await small.result(session)).json, 60 * MIB);
    await assertNothingLeft(small);
  } finally {
    await small.close();
  }
});

test('an object is read to its end although its session has ended, and readers cost no copies of it', async () => {
  const session = await server.start('spill/hoard', { count: 1, size: 50 * MIB });
  const url = new URL('/v1/apps/spill/buckets/kept/objects/o-0', server.url);
  url.searchParams.set('session', session);
  await until(async () => (await server.ask('HEAD', url.pathname + url.search)).status === 200, 'it was sent');
  const pids = [server.pid, await server.host('spill')];
  const before = pids.map(residentBytes);
  const readers = await Promise.all(Array.from({ length: 32 }, () => fetch(url)));
  const bodies = readers.map((response) => response.body?.getReader() ?? assert.fail('there is a body'));
  let size = (await Promise.all(bodies.map((body) => body.read()))).map(({ value }) => value?.length ?? 0);
  await server.ask('DELETE', `/v1/sessions/${session}`);
  await server.ended(session);
  const grown = pids.map((pid, i) => residentBytes(pid) - (before[i] ?? 0));
  assert.ok(Math.max(...grown) < 300 * MIB, `32 readers of 50 MB made processes grow by ${grown}`);
  size = await Promise.all(
    bodies.map(async (body, i) => {
      let sum = size[i] ?? 0;
      for (let next = await body.read(); !next.done; next = await body.read()) sum += next.value.length;
      return sum;
    }),
  );
  assert.deepEqual(new Set(size), new Set([50 * MIB]));
  await assertNothingLeft(server);
});

/** The nameless file of spilled objects that a process has open. */
function spillFileOf(pid: number): string | undefined {
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      if (/\/spill\/.*\(deleted\)$/.test(readlinkSync(`/proc/${pid}/fd/${fd}`))) return `/proc/${pid}/fd/${fd}`;
    } catch {
      // It was closed while we looked.
    }
  }
  return undefined;
}
