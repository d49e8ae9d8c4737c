// Goal: whatever is wrong with a request or an app is said in words that tell what to do, and changes nothing.
// Method: a real server and the real command line.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CLI, Served, until } from '../fixtures/served.ts';

const ZOD = join(import.meta.dirname, '../../../node_modules/zod/index.js');
const BODY_BYTES_MAX = 5_000_000;
const APP = `
import { app, bucket, fn, immediate, byName } from 'antrail';
import { z } from '${ZOD}';
const order = z.object({ id: z.string().min(3, 'an id has three letters or more'), count: z.number().int() });
export default app('shop', {
  entry: 'echo',
  functions: {
    echo: fn((ctx, [one]) => one?.json()),
    order: fn((ctx, [one]) => ctx.output(one.json()), { input: order }),
    sends: fn((ctx, [one]) => { ctx.send('orders', one.json()); }),
    bigint: fn(() => ({ deep: [{ at: 1n }] })),
    cycle: fn(() => { const a: any = { list: [{}] }; a.list[0].back = a; return a; }),
    func: fn((ctx) => ctx.send('plain', { x: { f() {} } })),
    wrongBucket: fn((ctx) => ctx.send('ordres' as any, 1)),
  },
  buckets: {
    orders: bucket({ schema: order, on: { each: immediate({ run: 'order' }) } }),
    plain: bucket({}),
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start({ bodyBytesMax: BODY_BYTES_MAX });
  await server.deploy(APP);
});
after(() => server.close());

interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function cli(...args: string[]): Promise<Ran> {
  const child = spawn(process.execPath, [CLI, ...args], {
    env: { ...process.env, ANTRAIL_URL: server.url },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (data) => {
    out += data;
  });
  child.stderr.on('data', (data) => {
    err += data;
  });
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, out, err })));
}

for (const [method, path, code, meant] of [
  ['POST', '/v1/apps/shpo/functions/echo', 'E_APP_UNKNOWN', 'shop'],
  ['POST', '/v1/apps/shop/functions/ecko', 'E_FUNCTION_UNKNOWN', 'echo'],
  ['POST', '/v1/apps/shop/buckets/ordes/objects/a', 'E_BUCKET_UNKNOWN', 'orders'],
  ['GET', '/v1/apps/shop/buckets/plian/objects/a', 'E_BUCKET_UNKNOWN', 'plain'],
  ['GET', '/v1/apps/shopp', 'E_APP_UNKNOWN', 'shop'],
  ['PUT', '/v1/apps/shop/buckets/ordrs/triggers/t', 'E_BUCKET_UNKNOWN', 'orders'],
] as const) {
  test(`${method} ${path} is 404 and names what was meant`, async () => {
    const body = method === 'GET' ? undefined : { kind: 'immediate', run: 'echo' };
    const { status, json } = await server.ask(method, path, body);
    assert.equal(status, 404);
    assert.equal(json.code, code);
    assert.equal(json.didYouMean, meant);
  });
}

test('several entries: an unknown function among them is refused and nothing runs', async () => {
  const before = (await server.get('/v1/sessions?app=shop')).json.sessions.length;
  const entries = [
    { function: 'echo', input: 1 },
    { function: 'orderr', input: 1 },
  ];
  const { status, json } = await server.ask('POST', '/v1/apps/shop/sessions', { entries });
  assert.equal(status, 404);
  assert.equal(json.didYouMean, 'order');
  assert.equal((await server.get('/v1/sessions?app=shop')).json.sessions.length, before);
});

test('invalid JSON is 400 with the position', async () => {
  for (const [text, position] of [
    ['{"a": 1,, "b": 2}', 8],
    ['{"a": tru}', 9],
    ['[1, 2', 5],
    [`{"big": "${'x'.repeat(1_500_000)}", oops}`, 1_500_012],
  ] as const) {
    const response = await fetch(`${server.url}/v1/apps/shop/functions/echo`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: text,
    });
    const json = (await response.json()) as { code: string; position: number };
    assert.equal(response.status, 400);
    assert.equal(json.code, 'E_JSON_INVALID');
    assert.equal(json.position, position, text.slice(0, 40));
  }
});

for (const mode of ['sync', 'async']) {
  test(`an input that fails its schema is 422 with the validator's words (${mode})`, async () => {
    const { status, json } = await server.call('shop/order', { id: 'a', count: 1.5 }, { query: { mode } });
    assert.equal(status, 422, JSON.stringify(json));
    assert.equal(json.code, 'E_INPUT_INVALID');
    assert.equal(json.issues[0].message, 'an id has three letters or more');
    assert.deepEqual(json.issues[0].path, ['id']);
    assert.equal(json.issues.length, 2);
  });
}

