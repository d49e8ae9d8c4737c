// Goal: too much work harms nobody: what was accepted ends as it should, once; the rest is refused at once and told when to
// come again; whoever is not the cause notices nothing. Method: a real server with a short queue; what counts is counted and
// ordered, nothing is timed.

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, test } from 'node:test';
import { type Answer, residentBytes, Served, until } from '../fixtures/served.ts';

const MIB = 1_048_576;
const QUEUE_MAX = 40;

const floodApp = `
import { app, bucket, fn, immediate } from 'antrail';
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
let open = true;
const waiting: (() => void)[] = [];
const began: string[] = [];
export default app('flood', {
  entry: 'step',
  functions: {
    step: fn((ctx, [one]) => {
      const { left, tag } = one!.json<{ left: number; tag: string }>();
      if (left > 1) ctx.call('step', { left: left - 1, tag });
      else ctx.output(tag);
    }, { pool: 'work' }),
    big: fn((ctx, [one]) => one!.size, { pool: 'work' }),
    // Of one instance: what waits behind \`hold\` waits for its pool.
    hold: fn(async () => { while (!open) await new Promise<void>((r) => waiting.push(r)); }, { pool: 'gate' }),
    note: fn((ctx, [one]) => { began.push(one!.json<string>()); }, { pool: 'gate' }),
    urgent: fn((ctx, [one]) => { began.push(one!.json<string>()); }, { pool: 'gate', priority: 5 }),
    begun: fn(() => began.splice(0), { pool: 'gate', priority: -1000 }),
    stubborn: fn(() => { for (;;) ; }, { pool: 'stubborn' }),
    gentle: fn(async (ctx) => {
      const { setTimeout } = await import('node:timers/promises');
      await setTimeout(600_000, undefined, { signal: ctx.signal });
    }, { pool: 'gentle' }),
    chatty: fn(async (ctx) => {
      for (let i = 0; i < 2_000; i++) {
        ctx.output('x'.repeat(8_000), { name: String(i) });
        if (i % 50 === 0) await sleep(1);
      }
    }, { pool: 'work' }),
  },
  buckets: { unused: bucket({ on: { go: immediate({ run: 'note' }) } }) },
});`;

const quietApp = `
import { app, fn } from 'antrail';
export default app('quiet', { entry: 'echo', functions: { echo: fn((ctx, [one]) => one!.json()) } });`;

let server: Served;
before(async () => {
  server = await Served.start({ queueMax: QUEUE_MAX, instancesMax: 6, weights: { flood: 0.5 } });
  await server.deploy(floodApp);
  await server.deploy(quietApp);
});
after(() => server.close());

function assertRefused(answer: Answer): void {
  assert.equal(answer.status, 503, answer.bytes.toString());
  assert.equal(answer.json.code, 'E_QUEUE_FULL');
  assert.ok(answer.json.retryAfterMs > 0);
  assert.ok(Number(answer.headers.get('retry-after')) >= 1);
}

test('a flood of chains: each is answered rightly or refused, and another app notices nothing', async () => {
  const asked = Array.from({ length: 400 }, (_, n) => server.call('flood/step', { left: 16, tag: `t${n}` }));
  for (let n = 0; n < 30; n++) {
    const answer = await server.call('quiet/echo', n);
    assert.equal(answer.status, 200, answer.bytes.toString());
    assert.equal(answer.json, n);
  }
  const answers = await Promise.all(asked);
  let accepted = 0;
  for (const [n, answer] of answers.entries()) {
    if (answer.status === 200) {
      accepted++;
      assert.equal(answer.json, `t${n}`);
    } else assertRefused(answer);
  }
  assert.ok(accepted >= QUEUE_MAX, `${accepted} were accepted`);
  await until(async () => (await sessionsOf(server, 'flood')) === 0, 'nothing is left of the flood');
});

async function sessionsOf(on: Served, app: string): Promise<number> {
  const { apps } = (await on.get(`/v1/objects?app=${app}`)).json;
  return apps[0].sessions;
}

test('a host that stands still under load keeps its app waiting, grows nothing, and loses nothing when it goes on', async () => {
  const still = await Served.start({ queueMax: 300 });
  try {
    await still.deploy(floodApp);
    await still.deploy(quietApp);
    const host = await still.host('flood');
    process.kill(host, 'SIGSTOP');
    const early = residentBytes(still.pid);
    const body = Buffer.alloc(100_000, 7);
    let sent = 0;
    // What is cancelled makes room for more, again and again, and the host reads none of it.
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(
        Array.from({ length: 320 }, () =>
          still.call('flood/big', body, { query: { mode: 'async', durability: 'none' } }),
        ),
      );
      const accepted = answers.filter(({ status }) => status === 202).map(({ json }) => json.session);
      for (const answer of answers) if (answer.status !== 202) assertRefused(answer);
      assert.ok(accepted.length < 320, 'there is a limit');
      sent += accepted.length;
      // Those that the host was given are over when it says so, or after a while: they are not waited for.
      const cancelled = accepted.map((id) => still.ask('DELETE', `/v1/sessions/${id}`));
      await Promise.any(cancelled);
      if (round === 2) await Promise.all(cancelled);
      else for (const one of cancelled) one.catch(() => {});
    }
    assert.equal((await still.call('quiet/echo', 1)).json, 1, 'another app goes on');
    const grown = residentBytes(still.pid) - early;
    assert.ok(sent > 350, `${sent} were accepted`);
    assert.ok(grown < 150 * MIB, `the server grew by ${grown} bytes`);
    process.kill(host, 'SIGCONT');
    await until(async () => (await sessionsOf(still, 'flood')) === 0, 'what was cancelled is over');
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => still.call('flood/step', { left: 4, tag: `after${n}` })),
    );
    for (const [n, answer] of answers.entries()) assert.equal(answer.json, `after${n}`);
  } finally {
    await still.close();
  }
});

