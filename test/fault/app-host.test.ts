// Goal: an app host that is killed costs no accepted session, doubles no firing, and touches no other app. Method: a real
// server and real hosts, killed while functions wait in them.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isAlive, Served, statOf, until } from '../fixtures/served.ts';

const COUNT = `
import { app, bucket, byBatchSize, dynamicGroup, dynamicJoin, fn, immediate } from 'antrail';
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
export default app('count', {
  entry: 'split',
  functions: {
    split: fn((ctx, [text]) => {
      const lines = text.json();
      ctx.join('totals', new Set(lines.join(' ').split(' ').map((word) => word.length % 3)).size);
      for (const [i, line] of lines.entries()) ctx.send('lines', line, { name: 'line-' + i });
    }),
    map: fn(async (ctx, [line]) => {
      await sleep(60);
      const words = line.json().split(' ');
      for (const word of words) ctx.send('words', word, { group: String(word.length % 3) });
      ctx.send('seen', { line: line.name, session: ctx.session }, { persist: true });
    }, { concurrency: 2 }),
    reduce: fn((ctx, words) => {
      const counts = {};
      for (const word of words) counts[word.json()] = (counts[word.json()] ?? 0) + 1;
      ctx.send('totals', counts, { name: words[0].group });
    }),
    collect: fn((ctx, totals) => ctx.output(Object.assign({}, ...totals.map((t) => t.json())))),
    tally: fn((ctx, batch) => batch.map((one) => one.json())),
    echo: fn((ctx, [one]) => one?.json()),
  },
  buckets: {
    lines: bucket({ on: { each: immediate({ run: 'map' }) } }),
    words: bucket({ on: { all: dynamicGroup({ producers: ['map'], run: 'reduce' }) } }),
    totals: bucket({ on: { all: dynamicJoin({ run: 'collect' }) } }),
    seen: bucket({ on: { five: byBatchSize({ size: 5, run: 'tally' }) } }),
  },
});
`;

const OTHER = `
import { app, fn } from 'antrail';
export default app('other', {
  entry: 'slow',
  functions: { slow: fn(async (ctx) => { await new Promise((r) => setTimeout(r, 1500)); return ctx.attempt; }) },
});`;

const POISON = `
import { app, fn } from 'antrail';
export default app('poison', {
  entry: 'wait',
  functions: {
    kill: fn(() => { process.kill(process.pid, 'SIGKILL'); }),
    wait: fn(async (ctx, [ms]) => { await new Promise((r) => setTimeout(r, ms.json())); return 'waited'; }),
  },
});`;

const LINES = Array.from({ length: 40 }, (_, i) => `the quick brown fox jumps over lazy dog w${i % 7} fo${i % 2}`);
const EXPECTED: Record<string, number> = {};
for (const word of LINES.join(' ').split(' ')) EXPECTED[word] = (EXPECTED[word] ?? 0) + 1;

let server: Served;
before(async () => {
  server = await Served.start();
  await Promise.all([server.deploy(COUNT), server.deploy(OTHER), server.deploy(POISON)]);
});
after(() => server.close());

