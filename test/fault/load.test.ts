// Goal: many sessions and changes of version under load leave the server as it was. Method: a real server; resident memory
// after warming up against later.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { residentBytes, Served, until } from '../fixtures/served.ts';

const MIB = 1_048_576;
const appOf = (version: string) => `
import { app, bucket, byBatchSize, dynamicGroup, fn, immediate } from 'antrail';
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
export default app('load', {
  entry: 'fan',
  functions: {
    fan: fn((ctx, [n]) => { for (let i = 0; i < n!.json<number>(); i++) ctx.send('parts', 'x'.repeat(60_000)); }),
    part: fn((ctx, [one]) => { ctx.send('sizes', one!.json<string>().length); }),
    sum: fn((ctx, all) => { ctx.output(all.reduce((s, one) => s + one.json<number>(), 0)); }),
    version: fn(() => '${version}'),
    slow: fn(async (ctx) => { await sleep(1_500); ctx.send('late', 1); }),
    late: fn((ctx) => { ctx.output('${version}'); }),
    give: fn((ctx, [one]) => { ctx.send('window', one!.json()); }),
    window: fn((ctx, all) => ({ version: '${version}', values: all.map((one) => one.json()) })),
  },
  buckets: {
    parts: bucket({ on: { each: immediate({ run: 'part' }) } }),
    sizes: bucket({ on: { all: dynamicGroup({ producers: ['part'], run: 'sum' }) } }),
    late: bucket({ on: { go: immediate({ run: 'late' }) } }),
    window: bucket({ on: { four: byBatchSize({ size: 4, run: 'window' }) } }),
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start({ instancesMax: 3 });
  await server.deploy(appOf('one'));
});
after(() => server.close());

async function fans(count: number, mode: 'sync' | 'async'): Promise<void> {
  const each = async () => {
    const answer =
      mode === 'sync' ? await server.call('load/fan', 8) : await server.result(await server.start('load/fan', 8));
    assert.equal(answer.json, 480_000);
  };
  const lanes = Array.from({ length: 10 }, async (_, lane) => {
    for (let i = lane; i < count; i += 10) await each();
  });
  await Promise.all(lanes);
}

for (const mode of ['sync', 'async'] as const) {
  test(`a thousand sessions (${mode}) leave memory level and nothing running`, async () => {
    await fans(300, mode);
    const host = await server.host('load');
    const early = { server: residentBytes(server.pid), host: residentBytes(host) };
    await fans(700, mode);
    await until(async () => {
      const { apps } = (await server.get('/v1/objects?app=load')).json;
      return apps[0].sessions === 0 && apps[0].memoryBytes === 0 && apps[0].objects === 0;
    }, 'nothing is left of them');
    assert.equal((await server.get('/v1/sessions?app=load&state=running')).json.sessions.length, 0);
    // The records of sessions and traces are kept, bounded: some hundreds of bytes each.
    const late = { server: residentBytes(server.pid), host: residentBytes(host) };
    // Together they sent 336 MB.
    assert.ok(late.server - early.server < 100 * MIB, `server ${early.server} → ${late.server}`);
    assert.ok(late.host - early.host < 150 * MIB, `host ${early.host} → ${late.host}`);
    assert.equal(await server.host('load'), host);
  });
}

test('sessions keep the version they began with; new ones take the new; windows move on; the old host ends', async () => {
  const old = await server.host('load');
  for (const value of [1, 2]) await server.call('load/give', value);
  const running = [...(await Promise.all([server.start('load/slow'), server.start('load/slow')]))];
  const sync = server.call('load/slow');
  let stop = false;
  const seen: string[] = [];
  const load = Array.from({ length: 4 }, async () => {
    while (!stop) {
      const answer = await server.call('load/version');
      assert.equal(answer.status, 200, answer.bytes.toString());
      seen.push(answer.json);
    }
  });
  await server.deploy(appOf('two'));
  assert.equal((await server.call('load/version')).json, 'two');
  for (const value of [3, 4]) await server.call('load/give', value);
  const window = await until(async () => {
    const { sessions } = (await server.get('/v1/sessions?app=load&limit=1000')).json;
    return sessions.find((one: { function: string }) => one.function === 'window');
  }, 'the window fired');
  assert.deepEqual((await server.ended(window.session)).result, { version: 'two', values: [1, 2, 3, 4] });
  await until(() => seen.includes('two'), 'callers see the new version');
  stop = true;
  await Promise.all(load);
  assert.deepEqual([...new Set(seen)], ['one', 'two']);
  for (const id of running) assert.equal((await server.result(id)).json, 'one');
  assert.equal((await sync).json, 'one');
  await until(() => !server.hosts('load').some(({ pid }) => pid === old), 'the old host ends when nothing uses it');
  const info = (await server.get('/v1/apps/load')).json;
  assert.equal(info.versions.length, 2);
});

test('deploys in a row under load end with the last one', async () => {
  let stop = false;
  const load = Array.from({ length: 3 }, async () => {
    while (!stop) assert.equal((await server.call('load/version')).status, 200);
  });
  for (let i = 0; i < 4; i++) await server.deploy(appOf(`v${i % 3}`));
  stop = true;
  await Promise.all(load);
  assert.equal((await server.call('load/version')).json, 'v0');
  await until(() => server.hosts('load').length === 1, 'one host is left');
});