test('an object from outside that fails its schema is 422, and one of a function fails its sender', async () => {
  const outside = await server.ask('POST', '/v1/apps/shop/buckets/orders/objects/bad', { id: 'ab', count: 1 });
  assert.equal(outside.status, 422);
  assert.equal(outside.json.issues[0].message, 'an id has three letters or more');
  const inside = await server.call('shop/sends', { id: 'ab', count: 1 });
  assert.equal(inside.status, 422, JSON.stringify(inside.json));
  assert.equal(inside.json.code, 'E_INPUT_INVALID');
  assert.equal(inside.json.issues[0].message, 'an id has three letters or more');
  assert.equal((await server.call('shop/sends', { id: 'abc', count: 1 })).json.id, 'abc');
  const text = await server.ask('POST', '/v1/apps/shop/buckets/orders/objects/bytes', Buffer.from('not json'));
  assert.equal(text.status, 422, JSON.stringify(text.json));
});

test('a body above the limit is 413 and names the limit, and one at the limit passes', async () => {
  const fits = Buffer.alloc(BODY_BYTES_MAX, 1);
  const put = await server.ask('POST', '/v1/apps/shop/buckets/plain/objects/fits', fits);
  assert.equal(put.status, 202, put.bytes.toString());
  for (const path of ['/v1/apps/shop/functions/echo', '/v1/apps/shop/buckets/plain/objects/big']) {
    const { status, json } = await server.ask('POST', path, Buffer.alloc(BODY_BYTES_MAX + 1));
    assert.equal(status, 413);
    assert.equal(json.code, 'E_BODY_TOO_LARGE');
    assert.equal(json.limitBytes, BODY_BYTES_MAX);
    assert.match(json.detail, /5000000/);
  }
  let chunks = 0;
  const body = new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(300_000));
      if (++chunks * 300_000 > BODY_BYTES_MAX) controller.close();
    },
  });
  const chunked = await fetch(`${server.url}/v1/apps/shop/functions/echo`, {
    method: 'POST',
    duplex: 'half',
    headers: { 'content-type': 'application/octet-stream' },
    body,
  } as RequestInit);
  assert.equal(chunked.status, 413);
  await chunked.body?.cancel();
});

for (const [name, path] of [
  ['bigint', /deep\[0\]\.at/],
  ['cycle', /list\[0\]\.back/],
  ['func', /x\.f/],
] as const) {
  test(`a value that cannot be sent (${name}) is refused with its path`, async () => {
    const { status, json } = await server.call(`shop/${name}`);
    assert.ok(status >= 400 && json.code !== 'E_INTERNAL', JSON.stringify(json));
    assert.match(json.detail, path);
  });
}

test('a send into an unknown bucket names the one that was meant', async () => {
  const { status, json } = await server.call('shop/wrongBucket');
  assert.equal(json.code, 'E_BUCKET_UNKNOWN', JSON.stringify(json));
  assert.equal(status, 404);
  assert.equal(json.didYouMean, 'orders');
});

test('queries that say nothing sensible are 400 and name the parameter', async () => {
  for (const query of [
    { mode: 'asnyc' },
    { timeoutMs: '0' },
    { timeoutMs: 'x' },
    { delayMs: '-1' },
    { priority: '1.5' },
    { durability: 'all' },
    { unheardOf: '1' },
  ]) {
    const { status, json } = await server.call('shop/echo', 1, { query });
    assert.equal(status, 400, JSON.stringify(query));
    assert.equal(json.code, 'E_REQUEST_INVALID');
    assert.match(json.detail, new RegExp(Object.keys(query)[0] as string));
  }
});

// ── Deploying ───────────────────────────────────────────────────────────────────────────────────────────────────────

async function appFile(name: string, text: string): Promise<string> {
  const folder = join(server.folder, 'apps', name);
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'app.ts'), text);
  return join(folder, 'app.ts');
}

const appWith = (buckets: string, more = '') => `import { app, bucket, byName, bySet, fn, immediate } from 'antrail';
${more}
export default app('deployed', {
  entry: 'one',
  functions: { one: fn(() => 1), two: fn(() => 2) },
  buckets: {
    ${buckets}
  },
} as any);
`;

test('an app whose trigger names an unknown function is refused with file and line, and the old version serves on', async () => {
  const good = await cli(
    'deploy',
    await appFile('good', appWith(`a: bucket({ on: { x: immediate({ run: 'one' }) } }),`)),
  );
  assert.equal(good.code, 0, good.err);
  assert.match(good.out, /deployed deployed version [0-9a-f]+/);
  const file = await appFile(
    'unknown',
    appWith(`a: bucket({}),\n    b: bucket({\n      on: {\n        x: immediate({ run: 'tow' as any }) } }),`),
  );
  const { code, out, err } = await cli('deploy', file);
  assert.equal(code, 1);
  assert.equal(out, '');
  assert.match(err, /app\.ts:10/);
  assert.match(err, /tow/);
  assert.match(err, /two/);
  assert.equal((await server.call('deployed/one')).json, 1);
});

test('a duplicate and a wrong option of a trigger are refused with file and line', async () => {
  for (const [name, buckets, said] of [
    ['set', `a: bucket({ on: {\n x: bySet({ names: ['p', 'p'], run: 'one' }) } }),`, /app\.ts:8.*\bp\b/s],
    ['runs', `a: bucket({ on: {\n x: immediate({ run: ['one', 'one'] }) } }),`, /app\.ts:8.*one/s],
    ['rerun', `a: bucket({ rerun: [{ source: 'none', expect: 'every-object', timeoutMs: 100 }] } as any),`, /none/],
    ['size', `a: bucket({ on: { x: byName({ run: 'one' } as any) } }),`, /app\.ts:7/],
  ] as const) {
    const { code, err } = await cli('deploy', await appFile(name, appWith(buckets)));
    assert.equal(code, 1, `${name} was taken`);
    assert.match(err, said, name);
  }
});

