// Goal: whatever a function does to its instance costs its own attempt only. Method: a real server; each way to fail runs
// beside sessions that must not notice, and is followed by one.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Served } from '../fixtures/served.ts';

const APP = `
import { app, bucket, fn, immediate } from 'antrail';
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
function deepThrow(): never {
  throw new RangeError('no such thing', { cause: new TypeError('because of this', { cause: 'plain text' }) });
}
export default app('faulty', {
  entry: 'fine',
  functions: {
    fine: fn(async (ctx, [ms]) => { await sleep(ms?.json<number>() ?? 0); return ctx.attempt; }),
    throws: fn(() => { deepThrow(); }),
    throwsLater: fn(async () => { await sleep(5); deepThrow(); }),
    throwsNothing: fn(() => { throw undefined; }),
    throwsText: fn(() => { throw 'just text'; }),
    throwsRudely: fn(() => { throw new Proxy(new Error('hidden'), { get() { throw 1; }, getPrototypeOf() { throw 2; } }); }),
    claimsToBeOurs: fn(() => {
      const details: Record<string, unknown> = { n: 1n };
      throw Object.assign(new Error('borrowed'), { name: 'PlatformError', code: 'E_FUNCTION_FAILED', details });
    }),
    settlesTwice: fn(() => ({ then(yes: (v: number) => void, no: (e: Error) => void) { yes(1); yes(2); no(new Error('late')); } })),
    exits: fn(() => process.exit(7)),
    exitsLater: fn(async () => { setTimeout(() => process.exit(0), 5); await sleep(10_000); }),
    outOfMemory: fn(() => { let last: unknown; for (;;) last = { last }; }, { memoryMb: 48 }),
    spins: fn(() => { for (;;); }, { timeoutMs: 200 }),
    hangs: fn(() => new Promise(() => {}), { timeoutMs: 200 }),
    rejects: fn(async () => { Promise.reject(new Error('nobody listens')); await sleep(300); return 'returned'; }),
    throwsInTimer: fn(async () => { setTimeout(() => { throw new Error('in a timer'); }, 5); await sleep(300); return 'returned'; }),
    returnsAndExits: fn((_, [ms]) => {
      const endMs = Date.now() + ms.json<number>();
      while (Date.now() < endMs);
      queueMicrotask(() => process.exit(9));
      return 'returned';
    }),
    stopsProcess: fn(async () => { process.kill(process.pid, 'SIGABRT'); await sleep(10_000); }),
    closesInput: fn(() => { process.stdout.write('x'.repeat(300_000)); process.stdin.destroy(); return 'ok'; }),
    patches: fn(() => { (globalThis as any).setTimeout = undefined; (Array.prototype as any).push = () => { throw new Error('patched'); }; return 'patched'; }, { pool: 'patched' }),
    patchesJson: fn(() => { JSON.stringify = () => { throw new Error('no JSON any more'); }; return 'x'; }, { pool: 'patched' }),
    fans: fn((ctx) => { for (let i = 0; i < 20; i++) ctx.send('work', i); }),
    work: fn((ctx, [n]) => { if (n.json() === 7 && ctx.attempt < 3) process.exit(9); ctx.output(n.json()); }),
  },
  buckets: { work: bucket({ on: { each: immediate({ run: 'work' }) } }) },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

/** Calls it beside others and after it. */
async function costsItselfOnly(name: string) {
  const pid = await server.host('faulty');
  const beside = Array.from({ length: 8 }, (_, i) => server.call('faulty/fine', i * 60));
  const answer = await server.call(`faulty/${name}`, 1);
  for (const other of beside) {
    const { status, json, bytes } = await other;
    assert.equal(status, 200, `beside ${name}: ${bytes}`);
    assert.equal(json, 1, `beside ${name}: its first attempt`);
  }
  const next = await server.call('faulty/fine', 0);
  assert.equal(next.json, 1);
  assert.equal(await server.host('faulty'), pid, `${name} left the host alone`);
  return answer;
}

const FAILS: readonly [string, number, string, RegExp, number][] = [
  ['throws', 500, 'E_FUNCTION_FAILED', /^no such thing$/, 1],
  ['throwsLater', 500, 'E_FUNCTION_FAILED', /^no such thing$/, 1],
  ['throwsNothing', 500, 'E_FUNCTION_FAILED', /nothing/, 1],
  ['throwsText', 500, 'E_FUNCTION_FAILED', /just text/, 1],
  ['throwsRudely', 500, 'E_FUNCTION_FAILED', /throws when it is looked at/, 1],
  ['claimsToBeOurs', 500, 'E_FUNCTION_FAILED', /^borrowed$/, 1],
  ['exits', 500, 'E_FUNCTION_FAILED', /exit code 7/, 4],
  ['exitsLater', 500, 'E_FUNCTION_FAILED', /exit code 0/, 4],
  ['outOfMemory', 500, 'E_FUNCTION_FAILED', /memory/i, 4],
  ['spins', 504, 'E_TIMEOUT', /200/, 1],
  ['hangs', 504, 'E_TIMEOUT', /200/, 1],
];
for (const [name, status, code, detail, attempts] of FAILS) {
  test(`a function that ${name} costs its own session only`, async () => {
    const answer = await costsItselfOnly(name);
    assert.equal(answer.status, status, answer.bytes.toString());
    assert.equal(answer.json.code, code);
    assert.match(answer.json.detail, detail);
    const record = await server.ended(answer.session);
    assert.equal(record.counts.attempts, attempts);
    assert.equal(record.state, 'failed');
  });
}

for (const [name, said] of [
  ['rejects', /nobody listens/],
  ['throwsInTimer', /in a timer/],
] as const) {
  test(`a function that ${name} beside its handler costs its own session only, and is told why`, async () => {
    const answer = await costsItselfOnly(name);
    assert.equal(answer.status, 500, answer.bytes.toString());
    assert.equal(answer.json.code, 'E_FUNCTION_FAILED');
    assert.match(JSON.stringify(answer.json), said);
  });
}

test('what is thrown comes with its name, its causes and the line of the author’s file, without frames of ours', async () => {
  const { json } = await server.call('faulty/throws', 1);
  assert.equal(json.name, 'RangeError');
  assert.match(json.stack, /app\.ts:5:\d+/);
  assert.match(json.stack, /deepThrow/);
  assert.equal(json.cause.message, 'because of this');
  assert.equal(json.cause.name, 'TypeError');
  assert.match(json.cause.cause.message, /plain text/);
  for (const line of json.stack.split('\n').slice(1)) assert.match(line, /app\.ts/, json.stack);
  assert.doesNotMatch(JSON.stringify(json), /node_modules|dist\/|runner|node:internal/);
});

test('a result that settles twice counts once', async () => {
  const answer = await costsItselfOnly('settlesTwice');
  assert.equal(answer.json, 1, answer.bytes.toString());
  const record = await server.ended(answer.session);
  assert.equal(record.state, 'completed');
  assert.equal(record.counts.attempts, 1);
});

// Its end is in its ring, and its word to the server is not on its way yet. 250 ms: the server has given the session to the
// host before, which knew it to be under way.
for (const ms of [0, 250]) {
  test(`what was returned after ${ms} ms is not lost with an instance that ends before it says so`, async () => {
    const answer = await server.call('faulty/returnsAndExits', ms);
    assert.equal(answer.status, 200, answer.bytes.toString());
    assert.equal(answer.json, 'returned');
    const record = await server.ended(answer.session);
    assert.equal(record.state, 'completed');
    assert.equal(record.counts.attempts, 1, 'it is not executed again');
  });
}

test('a patched instance spoils its own pool only', async () => {
  const answer = await server.call('faulty/patchesJson', 1);
  assert.equal(answer.json.code, 'E_FUNCTION_FAILED', 'not that the app could not be loaded');
  assert.match(answer.json.detail, /no JSON any more/);
  await server.call('faulty/patches', 1);
  assert.equal((await server.call('faulty/fine', 5)).status, 200);
});

test('output without end on stdout and a closed stdin harm nobody', async () => {
  const answer = await costsItselfOnly('closesInput');
  assert.equal(answer.status, 200);
});

test('one object whose consumer kills its instance twice is consumed once', async () => {
  const session = await server.start('faulty/fans', 1);
  const record = await server.ended(session);
  assert.equal(record.state, 'completed', JSON.stringify(record));
  const trace = (await server.get(`/v1/sessions/${session}/trace`)).json.invocations;
  assert.equal(trace.length, 21);
  const lost = trace.filter((one: { attempts: unknown[] }) => one.attempts.length > 1);
  assert.equal(lost.length, 1);
  assert.equal(lost[0].attempts.length, 3);
});

test('a function that ends its process ends the whole host: only its own session fails, the others are executed again', async () => {
  const beside = await Promise.all(Array.from({ length: 4 }, () => server.start('faulty/fine', 300)));
  const answer = await server.call('faulty/stopsProcess', 1);
  assert.equal(answer.status, 503, answer.bytes.toString());
  assert.equal(answer.json.code, 'E_NODE_LOST');
  for (const id of beside) assert.equal((await server.ended(id)).state, 'completed');
  // A host that dies four times in a row is started again only when somebody asks for it.
  assert.equal((await server.call('faulty/fine', 5)).status, 200, 'the host is back');
  assert.equal(server.hosts('faulty').length, 1);
});
