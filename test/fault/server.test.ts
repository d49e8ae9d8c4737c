// Goal: what was answered with 202 survives a killed server and takes effect once; the rest is told as lost; nothing of
// the old server lives on. Method: a real server is killed with sessions in every state, and started on its folder again.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isAlive, Served, until } from '../fixtures/served.ts';

const APP = `
import { app, bucket, byBatchSize, byName, dynamicGroup, fn, immediate } from 'antrail';
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
export default app('keeps', {
  entry: 'work',
  functions: {
    work: fn(async (ctx, [one]) => {
      const { id, ms } = one.json<{ id: string; ms: number }>();
      ctx.send('done', id, { name: id });
      await sleep(ms);
      return { id, attempt: ctx.attempt };
    }),
    fan: fn((ctx, [n]) => { for (let i = 0; i < n.json<number>(); i++) ctx.send('parts', i); }),
    part: fn(async (ctx, [i]) => { await sleep(20); ctx.send('sums', i.json()); ctx.send('done', 'part', { name: ctx.session + '-' + i.json() }); }),
    sum: fn((ctx, all) => ctx.output(all.reduce((s, one) => s + one.json<number>(), 0))),
    batch: fn((ctx, inputs) => inputs.map((one) => one.session + ' ' + one.name)),
    named: fn((ctx, [one]) => ctx.output('named ' + one.name)),
    collect: fn((ctx, all) => ctx.output(all.map((one) => one.json()).sort())),
  },
  buckets: {
    done: bucket({ on: { ten: byBatchSize({ size: 10, run: 'batch' }) } }),
    parts: bucket({ on: { each: immediate({ run: 'part' }) } }),
    sums: bucket({ on: { all: dynamicGroup({ producers: ['part'], run: 'sum' }) } }),
    inbox: bucket({ on: { all: dynamicGroup({ run: 'collect' }) } }),
    plain: bucket({}),
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start({ instancesMax: 4 });
  await server.deploy(APP.replace("'named '", "'old '"));
  await server.deploy(APP);
});
after(() => server.close());

/** Kills the server; resolves when its app hosts have ended by themselves. */
async function killServer(): Promise<void> {
  const hosts = server.hosts();
  await server.kill();
  await until(() => hosts.every(({ pid }) => !isAlive(pid)), 'the hosts of a killed server end');
}

test('sessions that were accepted and running, delayed or queued finish once after a restart', async () => {
  const ids: string[] = [];
  const start = async (id: string, ms: number, query: Record<string, string | number> = {}) => {
    ids.push(await server.start('keeps/work', { id, ms }, { query }));
  };
  await start('ended', 0);
  await server.ended(ids[0] as string);
  for (let i = 0; i < 12; i++) await start(`long-${i}`, 1_500);
  await start('delayed', 0, { delayMs: 2_500 });
  await start('delayed-past', 0, { delayMs: 700 });
  const fan = await server.start('keeps/fan', 25);
  const lost = await server.start('keeps/work', { id: 'lost', ms: 5_000 }, { query: { durability: 'none' } });
  const sync = server.call('keeps/work', { id: 'sync', ms: 5_000 }).then(
    () => 'answered',
    () => 'broken',
  );
  const list = (await server.get('/v1/sessions?app=keeps&state=running&limit=1000')).json.sessions;
  const syncId = list.find((one: { session: string }) => one.session.startsWith('e') && one.session !== lost)?.session;

  await killServer();
  assert.equal(await sync, 'broken');
  await server.begin();

  for (const id of ids) {
    const record = await server.ended(id);
    assert.equal(record.state, 'completed', JSON.stringify(record));
    assert.equal(record.counts.invocations, 1);
  }
  assert.equal((await server.result(fan)).json, 300);
  for (const id of [lost, syncId]) {
    if (id === undefined) continue;
    const answer = await server.get(`/v1/sessions/${id}`);
    assert.equal(answer.status, 404);
    assert.equal(answer.json.code, 'E_SESSION_LOST');
  }
  const gone = await server.get('/v1/sessions/e1-zzzz-zz');
  assert.ok(['E_SESSION_UNKNOWN', 'E_SESSION_LOST'].includes(gone.json.code));
  assert.equal((await server.get('/v1/sessions/d9-zz-zz')).json.code, 'E_SESSION_UNKNOWN');
});

test('every object given to a bucket-scoped trigger before or after the kill is in one firing', async () => {
  // 15 of the first test and 25 parts, less what was given by sessions that were lost: those two may be in or not.
  const batches = await until(async () => {
    const sessions = (await server.get('/v1/sessions?app=keeps&limit=1000')).json.sessions;
    const found = sessions.filter((one: { function: string; state: string }) => one.function === 'batch');
    return found.length >= 4 && found.every((one: { state: string }) => one.state === 'completed') ? found : undefined;
  }, 'four batches of ten have fired');
  const seen = batches.flatMap((one: { result: string[] }) => one.result);
  assert.equal(new Set(seen).size, seen.length, 'no object is in two firings');
  assert.equal(seen.length, 40);
});

test('apps, versions and run-time triggers survive', async () => {
  const spec = { kind: 'byName', match: 'x-', run: 'named' };
  assert.equal((await server.ask('PUT', '/v1/apps/keeps/buckets/plain/triggers/late', spec)).status, 201);
  const ten = { kind: 'byBatchSize', size: 3, run: 'batch' };
  assert.equal((await server.ask('PUT', '/v1/apps/keeps/buckets/done/triggers/ten', ten)).status, 200);
  const before = (await server.get('/v1/apps/keeps')).json;
  await killServer();
  await server.begin();
  const now = (await server.get('/v1/apps/keeps')).json;
  assert.equal(now.version, before.version);
  assert.deepEqual(
    now.versions.map((one: { version: string }) => one.version),
    before.versions.map((one: { version: string }) => one.version),
  );
  assert.equal(now.versions.length, 2);
  assert.deepEqual(now.manifest.buckets.plain.on.late.match, 'x-');
  const { json } = await server.ask('POST', '/v1/apps/keeps/buckets/plain/objects/x-1', 1);
  assert.equal((await server.result(json.session)).json, 'named x-1');
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) ids.push(await server.start('keeps/work', { id: `three-${i}`, ms: 0 }));
  const batch = await until(async () => {
    const sessions = (await server.get('/v1/sessions?app=keeps&limit=10')).json.sessions;
    return sessions.find(
      (one: { function: string; causes: string[] }) =>
        one.function === 'batch' && ids.some((id) => one.causes.includes(id)),
    );
  }, 'the changed trigger fires at three');
  assert.equal((await server.ended(batch.session)).result.length, 3);
});

test('an open session keeps what was put into it, also what came after a refused put', async () => {
  const put = (name: string, value: unknown, query: Record<string, string> = {}) =>
    server.ask('POST', `/v1/apps/keeps/buckets/inbox/objects/${name}`, value, { query });
  const parts = '/v1/apps/keeps/buckets/parts/objects/p';
  const { session } = (await server.ask('POST', parts, 9, { query: { open: 'true' } })).json;
  assert.equal((await put('a', 1, { session })).status, 202);
  const done = `/v1/apps/keeps/buckets/done/objects/${session}-9`;
  await until(async () => (await server.get(done, { query: { session } })).status === 200, 'the function has sent it');
  // The host refuses the first, because a function sent that name, while the others are on their way.
  const [refused, ...taken] = await Promise.all([
    server.ask('POST', done, 'other', { query: { session } }),
    put('b', 2, { session }),
    put('c', 3, { session }),
  ]);
  assert.equal(refused?.status, 409);
  assert.equal(refused?.json.code, 'E_OBJECT_EXISTS');
  for (const { status } of taken) assert.equal(status, 202);
  for (const name of ['e', 'f']) assert.equal((await put(name, name, { session })).status, 202);
  await killServer();
  await server.begin();
  assert.equal((await put('g', 'g', { session })).status, 202);
  assert.equal((await put('a', 1, { session })).json.duplicate, true);
  assert.equal((await server.ask('POST', parts, 9)).json.session, session);
  assert.equal((await server.ask('POST', `/v1/sessions/${session}/buckets/inbox/close`)).status, 202);
  const outputs = await server.outputs(session);
  assert.deepEqual(
    outputs.map((one) => one.data.json),
    [9, [1, 2, 3, 'e', 'f', 'g']],
  );
});

test('a second server on the same data folder is refused and says who has it', async () => {
  const second = Served.beside(server);
  await assert.rejects(second.begin(), (error: Error) => {
    assert.match(error.message, /ended with 1/);
    assert.match(error.message, new RegExp(`in use by the server with pid ${server.pid}`));
    return true;
  });
  assert.equal((await server.get('/healthz')).status, 200);
});

test('a server that is told to stop lets running calls end and takes no new ones', async () => {
  const call = server.call('keeps/work', { id: 'last', ms: 500 });
  await until(
    async () => (await server.get('/v1/sessions?app=keeps&state=running')).json.sessions.length > 0,
    'it runs',
  );
  const ended = server.kill('SIGTERM');
  assert.equal((await call).json.id, 'last');
  await ended;
  await server.begin();
  assert.equal((await server.get('/readyz')).status, 200);
});
