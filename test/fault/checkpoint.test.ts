// Goal: whatever was acknowledged is there after a kill at any moment, and nothing of it happens twice. Method: real servers
// and hosts, killed in the middle of storms, right after they have come up, and while they repeat what failed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isAlive, Served, until } from '../fixtures/served.ts';

const APP = `
import { app, bucket, dynamicGroup, fn } from 'antrail';
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
export default app('point', {
  entry: 'work',
  functions: {
    work: fn(async (ctx, [one]) => {
      const { id, ms } = one.json<{ id: string; ms: number }>();
      await sleep(ms);
      return { id, attempt: ctx.attempt };
    }),
    random: fn(() => Math.random()),
    keep: fn((ctx, [one]) => ctx.send('kept', one.copy(), { name: 'object', persist: true })),
    mend: fn(async (ctx, [one]) => {
      if (process.env.BROKEN === 'yes') throw new Error('broken');
      await sleep(one.json<number>());
      return 'mended';
    }),
    collect: fn((ctx, all) => ctx.output(all.map((one) => one.json()).sort())),
  },
  buckets: { kept: bucket({}), inbox: bucket({ on: { all: dynamicGroup({ run: 'collect' }) } }) },
  env: { BROKEN: 'no' },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP, { BROKEN: 'yes' });
});
after(() => server.close());

/** Kills the server and starts another on its folder. */
async function restart(): Promise<void> {
  const hosts = server.hosts();
  await server.kill();
  await until(() => hosts.every(({ pid }) => !isAlive(pid)), 'the hosts of a killed server end');
  await server.begin();
}

test('every start that was acknowledged in a storm is there, is executed, and keeps its key', async () => {
  const kept = new Map<string, string>();
  let asked = 0;
  let storming = true;
  const storm = Array.from({ length: 16 }, async () => {
    while (storming) {
      const id = `s${asked++}`;
      const headers = asked % 2 === 0 ? {} : { 'idempotency-key': id };
      try {
        kept.set(id, await server.start('point/work', { id, ms: 20 }, { headers }));
      } catch {
        return; // the server was killed
      }
    }
  });
  await until(() => kept.size >= 60, 'the storm is under way');
  const hosts = server.hosts();
  await server.kill();
  storming = false;
  await Promise.all(storm);
  await until(() => hosts.every(({ pid }) => !isAlive(pid)), 'its hosts end');
  // One that is killed as soon as it is up must not have lost anything either.
  await server.begin();
  await server.kill();
  await server.begin();
  for (const [id, session] of kept) {
    const answer = await server.result(session);
    assert.equal(answer.status, 200, answer.bytes.toString());
    assert.equal(answer.json.id, id);
    if (Number(id.slice(1)) % 2 !== 0) continue;
    const again = await server.start('point/work', { id, ms: 20 }, { headers: { 'idempotency-key': id } });
    assert.equal(again, session, 'its key means the same session');
  }
  const { sessions } = (await server.get('/v1/sessions?app=point&limit=1000')).json;
  const ids = sessions.filter((one: { state: string }) => one.state === 'completed').map((one: any) => one.result.id);
  assert.equal(new Set(ids).size, ids.length, 'no start was executed as two sessions');
});

test('an answer that a key was given for is the same after a kill, and for another body refused', async () => {
  const ask = (value: number) => server.call('point/random', value, { headers: { 'idempotency-key': 'dice' } });
  const first = await ask(1);
  await restart();
  const again = await ask(1);
  assert.deepEqual([again.json, again.session], [first.json, first.session]);
  assert.equal((await ask(2)).json.code, 'E_IDEMPOTENCY_MISMATCH');
});

test('an object that was persisted before the answer is there after a kill, small or large', async () => {
  for (const size of [10, 3_000_000]) {
    const bytes = Buffer.alloc(size, size);
    await server.ended((await server.call('point/keep', bytes)).session);
    await restart();
    const object = await server.get('/v1/apps/point/buckets/kept/objects/object');
    assert.equal(Buffer.compare(object.bytes, bytes), 0, `${size} bytes`);
  }
});

test('an open session and what was put into it survive a kill of its host', async () => {
  const put = (name: string, query: Record<string, string>) =>
    server.ask('POST', `/v1/apps/point/buckets/inbox/objects/${name}`, name, { query });
  const { session } = (await put('a', { open: 'true' })).json;
  assert.equal((await put('b', { session })).status, 202);
  const pid = await server.host('point');
  const puts = [put('c', { session }), put('d', { session })];
  process.kill(pid, 'SIGKILL');
  for (const answer of await Promise.all(puts)) assert.equal(answer.status, 202);
  await until(() => !isAlive(pid), 'the host is gone');
  assert.equal((await server.ask('POST', `/v1/sessions/${session}/buckets/inbox/close`)).status, 202);
  assert.deepEqual((await server.result(session)).json, ['a', 'b', 'c', 'd']);
});

test('a call that waits while its host is killed is executed again, and one beside it that had ended is not', async () => {
  const [ended, waiting] = [
    server.call('point/work', { id: 'x', ms: 0 }),
    server.call('point/work', { id: 'y', ms: 3_000 }),
  ];
  const { session } = await ended;
  const pid = await server.host('point');
  await until(
    async () => (await server.get('/v1/sessions?app=point&state=running')).json.sessions.length > 0,
    'one waits',
  );
  process.kill(pid, 'SIGKILL');
  assert.equal((await waiting).json.id, 'y');
  assert.equal((await server.session(session)).counts.attempts, 1);
});

test('the retry of a dead letter that a kill interrupts goes on, once, and the letter goes with it', async () => {
  await server.ended(await server.start('point/mend', 1_000));
  const [letter] = (await server.get('/v1/dead-letters?app=point')).json.deadLetters;
  assert.equal(letter.function, 'mend');
  await server.deploy(APP);
  const retry = () => server.ask('POST', `/v1/dead-letters/${letter.id}/retry`);
  const { session } = (await retry()).json;
  await restart();
  assert.equal((await retry()).json.session, session, 'it is the same one');
  const pid = await server.host('point');
  process.kill(pid, 'SIGKILL');
  assert.equal((await server.result(session)).json, 'mended');
  await server.ended(session);
  assert.deepEqual((await server.get('/v1/dead-letters?app=point')).json.deadLetters, []);
});

test('priority and delay of a start survive a kill', async () => {
  const small = await Served.start({ instancesMax: 1 });
  try {
    await small.deploy(APP);
    const start = (id: string, query: Record<string, number>) => small.start('point/work', { id, ms: 300 }, { query });
    await start('first', {});
    const low = await start('low', { priority: 0 });
    const beganMs = Date.now();
    const late = await start('late', { priority: 9, delayMs: 2_500 });
    const high = await start('high', { priority: 5 });
    await small.kill();
    await small.begin();
    const startedAt = async (session: string) => {
      await small.ended(session);
      const { invocations } = (await small.get(`/v1/sessions/${session}/trace`)).json;
      return Date.parse(invocations[0].attempts.at(-1).startedAt);
    };
    assert.ok((await startedAt(high)) < (await startedAt(low)), 'the higher priority goes first');
    assert.ok((await startedAt(late)) >= beganMs + 2_500, 'not before its time');
  } finally {
    await small.close();
  }
});