for (const kills of [1, 2]) {
  test(`a MapReduce session whose host is killed ${kills} time(s) ends with the right counts, every firing once`, async () => {
    const others = [server.call('other/slow'), server.start('other/slow')];
    const otherPid = await server.host('other');
    const session = await server.start('count/split', LINES);
    for (let kill = 0; kill < kills; kill++) {
      const pid = await server.host('count');
      await until(async () => {
        const trace = await server.get(`/v1/sessions/${session}/trace`);
        const done = (trace.json.invocations ?? []).filter(
          (one: { function: string; attempts: { outcome?: string }[] }) =>
            one.function === 'map' && one.attempts.at(-1)?.outcome !== undefined,
        );
        return server.hosts('count')[0]?.pid === pid && done.length >= 6;
      }, 'some mappers have ended');
      process.kill(pid, 'SIGKILL');
      await until(() => !isAlive(pid), 'the host is gone');
    }
    const result = await server.result(session);
    assert.equal(result.status, 200, result.bytes.toString());
    assert.deepEqual(result.json, EXPECTED);
    const record = await server.ended(session);
    assert.equal(record.state, 'completed');
    assert.deepEqual(record.unfired, []);

    const trace = (await server.get(`/v1/sessions/${session}/trace`)).json.invocations;
    const firings = trace.map((one: { firing: string }) => one.firing);
    assert.equal(new Set(firings).size, firings.length, 'a firing is executed once');
    assert.equal(trace.filter((one: { function: string }) => one.function === 'map').length, LINES.length);
    const ids = trace.map((one: { id: string }) => one.id);
    assert.equal(new Set(ids).size, ids.length);

    const [sync, async] = await Promise.all([others[0], others[1]]);
    assert.equal((sync as { json: unknown }).json, 1);
    const slow = await server.ended(async as string);
    assert.equal(slow.counts.attempts, 1);
    assert.equal(await server.host('other'), otherPid);
  });
}

test('bucket-scoped firings count every object of the killed executions once', async () => {
  const sessions = (await server.get('/v1/sessions?app=count&limit=1000')).json.sessions;
  const tallies = sessions.filter((one: { function: string }) => one.function === 'tally');
  const seen: string[] = [];
  for (const { session } of tallies) {
    const record = await server.ended(session);
    assert.equal(record.state, 'completed');
    for (const one of record.result) seen.push(`${one.session} ${one.line}`);
  }
  assert.equal(seen.length, 2 * LINES.length);
  assert.equal(new Set(seen).size, seen.length);
});

test('a session that kills its host every time fails with a typed error, and nobody beside it', async () => {
  const beside = await Promise.all(Array.from({ length: 12 }, (_, i) => server.start('poison/wait', i * 150)));
  const killer = await server.call('poison/kill', 1);
  assert.equal(killer.status, 503, killer.bytes.toString());
  assert.equal(killer.json.code, 'E_NODE_LOST');
  assert.match(killer.json.detail, /SIGKILL/);
  assert.equal(killer.json.signal, 'SIGKILL');
  for (const id of beside) assert.equal((await server.ended(id)).state, 'completed');
  assert.equal((await server.call('poison/wait', 0)).json, 'waited');
});

test('a stopped host goes on where it was when it is continued', async () => {
  const pid = await server.host('poison');
  const asynchronous = await server.start('poison/wait', 100);
  const calls = [server.call('poison/wait', 100), server.call('poison/wait', 0)];
  process.kill(pid, 'SIGSTOP');
  try {
    await until(() => statOf(pid)?.state === 'T', 'the host is stopped');
    calls.push(server.call('poison/wait', 0));
    const other = await server.call('other/slow');
    assert.equal(other.json, 1, 'another app runs meanwhile');
    await new Promise((resolve) => setTimeout(resolve, 1_500));
  } finally {
    process.kill(pid, 'SIGCONT');
  }
  for (const call of calls) assert.equal((await call).json, 'waited');
  const record = await server.ended(asynchronous);
  assert.equal(record.state, 'completed');
  assert.equal(record.counts.attempts, 1);
  assert.equal(await server.host('poison'), pid, 'nobody took it for dead');
});

test('a stopped server goes on where it was when it is continued', async () => {
  const calls = [server.call('poison/wait', 200), server.call('other/slow')];
  const delayed = await server.start('poison/wait', 0, { query: { delayMs: 500 } });
  server.signal('SIGSTOP');
  await until(() => statOf(server.pid)?.state === 'T', 'the server is stopped');
  calls.push(server.call('poison/wait', 0));
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  server.signal('SIGCONT');
  for (const call of calls) assert.equal((await call).status, 200);
  assert.equal((await server.ended(delayed)).state, 'completed');
});
