// Goal: keys, streams, cancellation and deadlines do what the interface says, also when many come at once and callers
// hang up. Method: a real server over HTTP.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventsOf, Served, until } from '../fixtures/served.ts';

const APP = `
import { app, bucket, fn, immediate } from 'antrail';
const sleep = (ms: number, signal?: AbortSignal) => new Promise((r) => { setTimeout(r, ms); signal?.addEventListener('abort', r); });
let runs = 0;
export default app('sessions', {
  entry: 'echo',
  functions: {
    echo: fn((ctx, [one]) => one?.json()),
    once: fn(async (ctx, [one]) => { await sleep(one!.json().ms); return { nonce: Math.random(), session: ctx.session, input: one!.json() }; }),
    fails: fn(() => { throw new Error('no ' + Math.random()); }),
    stream: fn(async (ctx, [one]) => {
      const { count, ms, size = 0 } = one!.json();
      for (let i = 0; i < count; i++) { ctx.output(size > 0 ? { i, fill: 'x'.repeat(size) } : i); if (ms > 0) await sleep(ms); }
      return 'end';
    }),
    waits: fn(async (ctx) => {
      const end = Date.now() + 30_000;
      ctx.send('marks', 'began', { name: 'began', persist: true });
      while (Date.now() < end && !ctx.signal.aborted) await sleep(5_000, ctx.signal);
      ctx.log('aborted ' + ctx.signal.aborted + ' ' + (ctx.signal.reason as any)?.code);
    }),
    busy: fn((ctx, [ms]) => { const end = Date.now() + ms!.json<number>(); while (Date.now() < end); return 'busy'; }),
    slow: fn(async (ctx, [ms]) => { await sleep(ms!.json()); return 'slow'; }),
    deaf: fn(async () => { await sleep(20_000); }),
    spins: fn(() => { for (;;); }),
    chain: fn((ctx, [n]) => { if (n!.json() > 0) ctx.send('chain', n!.json<number>() - 1); }),
    forever: fn((ctx) => { ctx.call('forever'); }),
    mixed: fn((ctx) => { ctx.output('fine'); ctx.call('fails'); }),
  },
  buckets: { marks: bucket({}), chain: bucket({ on: { next: immediate({ run: 'chain' }) } }) },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

const keyed = (key: string) => ({ headers: { 'idempotency-key': key } });

test('fifty requests with one key at once are one session with one answer, sync and async', async () => {
  for (const mode of ['sync', 'async']) {
    const options = { ...keyed(`storm-${mode}`), query: { mode } };
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => server.call('sessions/once', { ms: 30 }, options)),
    );
    const sessions = new Set(answers.map(({ session, json }) => (mode === 'sync' ? session : json.session)));
    assert.equal(sessions.size, 1, mode);
    const [id = ''] = sessions;
    const results =
      mode === 'sync' ? answers.map(({ bytes }) => bytes.toString()) : [(await server.result(id)).bytes.toString()];
    assert.equal(new Set(results).size, 1);
    assert.equal((await server.ended(id)).counts.invocations, 1);
  }
});

test('the same key with another body, type or mode is a mismatch or the same session', async () => {
  const first = await server.call('sessions/once', { ms: 0 }, keyed('k1'));
  const again = await server.call('sessions/once', { ms: 0 }, keyed('k1'));
  assert.deepEqual([again.bytes.toString(), again.session], [first.bytes.toString(), first.session]);
  const other = await server.call('sessions/once', { ms: 1 }, keyed('k1'));
  assert.equal(other.status, 409);
  assert.equal(other.json.code, 'E_IDEMPOTENCY_MISMATCH');
  const asynchronous = await server.call('sessions/once', { ms: 0 }, { ...keyed('k1'), query: { mode: 'async' } });
  assert.equal(asynchronous.status, 202);
  assert.equal(asynchronous.json.session, first.session);
  const elsewhere = await server.call('sessions/echo', { ms: 1 }, keyed('k1'));
  assert.equal(elsewhere.status, 200, 'another function has keys of its own');
  const failed = await Promise.all([1, 2].map(() => server.call('sessions/fails', 1, keyed('k2'))));
  assert.equal(failed[0]?.json.detail, failed[1]?.json.detail, 'a failure is an answer too');
  for (const key of ['', 'x'.repeat(256)]) {
    const refused = await server.call('sessions/echo', 1, { headers: { 'idempotency-key': key } });
    assert.equal(refused.status, 400);
  }
});

test('keys give the same bytes after the server was killed', async () => {
  const before = [];
  for (let i = 0; i < 5; i++) {
    const options = { ...keyed(`kept-${i}`), query: { mode: i % 2 === 0 ? 'async' : 'sync' } };
    const answer = await server.call('sessions/once', { ms: 0, i }, options);
    const session = i % 2 === 0 ? answer.json.session : answer.session;
    before.push({ session, bytes: (await server.result(session)).bytes.toString() });
  }
  const failed = await server.call('sessions/fails', 1, keyed('kept-failure'));
  await server.kill();
  await server.begin();
  for (const [i, { session, bytes }] of before.entries()) {
    const again = await server.call('sessions/once', { ms: 0, i }, keyed(`kept-${i}`));
    assert.deepEqual([again.session, again.bytes.toString()], [session, bytes]);
  }
  assert.equal((await server.call('sessions/fails', 1, keyed('kept-failure'))).json.detail, failed.json.detail);
  assert.equal((await server.call('sessions/once', { ms: 0, i: 9 }, keyed('kept-0'))).status, 409);
});

test('outputs come in order, replay from any id, and end', async () => {
  const session = await server.start('sessions/stream', { count: 30, ms: 5 });
  const live = await server.outputs(session);
  assert.deepEqual(
    live.map(({ data }) => data.json),
    Array.from({ length: 30 }, (_, i) => i),
  );
  assert.deepEqual(
    live.map(({ id }) => id),
    Array.from({ length: 30 }, (_, i) => i + 1),
  );
  assert.deepEqual(await server.outputs(session), live, 'the same after the end');
  assert.deepEqual(await server.outputs(session, 25), live.slice(25));
  assert.deepEqual(await server.outputs(session, 30), []);
  const text = (await server.get(`/v1/sessions/${session}/outputs`)).bytes.toString();
  assert.equal(eventsOf(text).at(-1)?.event, 'end');
  assert.equal(live[0]?.data.name.length > 0, true);
  assert.equal((await server.result(session)).json, 0);
});

test('a reader that leaves in the middle and one that comes late cost nothing', async () => {
  const session = await server.start('sessions/stream', { count: 60, ms: 10, size: 100_000 });
  const readers = Array.from({ length: 10 }, async () => {
    const leave = new AbortController();
    const response = await fetch(`${server.url}/v1/sessions/${session}/outputs`, { signal: leave.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    leave.abort();
  });
  await Promise.all(readers);
  const outputs = await server.outputs(session, 10);
  assert.equal(outputs.length, 50);
  const { href } = outputs[0]?.data ?? {};
  assert.ok(href, 'a large output is a link');
  const large = await server.get(href);
  assert.equal(large.status, 200, large.bytes.toString());
  assert.equal(large.json.i, 10);
});

test('a running session that is cancelled tells its caller, its handlers and everyone who asks', async () => {
  for (const [name, path] of [
    ['waits', 'heard'],
    ['deaf', 'deaf'],
    ['spins', 'deaf'],
    ['forever', 'deaf'],
  ] as const) {
    const call = server.call(`sessions/${name}`);
    const running = await until(async () => {
      const { sessions } = (await server.get('/v1/sessions?app=sessions&state=running')).json;
      return sessions.find((one: { function: string }) => one.function === name);
    }, `${name} runs`);
    const results = server.get(`/v1/sessions/${running.session}/result`, { query: { waitMs: 20_000 } });
    const outputs = server.outputs(running.session);
    if (path === 'heard')
      await until(
        async () => (await server.get('/v1/apps/sessions/buckets/marks/objects/began')).status === 200,
        'it began',
      );
    for (let i = 0; i < 2; i++)
      assert.equal((await server.ask('DELETE', `/v1/sessions/${running.session}`)).status, 202);
    for (const answer of [await call, await results]) {
      assert.equal(answer.status, 409, answer.bytes.toString());
      assert.equal(answer.json.code, 'E_CANCELLED');
      assert.equal(answer.session, running.session);
    }
    assert.deepEqual(await outputs, []);
    const record = await server.ended(running.session);
    assert.equal(record.state, 'cancelled', name);
    assert.equal((await server.call('sessions/echo', name)).json, name, 'the next one runs');
    if (path !== 'heard') continue;
    await until(async () => {
      const logs = (await server.get(`/v1/logs?session=${running.session}`)).bytes.toString();
      return logs.includes('aborted true E_CANCELLED');
    }, 'the handler was told');
  }
});

for (const name of ['slow', 'busy']) {
  test(`short calls are answered while a long one runs that came first (${name})`, async () => {
    for (let i = 0; i < 4; i++) {
      const long = server.call(`sessions/${name}`, 30_000);
      const running = await until(async () => {
        const { sessions } = (await server.get('/v1/sessions?app=sessions&state=running')).json;
        return sessions.find((one: { function: string }) => one.function === name);
      }, 'it runs');
      const short = await Promise.all([1, 2, 3].map((n) => server.call('sessions/echo', n)));
      assert.deepEqual(
        short.map(({ json }) => json),
        [1, 2, 3],
      );
      assert.equal((await server.session(running.session)).state, 'running');
      await server.ask('DELETE', `/v1/sessions/${running.session}`);
      assert.equal((await long).json.code, 'E_CANCELLED');
      await server.ended(running.session);
    }
  });
}

test('a delayed session can be cancelled, an ended one stays what it is, an unknown one is unknown', async () => {
  const delayed = await server.start('sessions/echo', 1, { query: { delayMs: 60_000 } });
  assert.equal((await server.session(delayed)).state, 'running');
  assert.equal((await server.ask('DELETE', `/v1/sessions/${delayed}`)).status, 202);
  const record = await server.ended(delayed);
  assert.equal(record.state, 'cancelled');
  assert.equal(record.counts.invocations, 0);
  const ended = await server.start('sessions/echo', 1);
  await server.ended(ended);
  assert.equal((await server.ask('DELETE', `/v1/sessions/${ended}`)).status, 202);
  assert.equal((await server.session(ended)).state, 'completed');
  const unknown = await server.ask('DELETE', '/v1/sessions/d1-nope-nope');
  assert.equal(unknown.status, 404);
  assert.equal(unknown.json.code, 'E_SESSION_UNKNOWN');
});

test('queued sessions can be cancelled before they run', async () => {
  const blockers = await Promise.all(Array.from({ length: 20 }, () => server.start('sessions/deaf')));
  const queued = await Promise.all(Array.from({ length: 20 }, (_, i) => server.start('sessions/echo', i)));
  await Promise.all([...queued, ...blockers].map((id) => server.ask('DELETE', `/v1/sessions/${id}`)));
  for (const id of [...queued, ...blockers]) {
    const { state } = await server.ended(id);
    assert.ok(state === 'cancelled' || (state === 'completed' && queued.includes(id)), state);
  }
  assert.equal((await server.call('sessions/echo', 'after')).json, 'after');
});

test('a deadline answers 504 and aborts the handlers', async () => {
  for (const name of ['waits', 'spins', 'forever']) {
    const answer = await server.call(`sessions/${name}`, undefined, { query: { timeoutMs: 300 } });
    assert.equal(answer.status, 504, `${name}: ${answer.bytes}`);
    assert.equal(answer.json.code, 'E_TIMEOUT');
    const record = await server.ended(answer.session);
    assert.equal(record.state, 'failed');
    assert.equal(record.error.code, 'E_TIMEOUT');
    if (name !== 'waits') continue;
    await until(async () => {
      const logs = (await server.get(`/v1/logs?session=${answer.session}`)).bytes.toString();
      return logs.includes('aborted true E_TIMEOUT');
    }, 'the handler was told');
  }
  assert.equal((await server.call('sessions/echo', 'after')).json, 'after');
});

test('a session with an output and a failure is completed, and the failure is a dead letter', async () => {
  const answer = await server.call('sessions/mixed');
  assert.equal(answer.json, 'fine');
  const record = await server.ended(answer.session);
  assert.equal(record.state, 'completed');
  await until(async () => {
    const { json } = await server.get('/v1/dead-letters');
    return json.deadLetters.some(
      (one: { session: string; function: string }) => one.session === answer.session && one.function === 'fails',
    );
  }, 'it is a dead letter');
});

test('retry and fork start new sessions with the same input', async () => {
  const first = await server.start('sessions/once', { ms: 0, a: 1 });
  await server.ended(first);
  for (const [how, origin] of [
    ['retry', 'retryOf'],
    ['fork', 'forkOf'],
  ] as const) {
    const { status, json } = await server.ask('POST', `/v1/sessions/${first}/${how}`);
    assert.equal(status, 202);
    assert.notEqual(json.session, first);
    const record = await server.ended(json.session);
    assert.equal(record[origin], first);
    assert.deepEqual(record.result.input, { ms: 0, a: 1 });
  }
});

test('a caller that hangs up does not stop its session', async () => {
  const leave = new AbortController();
  const call = server.call('sessions/once', { ms: 400, left: true }, { signal: leave.signal }).catch(() => 'left');
  const session = await until(async () => {
    const { sessions } = (await server.get('/v1/sessions?app=sessions&state=running')).json;
    return sessions.find((one: { function: string }) => one.function === 'once')?.session;
  }, 'it runs');
  leave.abort();
  assert.equal(await call, 'left');
  const record = await server.ended(session);
  assert.equal(record.state, 'completed');
});

test('a running session is shown with what it has done so far, and what it waits for', async () => {
  await server.deploy(`
    import { app, bucket, bySet, fn, immediate } from 'antrail';
    const work = fn(async (ctx) => {
      for (let i = 0; i < 5; i++) ctx.send('each', i);
      ctx.send('pairs', 'half', { name: 'left' });
      await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
    });
    const noop = fn(() => {});
    export default app('under-way', {
      entry: 'work', functions: { work, noop },
      buckets: {
        each: bucket({ on: { go: immediate({ run: 'noop' }) } }),
        pairs: bucket({ on: { both: bySet({ names: ['left', 'right'], run: 'noop' }) } }),
      },
    });`);
  const id = await server.start('under-way/work');
  const record = await until(async () => {
    const seen = await server.session(id);
    return seen.counts.objects === 6 && seen.counts.attempts === 6 ? seen : undefined;
  }, 'all of its work so far is counted');
  assert.equal(record.state, 'running');
  assert.deepEqual(record.counts, { invocations: 6, attempts: 6, objects: 6, bytes: 5 + '"half"'.length, firings: 5 });
  assert.equal(record.unfired[0].trigger, 'both');
  assert.match(record.unfired[0].waitsFor, /right/);
  // A host that does not answer costs a moment, not the record.
  const host = await server.host('under-way');
  process.kill(host, 'SIGSTOP');
  try {
    const silent = await server.session(id);
    assert.equal(silent.state, 'running');
    assert.equal(silent.counts.invocations, 0);
  } finally {
    process.kill(host, 'SIGCONT');
  }
  await server.ask('DELETE', `/v1/sessions/${id}`);
  assert.equal((await server.ended(id)).state, 'cancelled');
});

test('what the platform refuses a function is told in words, without places in the platform', async () => {
  await server.deploy(`
    import { app, bucket, dynamicGroup, dynamicJoin, fn } from 'antrail';
    const late = fn((ctx) => { ctx.closeGroup('groups'); ctx.send('groups', 1); });
    const wide = fn((ctx) => { ctx.join('joins', 1_000_001); });
    const lost = fn((ctx) => ctx.getObject('joins', 'none').then(() => {}));
    const all = fn(() => {});
    export default app('refused', {
      entry: 'late', functions: { late, wide, lost, all },
      buckets: {
        groups: bucket({ on: { all: dynamicGroup({ run: 'all' }) } }),
        joins: bucket({ on: { all: dynamicJoin({ run: 'all' }) } }),
      },
    });`);
  for (const [name, code] of [
    ['late', 'E_SESSION_ENDED'],
    ['wide', 'E_QUOTA_EXCEEDED'],
    ['lost', 'E_OBJECT_UNKNOWN'],
  ] as const) {
    const { json } = await server.call(`refused/${name}`);
    assert.equal(json.code, code);
    assert.doesNotMatch(JSON.stringify(json), /src\/|dist\/|node_modules/, name);
  }
});
