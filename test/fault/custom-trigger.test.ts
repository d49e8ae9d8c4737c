// Goal: whatever dies, a custom trigger decides about each object once: no firing is lost, none is doubled. Method: a real
// server; instances, the app host and the server are killed while classes are asked; what fired is added up.

import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { Served, until } from '../fixtures/served.ts';

/** Counts objects, and fires each time that `size` are there. It is slow on purpose when it is told so. */
const app = (name: string, extra = '', size = 3) => `
import { app, bucket, custom, fn } from 'antrail';
import { existsSync, unlinkSync } from 'node:fs';
class Count {
  held: string[] = [];
  constructor(readonly options: { size: number }) {}
  onObject(object: any, nowMs: number) {
    const { n, dieFile, throwFor, blocks } = object.json();
    while (blocks === true) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
    // Once: whoever is asked first dies in the middle.
    if (dieFile !== undefined && existsSync(dieFile.file)) {
      unlinkSync(dieFile.file);
      if (dieFile.how === 'host') process.kill(process.pid, 'SIGKILL');
      if (dieFile.how === 'exit') process.exit(9);
      if (dieFile.how === 'spin') for (;;);
      throw new Error('once');
    }
    if (throwFor !== undefined) deep(n);
    this.held.push(object.id);
    if (this.held.length < this.options.size) return;
    const objects = this.held;
    this.held = [];
    return { fire: [{ objects }] };
  }
  snapshot() { return { held: this.held }; }
  restore(s: any) { this.held = s.held; }
}
function deep(n: number): never { throw new RangeError('not ' + n); }
${extra}
export default app('${name}', {
  entry: 'put',
  functions: {
    put: fn((ctx, [input]) => { for (const one of input.json<any[]>()) ctx.send('all', one); return 'sent'; }),
    here: fn((ctx, [input]) => { for (const one of input.json<any[]>()) ctx.send('own', one); }),
    sum: fn((ctx, inputs) => { ctx.output(inputs.map((o) => o.json().n)); }),
  },
  buckets: {
    all: bucket({ on: { count: custom(Count, { run: 'sum', scope: 'bucket', options: { size: ${size} } }) } }),
    own: bucket({ on: { count: custom(Count, { run: 'sum', options: { size: ${size} } }) } }),
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
});
after(() => server.close());

/** What bucket-scoped firings of the app gave, in order. */
async function fired(name: string): Promise<number[][]> {
  const { json } = await server.get('/v1/sessions', { query: { app: name, limit: 1000 } });
  const firings = json.sessions.filter((one: any) => one.function === 'sum');
  const all: number[][] = [];
  for (const { session } of firings) {
    await server.ended(session);
    for (const { data } of await server.outputs(session)) all.push(data.json);
  }
  return all;
}

async function firedOnce(name: string, expected: readonly number[]): Promise<void> {
  await until(async () => (await fired(name)).flat().length >= expected.length, 'everything has fired');
  assert.deepEqual(
    (await fired(name)).flat().sort((a, b) => a - b),
    expected,
  );
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => ({ n: from + i }));
const numbers = (to: number) => Array.from({ length: to }, (_, i) => i);

test('objects of many sessions are decided about once each', async () => {
  await server.deploy(app('many'));
  await Promise.all(Array.from({ length: 30 }, (_, i) => server.call('many/put', range(i * 4, i * 4 + 4))));
  await firedOnce('many', numbers(120));
  for (const firing of await fired('many')) assert.equal(firing.length, 3);
});

for (const how of ['throw', 'exit', 'spin', 'host'] as const) {
  for (const scope of ['bucket', 'session'] as const) {
    test(`once, ${how === 'host' ? 'the app host is killed' : `a class ends by ${how}`} while it is asked (${scope} scope)`, async () => {
      const name = `die-${how}-${scope}`;
      await server.deploy(app(name));
      const file = `${server.folder}/${name}`;
      await writeFile(file, '');
      const objects = range(0, 9).map((one) => (one.n === 4 ? { ...one, dieFile: { file, how } } : one));
      if (scope === 'bucket') {
        assert.equal((await server.call(`${name}/put`, objects)).status, 200);
        await firedOnce(name, numbers(9));
      } else {
        const session = await server.start(`${name}/here`, objects);
        const record = await server.ended(session);
        assert.equal(record.state, 'completed');
        const outputs = (await server.outputs(session)).flatMap(({ data }) => data.json);
        assert.deepEqual(outputs.sort(), numbers(9));
      }
    });
  }
}

test('an object that a class cannot bear becomes a dead letter, and its bucket goes on', async () => {
  await server.deploy(app('bears'));
  const objects = range(0, 10).map((one) => (one.n === 4 ? { ...one, throwFor: true } : one));
  const { session } = await server.call('bears/put', objects);
  await firedOnce(
    'bears',
    numbers(10).filter((n) => n !== 4),
  );
  const { json } = await server.get('/v1/dead-letters');
  const [letter, ...more] = json.deadLetters.filter((one: any) => one.app === 'bears');
  assert.equal(more.length, 0);
  assert.equal(letter.session, session);
  assert.equal(letter.error.code, 'E_FUNCTION_FAILED');
  assert.match(letter.error.message, /^trigger count gave up object \S+ of bucket all: class Count: not 4$/);
  const shown = await server.get(`/v1/dead-letters/${letter.id}`);
  assert.match(shown.json.error.stack, /at deep \(app\.ts:\d+:\d+\)/);
  const retried = await server.ask('POST', `/v1/dead-letters/${letter.id}/retry`);
  assert.equal(retried.status, 404);
  assert.match(retried.json.detail, /mend its class, deploy it, and send the object again/);
  await server.call('bears/put', [{ n: 4 }, { n: 10 }, { n: 11 }]);
  await firedOnce('bears', numbers(12));
});

test('a session whose class throws fails with the place', async () => {
  await server.deploy(app('fails'));
  const answer = await server.call('fails/here', [{ n: 1, throwFor: true }]);
  assert.equal(answer.status, 500);
  assert.equal(answer.json.code, 'E_FUNCTION_FAILED');
  assert.match(answer.json.detail, /class Count: not 1/);
  assert.match(answer.json.stack, /at deep \(app\.ts:\d+:\d+\)/);
});

test('state moves to the next version, whose class restores it', async () => {
  await server.deploy(app('moves', '', 3));
  await server.call('moves/put', range(0, 2));
  await server.deploy(app('moves', 'const second = 2; void second;', 4));
  await server.call('moves/put', range(2, 5));
  await firedOnce('moves', numbers(4));
  await server.call('moves/put', range(5, 8));
  await firedOnce('moves', numbers(8));
});

test('a class that cannot restore the old state stands still until one comes that can', async () => {
  await server.deploy(app('stuck', '', 3));
  await server.call('stuck/put', range(0, 2));
  const broken = app('stuck', '', 3).replace(
    'this.held = s.held;',
    "if (s.held.length > 0) throw new Error('what is this');",
  );
  await server.deploy(broken);
  await server.call('stuck/put', range(2, 5));
  await until(async () => {
    const { json } = await server.get('/v1/dead-letters');
    return json.deadLetters.some((one: any) => one.app === 'stuck' && /what is this/.test(one.error.message));
  }, 'a dead letter tells');
  await server.deploy(app('stuck', 'const mended = 3; void mended;', 3));
  await server.call('stuck/put', range(5, 6));
  await firedOnce('stuck', numbers(6));
});

test('a redeploy while a class is asked: the old answer is too late, the new version is asked', async () => {
  await server.deploy(app('overtakes', '', 3));
  await server.call('overtakes/put', [{ n: 0 }, { n: 1, blocks: true }, { n: 2 }]);
  await server.deploy(app('overtakes', '', 2).replace('blocks === true', 'false'));
  await server.call('overtakes/put', range(3, 4));
  await firedOnce('overtakes', numbers(4));
  assert.deepEqual(await fired('overtakes').then((all) => all.map(({ length }) => length)), [2, 2]);
});

test('a trigger that is removed while its class is asked decides nothing more', async () => {
  await server.deploy(app('removed', '', 2));
  await server.call('removed/put', [{ n: 0, blocks: true }, { n: 1 }]);
  const path = '/v1/apps/removed/buckets/all/triggers/count';
  assert.equal((await server.ask('DELETE', path)).status, 200);
  const spec = { kind: 'custom', class: 'Count', run: 'sum', scope: 'bucket', options: { size: 2 } };
  assert.equal((await server.ask('PUT', path, spec)).status, 201);
  await server.call('removed/put', range(2, 4));
  await until(async () => (await fired('removed')).length > 0, 'the new one fires');
  assert.deepEqual(await fired('removed'), [[2, 3]]);
});

test('a trigger that the next version lacks fires its rest when its version has no session', async () => {
  await server.deploy(app('drains', '', 3));
  await server.call('drains/put', [{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }]);
  const { json } = await server.get('/v1/apps/drains');
  const other = app('drains').replace(
    "on: { count: custom(Count, { run: 'sum', scope",
    "on: { other: custom(Count, { run: 'sum', scope",
  );
  assert.notEqual((await server.deploy(other)).json.version, json.version);
  await firedOnce('drains', numbers(4));
  await until(() => server.hosts('drains').length === 1, 'the old version’s host has ended');
});

test('what durable sessions gave survives a kill of the server, with the state of the class', async () => {
  const own = await Served.start();
  try {
    await own.deploy(app('lives', '', 4));
    for (let i = 0; i < 6; i++) await own.ended(await own.start('lives/put', [{ n: i }]));
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await own.kill(signal);
      await own.begin();
    }
    await own.ended(await own.start('lives/put', range(6, 12)));
    const all: number[] = [];
    await until(async () => {
      all.length = 0;
      const { json } = await own.get('/v1/sessions', { query: { app: 'lives', limit: 1000 } });
      for (const { session } of json.sessions.filter((one: any) => one.function === 'sum')) {
        await own.ended(session);
        for (const { data } of await own.outputs(session)) all.push(...data.json);
      }
      return all.length >= 12;
    }, 'everything has fired');
    assert.deepEqual(
      all.sort((a, b) => a - b),
      numbers(12),
    );
  } finally {
    await own.close();
  }
});
