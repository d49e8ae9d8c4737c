// Goal: objects from outside and inside arrive once, whole, under their own names and in their own session.
// Method: a real server; names and sizes at and around every limit; a model of what should be there.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { after, before, test } from 'node:test';
import { type Answer, answerOf, Served, until } from '../fixtures/served.ts';

const APP = `
import { app, bucket, byBatchSize, byName, bySet, dynamicGroup, dynamicJoin, fn, immediate } from 'antrail';
import { createHash } from 'node:crypto';
const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const sleep = (ms: number) => new Promise((r) => setTimeout(r, ms));
export default app('objects', {
  entry: 'echo',
  functions: {
    echo: fn((ctx, [one]) => one?.bytes),
    output: fn((ctx, [one]) => ctx.output(one!.bytes.slice())),
    hop: fn((ctx, [one]) => { const o = ctx.createObject('hop', 'hopped', one!.size); o.bytes.set(one!.bytes); ctx.sendObject(o); }),
    hopped: fn((ctx, [one]) => ctx.output({ size: one!.size, digest: digest(one!.bytes) })),
    set: fn((ctx, [one]) => { ctx.send('set', one!.bytes.slice(), { name: 'b' }); ctx.send('set', one!.bytes.slice(), { name: 'a' }); }),
    hold: fn((ctx, [one]) => { ctx.send('held', one!.bytes.slice()); }),
    see: fn((ctx, all) => ctx.output(all.map((one) => ({ bucket: one.bucket, name: one.name, group: one.group, size: one.size, digest: digest(one.bytes) })))),
    persist: fn((ctx, [one]) => { ctx.send('kept', one!.bytes.slice(), { name: 'k', persist: true }); }),
    fetch: fn(async (ctx, [one]) => { const o = await ctx.getObject('kept', one!.json()); return o.bytes.slice(); }),
    keepIn: fn((ctx, [one]) => { ctx.send('kept', { a: 1 }, { name: 'meta', group: one!.json(), persist: true }); }),
    look: fn(async (ctx) => { const { id, bucket, name, session, group, size, contentType } = await ctx.getObject('kept', 'meta'); return { id, bucket, name, session, group, size, contentType, own: ctx.session }; }),
    keep: fn((ctx, [one]) => { const { name, size } = one!.json(); ctx.send('kept', new Uint8Array(size), { name: 'list-' + name, persist: true }); }),
    name: fn((ctx, [one]) => { ctx.send('names', 'v', { name: one!.json() }); }),
    collect: fn((ctx, all) => ctx.output(all.map((one) => [one.name, one.json()]))),
    slowly: fn(async (ctx) => { ctx.send('quiet', new Uint8Array(100_000).map((_, i) => i % 251), { name: 'q' }); ctx.send('quiet', { some: 'json' }, { name: 'j' }); await sleep(2_000); }),
  },
  buckets: {
    hop: bucket({ on: { go: immediate({ run: 'hopped' }) } }),
    set: bucket({ on: { both: bySet({ names: ['a', 'b'], run: 'see' }) } }),
    held: bucket({ on: { one: byBatchSize({ size: 1, run: 'see' }) } }),
    names: bucket({ on: { each: immediate({ run: 'see' }) } }),
    kept: bucket({}),
    quiet: bucket({}),
    inbox: bucket({ on: { each: immediate({ run: 'collect' }) } }),
    grouped: bucket({ on: { all: dynamicGroup({ run: 'collect' }) } }),
    joined: bucket({ on: { all: dynamicJoin({ run: 'collect' }) } }),
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const at = (bucket: string, name: string) => `/v1/apps/objects/buckets/${bucket}/objects/${encodeURIComponent(name)}`;
const put = (bucket: string, name: string, value?: unknown, query: Record<string, string | number> = {}) =>
  server.ask('POST', at(bucket, name), value, { query });

/** Without the URL rules of `fetch`, which take `..` for the folder above. */
async function putRaw(bucket: string, name: string, value: unknown): Promise<Answer> {
  const path = `/v1/apps/objects/buckets/${bucket}/objects/${encodeURIComponent(name).replaceAll('.', '%2E')}`;
  const request = httpRequest(server.url, { method: 'POST', path, headers: { 'content-type': 'application/json' } });
  request.end(JSON.stringify(value));
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const body = Buffer.concat(await response.toArray());
  const headers = Object.entries(response.headers).map(([key, text]) => [key, String(text)] as [string, string]);
  return answerOf(new Response(body, { status: response.statusCode ?? 0, headers }));
}

/** Every byte occurs, NUL and '|' often. */
function payload(size: number, seed: number): Buffer {
  const bytes = Buffer.alloc(size);
  for (let i = 0; i < size; i++)
    bytes[i] = (i * seed + (i >> 8)) % 3 === 0 ? 0 : i % 5 === 0 ? 124 : (i * 31 + seed) & 255;
  return bytes;
}

const SIZES = [
  0, 1, 4_095, 4_096, 4_097, 16_383, 16_384, 16_385, 65_536, 65_537, 262_144, 1_048_575, 1_048_576, 1_048_577,
];
for (const size of SIZES) {
  test(`${size} bytes are the same after every kind of way`, async () => {
    const bytes = payload(size, size + 3);
    // An empty body is no object: the function that takes none is left out.
    if (size > 0) {
      for (const name of ['echo', 'output']) {
        const answer = await server.call(`objects/${name}`, bytes);
        assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
        assert.ok(answer.bytes.equals(bytes), name);
        const session = await server.start(`objects/${name}`, bytes);
        assert.ok((await server.result(session)).bytes.equals(bytes), `${name}, async`);
      }
      const hop = await server.call('objects/hop', bytes);
      assert.deepEqual(hop.json, { size, digest: sha(bytes) });
      const set = await server.call('objects/set', bytes);
      assert.deepEqual(
        set.json.map((one: { name: string; digest: string }) => [one.name, one.digest]),
        [
          ['a', sha(bytes)],
          ['b', sha(bytes)],
        ],
      );
      const held = await server.call('objects/hold', bytes);
      const firing = await until(async () => {
        const { json } = await server.get('/v1/sessions?app=objects&limit=5');
        return json.sessions.find((one: { causes: string[] }) => one.causes[0] === held.session);
      }, 'the bucket-scoped trigger fired');
      assert.equal((await server.result(firing.session)).json[0].digest, sha(bytes));
      await server.call('objects/persist', bytes);
      assert.ok((await server.get(at('kept', 'k'))).bytes.equals(bytes));
      assert.ok((await server.call('objects/fetch', 'k')).bytes.equals(bytes));
    }
    const outside = await put('held', `outside-${size}`, bytes);
    assert.equal(outside.status, 202);
    const firing = await until(async () => {
      const { json } = await server.get('/v1/sessions?app=objects&limit=5');
      return json.sessions.find((one: { causes: string[] }) => one.causes[0] === outside.json.session);
    }, 'the bucket-scoped trigger fired');
    const [seen] = (await server.result(firing.session)).json;
    assert.deepEqual(seen, { bucket: 'held', name: `outside-${size}`, group: '', size, digest: sha(bytes) });
  });
}

const NAMES = [
  'plain',
  'with/slash',
  '/',
  '//',
  'a|b',
  '|',
  '..',
  '.',
  '../../etc/passwd',
  '%2F',
  '%',
  '?q=1#f',
  ' ',
  'ü–日本語🐜',
  'e\u0301',
  'x'.repeat(512),
  '🐜'.repeat(256),
  '__proto__',
  'constructor',
  '\n',
  'a\u0000b',
  '\u0000',
  '0',
  '-1',
  'null',
  '"quoted"',
  '\\',
  '$input',
];
test('names of any characters stay what they are, from outside and inside', async () => {
  for (const name of NAMES) {
    const shown = JSON.stringify(name.slice(0, 20));
    const answer = await putRaw('names', name, { of: name });
    assert.equal(answer.status, 202, `${shown} ${answer.bytes}`);
    const [seen] = (await server.result(answer.json.session)).json;
    assert.equal(seen.name, name, shown);
    const inside = await server.call('objects/name', name);
    assert.equal(inside.status, 200, `${shown} ${inside.bytes}`);
    assert.equal(inside.json[0].name, name, `${shown}, inside`);
  }
});

test('an empty name and one of more than 512 characters are refused', async () => {
  const inside = await server.call('objects/name', 'x'.repeat(513));
  assert.equal(inside.json.code, 'E_FUNCTION_FAILED');
  assert.match(inside.json.detail, /512/);
  const outside = await put('names', 'x'.repeat(513), 1);
  assert.equal(outside.status, 400);
  assert.equal(outside.json.code, 'E_REQUEST_INVALID');
  assert.ok((await put('names', '', 1)).status >= 400);
});

test('the same name and bytes again is the same session; other bytes, type or group are refused', async () => {
  const first = await put('inbox', 'twice', { a: 1 });
  assert.equal(first.json.duplicate, false);
  const [second, third] = await Promise.all([put('inbox', 'twice', { a: 1 }), put('inbox', 'twice', { a: 2 })]);
  assert.deepEqual(second.json, { session: first.json.session, duplicate: true });
  assert.equal(third.status, 409);
  assert.equal(third.json.code, 'E_OBJECT_EXISTS');
  assert.equal((await put('inbox', 'twice', Buffer.from('{"a":1}'))).status, 409);
  assert.equal((await put('inbox', 'twice', { a: 1 }, { group: 'g' })).status, 409);
  assert.equal((await put('names', 'twice', { a: 2 })).json.duplicate, false, 'another bucket');
  const sessions = (await server.get('/v1/sessions?app=objects&limit=1000')).json.sessions;
  assert.equal(sessions.filter((one: { session: string }) => one.session === first.json.session).length, 1);
});

test('fifty puts of one name at once are one session and one firing', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => put('inbox', 'storm', { a: 1 })));
  assert.equal(new Set(answers.map(({ json }) => json.session)).size, 1);
  assert.equal(answers.filter(({ json }) => json.duplicate === false).length, 1);
  const record = await server.ended(answers[0]?.json.session);
  assert.equal(record.counts.firings, 1);
});

test('an open session collects what is put into it, until it is closed', async () => {
  const { session } = (await put('grouped', 'a', 1, { open: 'true', group: 'x' })).json;
  for (const [name, group] of [
    ['b', 'x'],
    ['c', 'y'],
  ] as const) {
    assert.deepEqual((await put('grouped', name, name, { session, group })).json, { session, duplicate: false });
  }
  assert.equal((await put('grouped', 'b', 'b', { session, group: 'x' })).json.duplicate, true);
  assert.equal((await put('grouped', 'b', 'other', { session, group: 'x' })).status, 409);
  assert.equal((await server.session(session)).state, 'running');
  const early = await server.get(`/v1/sessions/${session}/result`);
  assert.equal(early.status, 202);
  assert.equal((await server.ask('POST', `/v1/sessions/${session}/buckets/grouped/close`)).status, 202);
  const record = await server.ended(session);
  assert.equal(record.state, 'completed');
  const outputs = (await server.outputs(session)).map(({ data }) => data.json);
  assert.deepEqual(
    outputs.sort((a, b) => b.length - a.length),
    [
      [
        ['a', 1],
        ['b', 'b'],
      ],
      [['c', 'c']],
    ],
  );
  const late = await put('grouped', 'd', 1, { session });
  assert.equal(late.status, 409);
  assert.equal(late.json.code, 'E_SESSION_ENDED');
  assert.equal((await server.ask('POST', `/v1/sessions/${session}/buckets/grouped/close`)).status, 409);
});

test('a join from outside takes names in their order, and early arrivals count', async () => {
  const { session } = (await put('joined', 'late', 1, { open: 'true' })).json;
  await put('joined', 'other', 0, { session });
  await put('joined', 'early', 2, { session });
  const join = await server.ask('POST', `/v1/sessions/${session}/buckets/joined/join`, { names: ['early', 'late'] });
  assert.equal(join.status, 202, join.bytes.toString());
  assert.deepEqual((await server.result(session)).json, [
    ['early', 2],
    ['late', 1],
  ]);
  for (const body of [{}, { names: ['a'], count: 1 }, { count: -1 }, { names: 'a' }]) {
    assert.equal((await server.ask('POST', `/v1/sessions/${session}/buckets/joined/join`, body)).status, 400);
  }
});

test('a second open session with the same names does not mix with the first', async () => {
  const first = (await put('joined', 'begin-1', 'first', { open: 'true' })).json.session;
  const second = (await put('joined', 'begin-2', 'second', { open: 'true' })).json.session;
  await Promise.all([put('joined', 'same', 1, { session: first }), put('joined', 'same', 2, { session: second })]);
  for (const id of [first, second]) {
    await server.ask('POST', `/v1/sessions/${id}/buckets/joined/join`, { names: ['same'] });
  }
  assert.deepEqual((await server.result(first)).json, [['same', 1]]);
  assert.deepEqual((await server.result(second)).json, [['same', 2]]);
});

test('an open session that gets nothing ends by itself', async () => {
  const { session } = (await put('grouped', 'idle', 1, { open: 'true', idleTimeoutMs: 300 })).json;
  const record = await server.ended(session);
  assert.equal(record.state, 'completed');
  assert.deepEqual(record.unfired[0]?.bucket, 'grouped');
});

test('an object of a running session can be read, in ranges too; afterwards it is gone', async () => {
  const session = await server.start('objects/slowly');
  const whole = Buffer.from(new Uint8Array(100_000).map((_, i) => i % 251));
  const get = (range?: string, name = 'q') =>
    server.get(at('quiet', name), { query: { session }, headers: range === undefined ? {} : { range } });
  await until(async () => (await get()).status === 200, 'it was sent');
  assert.ok((await get()).bytes.equals(whole));
  for (const [range, start, end] of [
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=99990-', 99_990, 100_000],
    ['bytes=-7', 99_993, 100_000],
    ['bytes=99999-200000', 99_999, 100_000],
  ] as const) {
    const part = await get(range);
    assert.equal(part.status, 206, range);
    assert.equal(part.headers.get('content-range'), `bytes ${start}-${end - 1}/100000`, range);
    assert.ok(part.bytes.equals(whole.subarray(start, end)), range);
  }
  assert.equal((await get('bytes=100000-')).status, 416);
  assert.deepEqual((await get(undefined, 'j')).json, { some: 'json' });
  const head = await server.ask('HEAD', at('quiet', 'q'), undefined, { query: { session } });
  assert.equal(head.headers.get('content-length'), '100000');
  const unknown = await get(undefined, 'nope');
  assert.equal(unknown.json.code, 'E_OBJECT_UNKNOWN');
  await server.ended(session);
  const gone = await get();
  assert.equal(gone.status, 404);
  assert.equal(gone.json.code, 'E_OBJECT_GONE');
});

test('bytes are accounted for by session, and triggers that wait half-filled are named', async () => {
  const { session } = (await put('grouped', 'wait-a', new Uint8Array(100_000), { open: 'true' })).json;
  await put('grouped', 'wait-b', new Uint8Array(50), { session });
  await put('held', 'x'.repeat(30), new Uint8Array(20_000));
  const { json } = await server.get('/v1/objects', { query: { app: 'objects', session, waits: 'true' } });
  assert.deepEqual(json.apps[0].bySession, [{ session, memoryBytes: 100_050, spilledBytes: 0, objects: 2 }]);
  const waits = json.waits.filter((one: { session: string }) => one.session === session);
  assert.deepEqual(
    waits.map(({ waitsFor, ...rest }: { waitsFor: string }) => ({ ...rest, says: waitsFor.length > 0 })),
    [{ app: 'objects', session, bucket: 'grouped', trigger: 'all', held: 2, says: true }],
  );
  await server.ask('POST', `/v1/sessions/${session}/buckets/grouped/close`);
  await server.ended(session);
  const after = (await server.get('/v1/objects', { query: { app: 'objects', session } })).json;
  assert.deepEqual(after.apps[0].bySession, []);
  const plain = (await server.get('/v1/objects?app=objects')).json;
  assert.deepEqual(Object.keys(plain.apps[0]), [
    'app',
    'memoryBytes',
    'spilledBytes',
    'persistedBytes',
    'objects',
    'sessions',
  ]);
});

test('a persisted object that another session gets says whose it is, its group and its type', async () => {
  const { session } = await server.call('objects/keepIn', 'g1');
  const { own, ...seen } = (await server.call('objects/look')).json;
  assert.notEqual(own, session);
  assert.deepEqual(seen, {
    id: `objects/kept/${session}/meta`,
    bucket: 'kept',
    name: 'meta',
    session,
    group: 'g1',
    size: 7,
    contentType: 'application/json',
  });
  await server.ask('DELETE', at('kept', 'meta'));
});

test('persisted objects are listed by name, and deleted for good', async () => {
  for (const name of ['b', 'a', 'c']) await server.call('objects/keep', { name, size: 2_000_000 });
  const list = (query: Record<string, string | number> = {}) =>
    server.get('/v1/apps/objects/buckets/kept/objects', { query: { prefix: 'list-', ...query } });
  const first = (await list({ limit: 2 })).json;
  assert.deepEqual(
    first.objects.map((one: { name: string; size: number }) => [one.name, one.size]),
    [
      ['list-a', 2_000_000],
      ['list-b', 2_000_000],
    ],
  );
  const rest = (await list({ cursor: first.cursor })).json;
  assert.deepEqual([rest.objects.map((one: { name: string }) => one.name), rest.cursor], [['list-c'], undefined]);
  const persisted = async () => (await server.get('/v1/objects?app=objects')).json.apps[0].persistedBytes;
  const before = await persisted();
  const etag = (await server.ask('HEAD', at('kept', 'list-a'))).headers.get('etag') ?? '';
  assert.equal((await server.get(at('kept', 'list-a'), { headers: { 'if-none-match': etag } })).status, 304);
  assert.equal((await server.ask('DELETE', at('kept', 'list-a'))).status, 200);
  assert.equal((await server.get(at('kept', 'list-a'))).json.code, 'E_OBJECT_UNKNOWN');
  assert.equal((await server.ask('DELETE', at('kept', 'list-a'))).status, 404);
  assert.equal(await persisted(), before - 2_000_000);
  for (const name of ['list-b', 'list-c']) await server.ask('DELETE', at('kept', name));
});

test('persisted objects outlive their session and the server; the newest of a name counts', async () => {
  await server.call('objects/persist', Buffer.from('first'));
  await server.call('objects/persist', Buffer.from('second'));
  assert.equal((await server.get(at('kept', 'k'))).bytes.toString(), 'second');
  const part = await server.get(at('kept', 'k'), { headers: { range: 'bytes=1-3' } });
  assert.equal(part.status, 206);
  assert.equal(part.bytes.toString(), 'eco');
  await server.kill();
  await server.begin();
  assert.equal((await server.get(at('kept', 'k'))).bytes.toString(), 'second');
  assert.equal((await server.call('objects/fetch', 'k')).bytes.toString(), 'second');
  const missing = await server.get(at('kept', 'none'));
  assert.equal(missing.json.code, 'E_OBJECT_UNKNOWN');
  const { json } = await server.get('/v1/objects?app=objects');
  assert.equal(json.apps[0].persistedBytes, 6);
});
