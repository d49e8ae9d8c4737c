// Goal: no pool of instances starves another, however few instances there may be. Method: a server with four instances at
// most, an app whose functions need six pools.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Served } from '../fixtures/served.ts';

const POOLS = [0, 1, 2, 3, 4, 5];
const APP = `
import { app, fn } from 'antrail';
const wait = fn(async (ctx, [ms]) => { await new Promise((r) => setTimeout(r, ms!.json())); return ctx.attempt; });
export default app('pools', {
  entry: 'f0',
  functions: {
    ${POOLS.map((i) => `f${i}: fn(async (ctx, [ms]) => { await new Promise((r) => setTimeout(r, ms!.json<number>())); return ${i}; }, { pool: 'p${i}' }),`).join('\n    ')}
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start({ instancesMax: 4 });
  await server.deploy(APP);
});
after(() => server.close());

test('six pools share four instances', async () => {
  for (let round = 0; round < 2; round++) {
    for (const i of POOLS) assert.equal((await server.call(`pools/f${i}`, 1)).json, i);
  }
});

test('a pool under load does not keep the others out', async () => {
  let go = true;
  const load = Array.from({ length: 12 }, async () => {
    while (go) assert.equal((await server.call('pools/f0', 20)).json, 0);
  });
  for (const i of POOLS) assert.equal((await server.call(`pools/f${i}`, 1)).json, i);
  go = false;
  await Promise.all(load);
});
