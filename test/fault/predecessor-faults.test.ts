// Goal: faults that reading the code of a predecessor turned up do not happen here. Method: one real server, two apps that
// provoke them; each test is named for the fault in its own words.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Served, until } from '../fixtures/served.ts';

const APP = `
import { threadId } from 'node:worker_threads';
import { app, bucket, byBatchSize, bySet, byTime, dynamicGroup, fn, immediate, redundant } from 'antrail';
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
const bytesOf = (n: number, odd: boolean) =>
  Uint8Array.from({ length: n }, (_, i) => (odd ? [0, 124, 255, 92][i % 4]! : (i * 7) & 255));

export default app('old', {
  entry: 'echo',
  functions: {
    echo: fn(async (ctx, [one]) => { const { value, ms } = one.json(); await sleep(ms ?? 0); return value; }),
    where: fn(async () => { await sleep(300); return threadId; }),
    fan: fn((ctx, [n]) => { for (let i = 0; i < n.json<number>(); i++) ctx.send('branches', i); }),
    branch: fn(async (ctx, [one]) => { await sleep(30); ctx.send('seen', { session: ctx.session, thread: threadId, of: one.session }); }),
    gather: fn((ctx, all) => ctx.output(all.map((one) => one.json()))),
    give: fn((ctx, [one]) => ctx.send('pairs', one.json())),
    pair: fn((ctx, two) => two.map((one) => one.json())),
    later: fn((ctx, all) => all.map((one) => one.json())),
    vote: fn((ctx, [n]) => { for (let i = 0; i < n.json<number>(); i++) ctx.send('votes', ctx.session + ' ' + i); }),
    elect: fn((ctx, votes) => ctx.output(votes.map((one) => one.json()))),
    pass: fn((ctx, [one]) => ctx.send('passed', one.contentType === 'application/json' ? one.json() : one.copy())),
    passed: fn((ctx, [one]) => ctx.output(one.contentType === 'application/json' ? one.json() : one.copy())),
    sizes: fn(async (ctx, [list]) => {
      for (const n of list.json<number[]>()) ctx.send('stored', bytesOf(n, false), { name: 'n' + n });
      const got = [];
      for (const n of list.json<number[]>()) {
        const object = await ctx.getObject('stored', 'n' + n);
        got.push([object.size, object.bytes.length, Buffer.compare(object.copy(), bytesOf(n, false))]);
      }
      return got;
    }),
    both: fn((ctx) => { ctx.call('called', 1); ctx.send('sent', 2); }),
    called: fn((ctx, [one]) => ctx.send('ends', 'called ' + one.json())),
    sent: fn((ctx, [one]) => ctx.send('ends', 'sent ' + one.json())),
    ends: fn((ctx, all) => ctx.output(all.map((one) => one.json()).sort())),
    parts: fn((ctx) => {
      ctx.send('ordered', 'last', { name: 'c' });
      ctx.send('ordered', bytesOf(1_000_000, true), { name: 'b' });
      ctx.send('ordered', 'first', { name: 'a' });
    }),
    ordered: fn((ctx, all) => ctx.output(all.map((one) => [one.name, one.size]))),
    silent: fn(() => {}),
    small: fn((ctx, [n]) => { for (let i = 0; i < n.json<number>(); i++) ctx.send('kept', 'value ' + i); }),
    slow: fn(async (ctx) => { if (ctx.attempt === 1) await sleep(400); ctx.send('counted', ctx.attempt, { group: ctx.session }); }),
    count: fn((ctx, all) => ctx.output(all.map((one) => one.json()))),
  },
  buckets: {
    branches: bucket({ on: { each: immediate({ run: 'branch' }) } }),
    seen: bucket({ on: { all: dynamicGroup({ producers: ['branch'], run: 'gather' }) } }),
    pairs: bucket({ on: { two: byBatchSize({ size: 2, run: 'pair' }) } }),
    quiet: bucket({}),
    windows: bucket({ on: { w: byTime({ windowMs: 200, run: 'later' }) } }),
    votes: bucket({ on: { two: redundant({ k: 2, n: 3, run: 'elect' }) } }),
    passed: bucket({ on: { on: immediate({ run: 'passed' }) } }),
    stored: bucket({}),
    sent: bucket({ on: { on: immediate({ run: 'sent' }) } }),
    ends: bucket({ on: { all: dynamicGroup({ producers: ['called', 'sent'], run: 'ends' }) } }),
    ordered: bucket({ on: { all: bySet({ names: ['a', 'b', 'c'], run: 'ordered' }) } }),
    expected: bucket({ rerun: [{ source: 'silent', expect: 'every-object', timeoutMs: 20 }] }),
    kept: bucket({}),
    counted: bucket({
      on: { all: dynamicGroup({ producers: ['slow'], run: 'count' }) },
      rerun: [{ source: 'slow', expect: 'every-object', timeoutMs: 100 }],
    }),
  },
});`;

