// Goal: the app host with real threads does what is promised of sessions, sends and ends. Method: apps in a few
// lines, the test plays the server.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { HostInProcess } from '../fixtures/host-in-process.ts';

const SOURCE = `
import { app, bucket, fn, immediate, byName, bySet, byBatchSize, byTime, dynamicGroup, dynamicJoin, redundant } from 'antrail';
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
export default app('test', {
  entry: 'echo',
  functions: {
    echo: fn((ctx, [input]) => input?.json()),
    bytes: fn((ctx, [input]) => input.bytes),
    boom: fn(() => { throw new TypeError('no good', { cause: new Error('deeper') }); }),
    chain: fn((ctx, [input]) => { const n = input.json(); if (n > 0) ctx.send('chain', n - 1); else ctx.output('done'); }),
    fan: fn((ctx, [input]) => { for (let i = 0; i < input.json(); i++) ctx.send('work', i); }),
    work: fn(async (ctx, [o]) => { await sleep(1); ctx.send('parts', o.json(), { group: String(o.json() % 3) }); }),
    sum: fn((ctx, parts) => ctx.output({ group: parts[0].group, sum: parts.reduce((s, p) => s + p.json(), 0), n: parts.length })),
    named: fn((ctx) => { ctx.send('set', 1, { name: 'b' }); ctx.send('set', 2, { name: 'a' }); ctx.send('set', 3, { name: 'z' }); }),
    joined: fn((ctx, inputs) => ctx.output(inputs.map((i) => i.name))),
    clash: fn((ctx) => { ctx.call('clashing'); ctx.call('clashing'); }),
    clashing: fn((ctx) => ctx.send('set', ctx.invocation, { name: 'same' })),
    big: fn((ctx) => { const o = ctx.createObject('large', 50_000_000); o.bytes[0] = 7; o.bytes[49_999_999] = 9; ctx.sendObject(o); }),
    large: fn((ctx, [o]) => ctx.output([o.bytes[0], o.bytes[49_999_999], o.bytes.buffer instanceof SharedArrayBuffer])),
    spin: fn(() => { for (;;); }, { timeoutMs: 150 }),
    hang: fn((ctx) => new Promise(() => {}), { timeoutMs: 100 }),
    exit: fn(() => process.exit(3)),
    flaky: fn((ctx) => { if (ctx.attempt < 3) throw new Error('attempt ' + ctx.attempt); return ctx.attempt; }, { retries: { max: 3, minMs: 5, maxMs: 10 } }),
    oom: fn(() => { let last; for (;;) last = { last }; }, { memoryMb: 32 }),
    starter: fn((ctx) => ctx.call('crasher')),
    crasher: fn((ctx) => { if (ctx.attempt === 1) process.exit(1); ctx.output('attempt ' + ctx.attempt); }),
    dyn: fn((ctx, [input]) => { const n = input.json(); ctx.join('dyn', n); for (let i = 0; i < n; i++) ctx.send('dyn', i); }),
    batch: fn((ctx) => { for (let i = 0; i < 5; i++) ctx.send('batch', i); }),
    late: fn((ctx, inputs) => ctx.send('seen', inputs.map((i) => i.json()), { output: true })),
    reader: fn(async (ctx) => { ctx.send('set', { x: 1 }, { name: 'r' }); const o = await ctx.getObject('set', 'r'); return o.json(); }),
    missing: fn(async (ctx) => { try { await ctx.getObject('set', 'none'); } catch (e) { return e.code; } }),
    typo: fn((ctx) => ctx.send('chian', 1)),
    unserialisable: fn(() => ({ a: [{ when: 10n }] })),
    slow: fn(async (ctx) => { await new Promise((r) => ctx.signal.addEventListener('abort', r)); return 'aborted'; }),
    many: fn(async (ctx) => { await sleep(50); return 1; }, { concurrency: 10 }),
    lookup: fn(async (ctx, [i]) => { const how = i.json(); if (ctx.attempt === 1 && how === 'hang') await new Promise(() => {}); if (how === 'never' || (ctx.attempt === 1 && how === 'forget')) return; ctx.send('found', how); }),
    found: fn((ctx, [o]) => ctx.output(o.json())),
    relay: fn((ctx, [input]) => { const n = input.json(); ctx.send('other', n); if (n === 13 && ctx.attempt < 3) process.exit(1); }),
    elsewhere: fn((ctx, [o]) => { if (o.json() === 0) ctx.output('done'); else ctx.send('back', o.json() - 1); }, { pool: 'elsewhere' }),
    tuned: fn((ctx) => ctx.send('tuned', 'x', { name: 'pre-1' })),
  },
  buckets: {
    chain: bucket({ on: { next: immediate({ run: 'chain' }) } }),
    work: bucket({ on: { go: immediate({ run: 'work' }) } }),
    parts: bucket({ on: { all: dynamicGroup({ producers: ['work'], run: 'sum' }) } }),
    set: bucket({ on: { both: bySet({ names: ['a', 'b'], run: 'joined' }) } }),
    large: bucket({ on: { go: immediate({ run: 'large' }) } }),
    dyn: bucket({ on: { all: dynamicJoin({ run: 'joined' }) } }),
    batch: bucket({ on: { two: byBatchSize({ size: 2, maxWaitMs: 30, scope: 'session', run: 'late' }) } }),
    found: bucket({ on: { go: immediate({ run: 'found' }) }, rerun: [{ source: 'lookup', expect: 'every-object', timeoutMs: 120 }] }),
    seen: bucket({}),
    other: bucket({ on: { go: immediate({ run: 'elsewhere' }) } }),
    back: bucket({ on: { go: immediate({ run: 'relay' }) } }),
    tuned: bucket({ on: { pre: byName({ match: 'pre-', run: 'joined' }), not: byName({ name: 'other', run: 'boom' }) } }),
  },
});`;

