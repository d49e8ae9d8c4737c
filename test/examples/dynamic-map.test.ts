// Goal: a map over a list of any length gives every item's result, in order, an empty list included. Method: widths 0 to
// 10,000 through a real server, the larger ones beside others.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'antrail/client';
import { type ExampleServer, openServer } from '../../examples/server.ts';
import { Served, until } from '../fixtures/served.ts';

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/dynamic-map/app.ts');
});
after(() => server?.close());

const dynamicMap = () =>
  connect<typeof import('../../examples/dynamic-map/app.ts').default>({ app: 'dynamic-map', url: server.url });

/** Numbers whose squares are exact and differ. */
const numbers = (width: number, first: number) => Array.from({ length: width }, (_, i) => first + i);

for (const width of [0, 1, 2, 1_000, 10_000]) {
  test(`width ${width.toLocaleString('en-US')}: one invocation per item, results in order`, async () => {
    const list = numbers(width, 1);
    const handle = await dynamicMap().start<number[]>('split', list);
    assert.deepEqual(
      await handle.result(),
      list.map((n) => n * n),
    );
    const { state, counts, unfired } = await handle.info();
    assert.equal(state, 'completed');
    assert.deepEqual(unfired, []);
    assert.equal(counts.invocations, 1 + width + 1);
    assert.equal(counts.attempts, counts.invocations);
  });
}

test('names of any length are joined, more of them than ride in a message', async () => {
  const served = await Served.start();
  try {
    await served.deploy(`
      import { app, bucket, dynamicJoin, fn } from 'antrail';
      const split = fn((ctx) => {
        const names = Array.from({ length: 10_000 }, (_, i) => String(i).padStart(400, 'é'));
        ctx.join('all', names);
        for (const name of names.toReversed()) ctx.send('all', 1, { name });
      });
      const collect = fn((ctx, inputs) => { ctx.output([inputs.length, inputs[9_999].name.slice(-6)]); });
      export default app('long-names', {
        entry: 'split', functions: { split, collect }, buckets: { all: bucket({ on: { go: dynamicJoin({ run: 'collect' }) } }) },
      });`);
    assert.deepEqual((await served.call('long-names/split')).json, [10_000, 'éé9999']);
    await until(async () => {
      const { apps } = (await served.get('/v1/objects?app=long-names')).json;
      return apps.every((one: { memoryBytes: number }) => one.memoryBytes === 0);
    }, 'the names were freed as well');
  } finally {
    await served.close();
  }
});

test('a call without a list is one with an empty list', async () => {
  assert.deepEqual(await dynamicMap().invoke('split'), []);
  await assert.rejects(dynamicMap().invoke('split', 'x' as never), { message: 'give a list of numbers' });
});

test('lists of many lengths at once do not mix', async () => {
  const lists = Array.from({ length: 40 }, (_, i) => numbers(i * 5, i * 1_000));
  const results = await Promise.all(lists.map((list) => dynamicMap().invoke<number[]>('split', list)));
  assert.deepEqual(
    results,
    lists.map((list) => list.map((n) => n * n)),
  );
});