/** Functions and buckets of the same names, which do something else. */
const TWIN = `
import { app, bucket, byBatchSize, fn } from 'antrail';
export default app('twin', {
  entry: 'give',
  functions: {
    give: fn((ctx, [one]) => ctx.send('pairs', one.json())),
    pair: fn((ctx, all) => ['twin', ...all.map((one) => one.json())]),
  },
  buckets: { pairs: bucket({ on: { two: byBatchSize({ size: 3, run: 'pair' }) } }) },
});`;

let server: Served;
before(async () => {
  server = await Served.start({ instancesMax: 6 });
  await Promise.all([server.deploy(APP), server.deploy(TWIN)]);
});
after(() => server.close());

/** Results of the sessions of a function, once there are so many and all have ended. */
async function results(app: string, name: string, count: number): Promise<any[]> {
  return until(async () => {
    const { sessions } = (await server.get(`/v1/sessions?app=${app}&limit=1000`)).json;
    const found = sessions.filter((one: { function: string }) => one.function === name);
    if (found.length < count || found.some((one: { state: string }) => one.state === 'running')) return undefined;
    return found.map((one: { result: unknown }) => one.result);
  }, `${count} sessions of ${name} ended`);
}

function put(bucket: string, name: string, value: unknown): Promise<{ status: number }> {
  return server.ask('POST', `/v1/apps/old/buckets/${bucket}/objects/${name}`, value);
}

describe('sessions', () => {
  test('bursts do not pile up on one instance', async () => {
    await until(async () => {
      const answers = await Promise.all(Array.from({ length: 4 }, () => server.call('old/where')));
      return new Set(answers.map(({ json }) => json)).size >= 3;
    }, 'as soon as there are instances enough they run beside each other');
  });

  test('a session whose branches are spread over instances is the same session in each of them', async () => {
    await until(async () => {
      const answer = await server.call('old/fan', 40);
      assert.equal(answer.json.length, 40);
      for (const { session, of } of answer.json) assert.deepEqual([session, of], [answer.session, answer.session]);
      return new Set(answer.json.map((one: { thread: number }) => one.thread)).size > 1;
    }, 'they were spread');
  });

  test('a late answer goes to nobody else: each of many calls at once gets its own, beside ones that are given up', async () => {
    const late = Array.from({ length: 10 }, (_, i) =>
      server.call('old/echo', { value: `late ${i}`, ms: 400 }, { query: { timeoutMs: 100 } }),
    );
    const prompt = Array.from({ length: 60 }, (_, i) => server.call('old/echo', { value: `own ${i}`, ms: i % 3 }));
    for (const [i, answer] of (await Promise.all(prompt)).entries()) assert.equal(answer.json, `own ${i}`);
    for (const answer of await Promise.all(late)) assert.equal(answer.json.code, 'E_TIMEOUT');
    assert.equal((await server.call('old/echo', { value: 'after' })).json, 'after');
  });

  test('functions and buckets of one name in two apps do not meet', async () => {
    for (const i of [1, 2, 3]) await server.ended(await server.start('twin/give', i));
    const [only, ...others] = await results('twin', 'pair', 1);
    assert.deepEqual([only[0], ...only.slice(1).sort()], ['twin', 1, 2, 3]);
    assert.deepEqual(others, []);
    assert.equal(
      (await server.get('/v1/sessions?app=old&limit=1000')).json.sessions.filter(
        (one: { function: string }) => one.function === 'pair',
      ).length,
      0,
    );
  });

  test('a function that calls another by name sends into buckets too', async () => {
    assert.deepEqual((await server.call('old/both')).json, ['called 1', 'sent 2']);
  });
});