let host: HostInProcess;
before(async () => {
  host = await HostInProcess.start(SOURCE);
  await host.ready;
});
after(() => host.close());

test('the entry function returns the result', async () => {
  assert.deepEqual((await host.run('echo', { a: 1 })).result, { a: 1 });
  assert.equal((await host.run('echo')).result, undefined);
});

test('bytes come back as they went in, small and large', async () => {
  for (const size of [0, 10, 20_000, 3_000_000]) {
    const bytes = new Uint8Array(size).map((_, i) => i % 251);
    const { result } = await host.run('bytes', bytes);
    assert.deepEqual(Buffer.from(result as Uint8Array), Buffer.from(bytes));
  }
});

test("a function's error ends the session with its message and cause", async () => {
  const { message } = await host.run('boom');
  assert.equal(message.state, 'failed');
  assert.equal(message.error?.code, 'E_FUNCTION_FAILED');
  assert.equal(message.error?.message, 'no good');
  assert.equal(message.error?.cause?.message, 'deeper');
  assert.match(message.error?.stack ?? '', /main\.mjs/);
});

test('a chain runs to its end, every hop once', async () => {
  const { message, outputs } = await host.run('chain', 100);
  assert.equal(message.state, 'completed');
  assert.equal(message.counts.invocations, 101);
  assert.equal(message.counts.firings, 100);
  assert.equal(outputs.length, 1);
});

test('successors of another pool run there, each once, also when their sender ends its instance', async () => {
  const { message, outputs } = await host.run('relay', 40);
  assert.equal(outputs.length, 1);
  // Forty-one to and forty back; the sender of 13 was tried three times, and its successor ran for none of the repeats.
  assert.equal(message.counts.firings, 81);
  assert.equal(message.counts.invocations, 82);
  assert.equal(message.counts.attempts, 84);
});

test('fan-out, groups and fan-in see every object once', async () => {
  const { message, outputs } = await host.run('fan', 60);
  assert.equal(message.state, 'completed', JSON.stringify(message));
  const sums = outputs
    .map((o) => JSON.parse(Buffer.from(o.bytes).toString()))
    .sort((a, b) => a.group.localeCompare(b.group));
  assert.deepEqual(sums, [
    { group: '0', sum: 570, n: 20 },
    { group: '1', sum: 590, n: 20 },
    { group: '2', sum: 610, n: 20 },
  ]);
});

test('many sessions at once fan out over all instances, and each sees its own objects once', async () => {
  const all = await Promise.all(Array.from({ length: 60 }, (_, i) => host.run('fan', 20 + (i % 40))));
  for (const [i, { message, outputs }] of all.entries()) {
    assert.equal(message.state, 'completed', JSON.stringify(message.error));
    const seen = outputs.reduce((sum, o) => sum + JSON.parse(Buffer.from(o.bytes).toString()).n, 0);
    assert.equal(seen, 20 + (i % 40));
  }
});

test('bySet fires once, in the order of its names', async () => {
  const { outputs } = await host.run('named');
  assert.deepEqual(
    outputs.map((o) => JSON.parse(Buffer.from(o.bytes).toString())),
    [['a', 'b']],
  );
});

test('a name has one producer: the second sender fails', async () => {
  const { message } = await host.run('clash');
  assert.equal(message.error?.code, 'E_OBJECT_EXISTS');
});

test('50 MB pass by reference', async () => {
  const { outputs } = await host.run('big');
  assert.deepEqual(JSON.parse(Buffer.from(outputs[0]?.bytes ?? []).toString()), [7, 9, true]);
});

for (const name of ['spin', 'hang']) {
  test(`a function that ${name}s is timed out, and the others go on`, async () => {
    const [timed, echoed] = await Promise.all([host.run(name), host.run('echo', 5)]);
    assert.equal(timed.message.error?.code, 'E_TIMEOUT');
    assert.equal(echoed.result, 5);
    assert.equal((await host.run('echo', 6)).result, 6);
  });
}

