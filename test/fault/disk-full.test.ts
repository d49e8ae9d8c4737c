// Goal: a disk that is full refuses what must be kept and nothing else; what was acknowledged is there. Method: a real server
// whose files may not grow beyond a few MB.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Served } from '../fixtures/served.ts';

const APP = `
import { app, fn } from 'antrail';
export default app('full', {
  entry: 'size',
  functions: { size: fn((ctx, [o]) => o.size), echo: fn((ctx, [o]) => o.json()) },
});`;
/** Below the size from which a payload is a file of its own: all of them grow the database. */
const INPUT = new Uint8Array(900_000);

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

test('starts that cannot be kept are refused; the server, and what needs no disk, goes on; what was kept ends', async () => {
  await server.kill();
  server.fileKibMax = 6 * 1024;
  await server.begin();
  const kept: string[] = [];
  let refused = 0;
  while (refused < 20) {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => server.call('full/size', INPUT, { query: { mode: 'async' } })),
    );
    for (const { status, json } of answers) {
      assert.ok(status === 202 || status === 500, JSON.stringify(json));
      if (status === 202) kept.push(json.session);
      else refused++;
    }
  }
  assert.ok(kept.length > 0);
  assert.equal((await server.call('full/echo', 'no disk')).json, 'no disk');
  await server.kill();
  server.fileKibMax = undefined;
  await server.begin();
  for (const id of kept) assert.equal((await server.result(id)).json, INPUT.length, id);
  assert.equal((await server.call('full/size', INPUT, { query: { mode: 'async' } })).status, 202);
  const reasons = server.errors.filter((line) => /data folder cannot be written to/.test(line));
  assert.ok(reasons.length > 0, server.errors.slice(-20).join('\n'));
});
