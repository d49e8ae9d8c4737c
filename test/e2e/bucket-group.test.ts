// Goal: groups over all sessions of a bucket close once, and who sends later is told. Method: a real server.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Served, until } from '../fixtures/served.ts';

const app = (options: string) => `
import { app, bucket, dynamicGroup, fn } from 'antrail';
export default app('groups', {
  entry: 'put',
  functions: {
    put: fn((ctx, [input]) => { for (const [group, n] of input.json<any>()) ctx.send('all', n, { group }); }),
    close: fn((ctx) => { ctx.closeGroup('all'); }),
    total: fn((ctx, inputs) => { ctx.output(inputs.map((one) => one.json())); }),
  },
  buckets: { all: bucket({ on: { g: dynamicGroup({ ${options} run: 'total' }) } }) },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
});
after(() => server.close());

test('what several sessions gave is grouped at the first close, and later sends fail', async () => {
  await server.deploy(app("scope: 'bucket',"));
  assert.equal(
    (
      await server.call('groups/put', [
        ['a', 1],
        ['b', 2],
      ])
    ).status,
    200,
  );
  assert.equal((await server.call('groups/put', [['a', 3]])).status, 200);
  assert.equal((await server.call('groups/close')).status, 200);
  const fired = await until(async () => {
    const { json } = await server.get('/v1/sessions', { query: { app: 'groups' } });
    const totals = json.sessions.filter((one: any) => one.function === 'total' && one.state === 'completed');
    return totals.length === 2 && totals;
  }, 'both groups fired');
  const values = await Promise.all(fired.map(async (one: any) => (await server.outputs(one.session))[0]?.data.json));
  assert.deepEqual(values.sort(), [[1, 3], [2]]);
  const late = await server.call('groups/put', [['a', 4]]);
  assert.deepEqual([late.status, late.json.code], [409, 'E_SESSION_ENDED']);
  assert.match(late.json.detail, /Bucket 'all' was closed, for all sessions/);
});

test('producers of a bucket are refused at deploy, with what to do instead', async () => {
  await assert.rejects(server.deploy(app("scope: 'bucket', producers: ['put'],")), /producers needs scope 'session'/);
});
