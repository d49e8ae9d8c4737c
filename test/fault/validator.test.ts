// Goal: a validator that spins, throws, ends its instance or is not there to be asked holds up nobody.
// Method: a real server, an app whose validators do so.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Served } from '../fixtures/served.ts';

const APP = `
import { app, bucket, fn, immediate } from 'antrail';
const schema = (check: (value: any) => void) => ({
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: any) => { check(value); return { value }; },
  },
});
const faulty = schema((value) => {
  if (value === 'throw') throw new Error('validator broke');
  if (value === 'exit') process.exit(3);
  if (value === 'spin') for (;;);
});
export default app('validators', {
  entry: 'take',
  functions: {
    take: fn((ctx, [one]) => one?.json(), { input: faulty, timeoutMs: 400 }),
    busy: fn(() => { const end = Date.now() + 1500; while (Date.now() < end); return 'done'; }),
    see: fn((ctx, [one]) => { ctx.output(one!.json()); }),
    other: fn((ctx) => 'other'),
  },
  buckets: { guarded: bucket({ schema: faulty, on: { each: immediate({ run: 'see' }) } }) },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

const put = (name: string, value: unknown) =>
  server.ask('POST', `/v1/apps/validators/buckets/guarded/objects/${name}`, value);

for (const [how, status, code] of [
  ['throw', 500, 'E_FUNCTION_FAILED'],
  ['exit', 500, 'E_FUNCTION_FAILED'],
  ['spin', 504, 'E_TIMEOUT'],
] as const) {
  test(`a value whose validator does ${how} is refused at every door, and the next request passes`, async () => {
    const inside = await server.call('validators/take', how);
    const outside = [
      await server.call('validators/take', how, { query: { mode: 'async' } }),
      await put(`bad-${how}`, how),
    ];
    for (const answer of [inside, ...outside]) {
      assert.equal(answer.status, status, answer.bytes.toString());
      assert.equal(answer.json.code, code);
    }
    assert.equal((await server.call('validators/take', 'fine')).json, 'fine');
    assert.equal((await server.call('validators/other')).json, 'other');
    const good = await put(`good-${how}`, 'fine');
    assert.equal(good.status, 202);
    assert.equal((await server.result(good.json.session)).json, 'fine');
  });
}

test('a start whose validator must wait for busy instances is answered once one is free', async () => {
  const busy = Array.from({ length: 12 }, () => server.call('validators/busy'));
  assert.equal((await server.result(await server.start('validators/take', 'fine'))).json, 'fine');
  for (const call of busy) assert.equal((await call).json, 'done');
});