test('sessions under way in a host that is stopped for a while end once each', async () => {
  const host = await server.host('flood');
  const sessions = await Promise.all(
    Array.from({ length: 30 }, (_, n) => server.start('flood/step', { left: 16, tag: `s${n}` })),
  );
  process.kill(host, 'SIGSTOP');
  const later = Array.from({ length: 5 }, (_, n) => server.call('flood/step', { left: 16, tag: `l${n}` }));
  await server.call('quiet/echo', 0);
  process.kill(host, 'SIGCONT');
  for (const [n, id] of sessions.entries()) {
    const record = await server.ended(id);
    assert.equal(record.state, 'completed');
    assert.equal(record.result, `s${n}`);
    assert.equal(record.counts.invocations, 16, 'nothing is doubled');
    assert.equal(record.counts.attempts, 16);
  }
  for (const [n, answer] of (await Promise.all(later)).entries()) assert.equal(answer.json, `l${n}`);
  assert.equal(await server.host('flood'), host);
});

test('a reader that takes nothing holds up nobody and takes little of the server', async () => {
  const session = await server.start('flood/chatty');
  const { hostname, port } = new URL(server.url);
  const readers = Array.from({ length: 20 }, () => {
    const socket = connect(Number(port), hostname);
    socket.pause();
    socket.on('error', () => {});
    socket.write(`GET /v1/sessions/${session}/outputs HTTP/1.1\r\nhost: ${hostname}:${port}\r\n\r\n`);
    return socket;
  });
  assert.equal((await server.ended(session)).state, 'completed');
  const before = residentBytes(server.pid);
  // A reader that reads gets all, while the others take nothing.
  assert.equal((await server.outputs(session)).length, 2_000);
  assert.ok(residentBytes(server.pid) - before < 100 * MIB, 'the outputs are there once, not once a reader');
  for (const socket of readers) socket.destroy();
});

test('what was cancelled while it waited never begins; the pool is free again', async () => {
  const app = floodApp.replace("app('flood'", "app('gated'").replace('let open = true;', 'let open = false;');
  // One instance: its pool has one thread, and \`hold\` occupies it until it is cancelled.
  const gated = await Served.start({ queueMax: 300, instancesMax: 1 });
  try {
    await gated.deploy(app);
    const hold = await gated.start('gated/hold');
    await until(
      async () => (await gated.session(hold)).counts.attempts > 0 || hasBegun(gated, hold),
      'it holds the instance',
    );
    const waiting = await Promise.all(Array.from({ length: 250 }, (_, n) => gated.start('gated/note', `n${n}`)));
    await Promise.all(waiting.map((id) => gated.ask('DELETE', `/v1/sessions/${id}`)));
    for (const id of waiting) assert.equal((await gated.session(id)).state, 'cancelled');
    await gated.ask('DELETE', `/v1/sessions/${hold}`);
    const { json } = await gated.call('gated/begun');
    assert.deepEqual(json, [], 'none of them ran');
  } finally {
    await gated.close();
  }
});

async function hasBegun(on: Served, id: string): Promise<boolean> {
  const { json } = await on.get(`/v1/sessions/${id}/trace`);
  return json.invocations?.[0]?.attempts.length > 0;
}

test('higher priority goes first, of a call and of a function, through the queue of the server and that of the host', async () => {
  const app = floodApp
    .replace("app('flood'", "app('ranked'")
    .replace(
      'hold: fn(async () => { while (!open) await new Promise<void>((r) => waiting.push(r)); }',
      'hold: fn(async (ctx) => { await new Promise<void>((r) => ctx.signal.addEventListener("abort", () => r())); }',
    );
  const ranked = await Served.start({ instancesMax: 1 });
  try {
    await ranked.deploy(app);
    const hold = await ranked.start('ranked/hold');
    await until(() => hasBegun(ranked, hold), 'it holds the instance');
    const none = { query: { durability: 'none' } };
    const order: [string, string, number][] = [
      ...Array.from({ length: 10 }, (_, n): [string, string, number] => ['note', `low${n}`, -3]),
      ['note', 'normal', 0],
      ['urgent', 'function', 0],
      ['note', 'high', 7],
      ['urgent', 'both', 4],
    ];
    for (const [name, tag, priority] of order) {
      await ranked.start(`ranked/${name}`, tag, { query: { ...none.query, priority } });
    }
    await ranked.ask('DELETE', `/v1/sessions/${hold}`);
    const began: string[] = [];
    while (began.length < order.length)
      began.push(...(await ranked.call('ranked/begun', undefined, { query: { priority: -1000 } })).json);
    const expected = ['both', 'high', 'function', 'normal', ...Array.from({ length: 10 }, (_, n) => `low${n}`)];
    assert.deepEqual(began, expected);
  } finally {
    await ranked.close();
  }
});

test('a handler is told to stop; one that does not listen loses its instance, and the next call runs', async () => {
  for (const name of ['gentle', 'stubborn']) {
    const session = await server.start(`flood/${name}`);
    await until(() => hasBegun(server, session), `${name} runs`);
    assert.equal((await server.ask('DELETE', `/v1/sessions/${session}`)).status, 202);
    assert.equal((await server.ended(session)).state, 'cancelled');
    const timed = await server.call(`flood/${name}`, undefined, { query: { timeoutMs: 50 } });
    assert.equal(timed.status, 504, timed.bytes.toString());
    assert.equal(timed.json.code, 'E_TIMEOUT');
  }
  assert.equal((await server.call('flood/step', { left: 3, tag: 'on' })).json, 'on');
  assert.equal((await server.call('quiet/echo', 2)).json, 2);
});