test('a trigger put at run time with an unknown function or a wrong option is 422 and changes nothing', async () => {
  for (const spec of [
    { kind: 'immediate', run: 'tow' },
    { kind: 'imediate', run: 'two' },
    { kind: 'byBatchSize', size: 0, run: 'two' },
  ]) {
    const { status, json } = await server.ask('PUT', '/v1/apps/deployed/buckets/a/triggers/y', spec);
    assert.equal(status, 422, JSON.stringify(json));
    assert.equal(json.code, 'E_APP_INVALID');
  }
  assert.deepEqual(Object.keys((await server.get('/v1/apps/deployed')).json.manifest.buckets.a.on), ['x']);
});

test('a file that does not compile, exports no app, or throws while it loads is refused where it is wrong', async () => {
  for (const [name, text, said] of [
    ['syntax', `import { app } from 'antrail';\n\nexport default app('deployed', {{ );\n`, /app\.ts:3/],
    [
      'import',
      `import { app } from 'antrail';\nimport './not-there.ts';\nexport default 1;\n`,
      /app\.ts:2.*not-there/s,
    ],
    ['nothing', `export const a = 1;\n`, /default/],
    ['number', `export default 7;\n`, /default|app/],
    [
      'throws',
      `import { app } from 'antrail';\nfunction broken(): never {\n  throw new Error('broken at load');\n}\nbroken();\nexport default app('deployed', {} as any);\n`,
      /app\.ts:3.*broken at load/s,
    ],
    [
      'entry',
      `import { app, fn } from 'antrail';\nexport default app('deployed', { entry: 'nix', functions: { a: fn(() => 1) } } as any);\n`,
      /nix/,
    ],
  ] as const) {
    const { code, err } = await cli('deploy', await appFile(name, text));
    assert.equal(code, 1, `${name} was taken`);
    assert.match(err, said, name);
    assert.doesNotMatch(err, /node_modules|dist\/|node:internal/, name);
  }
});

test('a bundle that throws only on the server is refused with the source-mapped frame, and the old version serves on', async () => {
  const more = `if (process.env.STAGE === 'broken') {\n  throw new RangeError('no such stage');\n}`;
  const text = appWith(`a: bucket({}),`, more).replace('entry:', `env: { STAGE: 'fine' }, entry:`);
  const file = await appFile('server-side', text);
  assert.equal((await cli('deploy', file)).code, 0);
  const version = (await server.get('/v1/apps/deployed')).json.version;
  const { code, err } = await cli('deploy', file, '--env', 'STAGE=broken');
  assert.equal(code, 1);
  assert.match(err, /no such stage/);
  assert.match(err, /app\.ts:3:\d+/);
  assert.doesNotMatch(err, /node:internal|app-host|instance\.js|instance\.ts|\/data\/apps/);
  const now = (await server.get('/v1/apps/deployed')).json;
  assert.equal(now.version, version);
  assert.equal((await server.call('deployed/one')).json, 1);
  await until(() => server.hosts('deployed').length === 1, 'the refused version has no host');
});

test('a port in use is said, with whose it is and how to take another', async () => {
  const args = ['serve', '--data', join(server.folder, 'second'), '--port', new URL(server.url).port];
  const second = await cli(...args);
  assert.equal(second.code, 1);
  assert.match(second.err, new RegExp(`${server.pid}`));
  assert.match(second.err, /--port/);
  assert.match(second.err, /antrail|node/);
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const taken = await cli(
    'serve',
    '--data',
    join(server.folder, 'third'),
    '--port',
    String((other.address() as AddressInfo).port),
  );
  other.close();
  assert.equal(taken.code, 1);
  assert.match(taken.err, new RegExp(`${process.pid}`));
});

test('wrong usage ends with 2, a failure with 1, and says so on standard error only', async () => {
  for (const args of [
    ['invoke', 'shop/echo', '{oops'],
    ['serve', '--port', '70000'],
    ['nonsense'],
    ['deploy'],
    ['deploy', 'not-there.ts'],
    ['invoke', 'shop', '--timeout', 'soon'],
  ]) {
    const { code, out, err } = await cli(...args);
    assert.equal(code, 2, args.join(' '));
    assert.equal(out, '');
    assert.ok(err.length > 10);
  }
  const config = join(server.folder, 'bad.json');
  await writeFile(config, '{"bodyBytesMx": 1}');
  const bad = await cli('serve', '--data', join(server.folder, 'x'), '--config', config, '--port', '0');
  assert.notEqual(bad.code, 0);
  assert.match(bad.err, /bodyBytesMax/);
  const failed = await cli('invoke', 'shop/bigint');
  assert.equal(failed.code, 1);
  assert.equal(failed.out, '');
  assert.match(failed.err, /deep\[0\]\.at/);
});