describe('triggers', () => {
  test('objects that come at the same moment are each in one batch: none twice, none left out', async () => {
    const ids = Array.from({ length: 60 }, (_, i) => `p${i}`);
    await Promise.all(ids.map((id) => server.call('old/give', id)));
    const pairs = await results('old', 'pair', 30);
    assert.equal(pairs.length, 30);
    for (const pair of pairs) assert.equal(pair.length, 2);
    assert.deepEqual(pairs.flat().sort(), ids.sort());
  });

  test('a window fires by its timer although nothing comes after it, also one that was added while the app ran', async () => {
    await put('windows', 'only', 'declared');
    const spec = { kind: 'byTime', windowMs: 200, run: 'later' };
    assert.equal((await server.ask('PUT', '/v1/apps/old/buckets/quiet/triggers/added', spec)).status, 201);
    await put('quiet', 'only', 'added');
    assert.deepEqual((await results('old', 'later', 2)).flat().sort(), ['added', 'declared']);
  });

  test('the k-th of n fires, once per session, with objects of that session only', async () => {
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, i) => server.call('old/vote', i % 2 === 0 ? 3 : 5)),
    );
    for (const { session, json } of answers) {
      assert.deepEqual(
        json.map((vote: string) => vote.split(' ')[0]),
        [session, session],
      );
    }
    assert.equal((await server.call('old/vote', 1)).json, null, 'one of three is not enough');
  });

  test('removing a trigger that is not there says so and harms none that is', async () => {
    const gone = await server.ask('DELETE', '/v1/apps/old/buckets/passed/triggers/nobody');
    assert.equal(gone.status, 404);
    assert.equal(gone.json.code, 'E_TRIGGER_UNKNOWN');
    assert.equal((await server.call('old/pass', 'still')).json, 'still');
  });

  test('inputs of one firing keep their places, whether they ride in a message or lie in shared memory', async () => {
    assert.deepEqual((await server.call('old/parts')).json, [
      ['a', 7],
      ['b', 1_000_000],
      ['c', 6],
    ]);
  });
});

describe('objects', () => {
  test('small payloads arrive as they were sent, whatever bytes they hold', async () => {
    for (const size of [1, 2, 3, 255, 256, 1_023, 1_024, 1_025]) {
      const bytes = Buffer.from(
        Array.from({ length: size }, (_, i) => [0, 124, 255, 92, 10][(i + size) % 5] as number),
      );
      const answer = await server.call('old/pass', bytes);
      assert.equal(Buffer.compare(answer.bytes, bytes), 0, `${size} bytes`);
    }
    for (const text of ['|', '\0', 'a|b\0c', '\0'.repeat(1_024), '|'.repeat(1_000)]) {
      assert.equal((await server.call('old/pass', text)).json, text, JSON.stringify(text.slice(0, 8)));
    }
  });

  test('an object that is asked for comes with its size, on both sides of every width that a number may be written in', async () => {
    const sizes = [1, 127, 128, 255, 256, 16_384, 65_535, 65_536, 1_000_000];
    assert.deepEqual(
      (await server.call('old/sizes', sizes)).json,
      sizes.map((size) => [size, size, 0]),
    );
  });

  test('small values are not kept for ever: nothing of a session is left in memory after its end', async () => {
    await Promise.all(Array.from({ length: 40 }, () => server.call('old/small', 50)));
    await until(async () => {
      const { objects } = (await server.get('/v1/objects?app=old')).json.apps[0];
      return objects === 0;
    }, 'no object is left');
  });
});

describe('executions again', () => {
  test('what never comes is not waited for for ever: five more attempts, then a dead letter', async () => {
    const answer = await server.call('old/silent');
    assert.equal(answer.json.code, 'E_TIMEOUT');
    const { counts } = await server.ended(answer.session);
    assert.equal(counts.attempts, 6);
    const { deadLetters } = (await server.get('/v1/dead-letters?app=old')).json;
    const [letter] = deadLetters.filter((one: { session: string }) => one.session === answer.session);
    assert.equal(letter.attemptCount, 6);
  });

  test('a slow attempt that finishes late is not counted beside the one that took its place', async () => {
    const answers = await Promise.all([1, 2, 3].map(() => server.call('old/slow')));
    for (const { json } of answers) assert.deepEqual(json, [2]);
  });
});