test('process.exit costs the attempt only, and is tried again three times', async () => {
  const { message } = await host.run('exit');
  assert.equal(message.error?.code, 'E_FUNCTION_FAILED');
  assert.match(message.error?.message ?? '', /exit code 3/);
  assert.equal(message.counts.attempts, 4);
});

test('a successor that kills its instance costs its own attempt, not its sender’s', async () => {
  const { message, outputs } = await host.run('starter');
  assert.equal(message.state, 'completed', JSON.stringify(message.error));
  assert.equal(JSON.parse(Buffer.from(outputs[0]?.bytes ?? []).toString()), 'attempt 2');
  assert.equal(message.counts.attempts, 3);
});

test('retries follow the function’s policy', async () => {
  const { result, message } = await host.run('flaky');
  assert.equal(result, 3);
  assert.equal(message.counts.attempts, 3);
});

test('an instance over its memory limit is replaced, and says so', async () => {
  const { message } = await host.run('oom');
  assert.match(message.error?.message ?? '', /out of memory.*32 MB/);
  assert.equal((await host.run('echo', 1)).result, 1);
});

test('dynamicJoin of width 0, 1 and 50', async () => {
  for (const width of [0, 1, 50]) {
    const { outputs, message } = await host.run('dyn', width);
    assert.equal(message.state, 'completed', JSON.stringify(message.error));
    assert.equal(JSON.parse(Buffer.from(outputs[0]?.bytes ?? []).toString()).length, width);
  }
});

test('the rest of a batch fires after maxWaitMs, and the session waits for it', async () => {
  const { outputs } = await host.run('batch');
  assert.deepEqual(
    outputs.map((o) => JSON.parse(Buffer.from(o.bytes).toString())),
    [[0, 1], [2, 3], [4]],
  );
});

test('getObject reads what the same invocation sent, and says what is missing', async () => {
  assert.deepEqual((await host.run('reader')).result, { x: 1 });
  host.onMessage = (message) => {
    if (message.type === 'persisted-get') {
      host.send({ type: 'reply', requestId: message.requestId, error: { code: 'E_OBJECT_UNKNOWN', message: 'none' } });
    }
  };
  assert.equal((await host.run('missing')).result, 'E_OBJECT_UNKNOWN');
});

for (const how of ['hang', 'forget'] as const) {
  test(`a source that is found to ${how} its object is executed again, and fires once`, async () => {
    const { message, outputs } = await host.run('lookup', how);
    assert.equal(message.state, 'completed', JSON.stringify(message.error));
    assert.equal(outputs.length, 1);
    assert.equal(message.counts.attempts, 3);
    assert.equal(message.counts.firings, 1);
  });
}

test('a source that never sends its object fails after its re-executions', async () => {
  const { message } = await host.run('lookup', 'never');
  assert.equal(message.error?.code, 'E_TIMEOUT');
  assert.match(
    message.error?.message ?? '',
    /lookup did not send what bucket found expects within 120 ms, in 6 attempts/,
  );
});

test('byName fires for its prefix only', async () => {
  const { outputs, message } = await host.run('tuned');
  assert.equal(message.state, 'completed');
  assert.deepEqual(JSON.parse(Buffer.from(outputs[0]?.bytes ?? []).toString()), ['pre-1']);
});

test('bad sends and bad results name the mistake', async () => {
  assert.match((await host.run('typo')).message.error?.message ?? '', /did you mean 'chain'/);
  assert.match((await host.run('unserialisable')).message.error?.message ?? '', /result\.a\[0\]\.when is a BigInt/);
});

test('cancelling reaches the handler and frees everything', async () => {
  const { session, ended } = host.begin([['slow']]);
  await new Promise((resolve) => setTimeout(resolve, 50));
  host.send({ type: 'session-cancel', session, error: { code: 'E_CANCELLED', message: 'cancelled' } });
  assert.equal((await ended).message.state, 'cancelled');
  assert.equal((await host.run('echo', 1)).result, 1);
});

test('with concurrency one instance runs many at once', async () => {
  const started = performance.now();
  await Promise.all(Array.from({ length: 20 }, () => host.run('many')));
  const stats = await host.stats();
  assert.ok(stats.instances.length <= 8);
  assert.ok(performance.now() - started < 20 * 50, 'they overlapped');
});

test('nothing is left when all sessions have ended', async () => {
  const stats = await host.stats();
  assert.equal(stats.sessions, 0);
  assert.equal(stats.objects, 0);
  assert.equal(stats.queued, 0);
  // At most the shared page that the host and each instance still fill.
  assert.ok(stats.memoryBytes <= (stats.instances.length + 1) * 65_536, `${stats.memoryBytes} bytes`);
});
