// Goal: a disk that is full refuses what must be kept and nothing else; what was acknowledged is there, and ends. Method: a
// real server on a small file system in memory, which only root can make.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Served } from '../fixtures/served.ts';

const APP = `
import { app, fn } from 'antrail';
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
export default app('full', {
  entry: 'size',
  functions: {
    size: fn((ctx, [o]) => o.size),
    echo: fn((ctx, [o]) => o.json()),
    slow: fn(async (ctx, [o]) => { await sleep(o.json()); return 'ended'; }),
  },
});`;
const MIB = 1024 * 1024;
/** One size below that from which a payload is a file of its own, and one above. */
const INPUTS = [new Uint8Array(900_000), new Uint8Array(3 * MIB)];

let server: Served;
let isSmall = false;
before(async () => {
  server = await Served.start();
  await server.kill();
  isSmall = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=120m', 'tmpfs', server.dataDir]).status === 0;
  await server.begin();
  await server.deploy(APP);
});
after(async () => {
  await server.kill('SIGTERM');
  if (isSmall) spawnSync('umount', ['-l', server.dataDir]);
  await server.close();
});

test('starts that cannot be kept are refused by name; what was accepted ends; with room again all goes on', async (t) => {
  if (!isSmall) return t.skip('a small file system can be made by root only');
  const { pid } = server;
  const ending = await server.start('full/slow', 2_000);
  const kept: [string, number][] = [];
  let refused = 0;
  while (refused < 20) {
    await Promise.all(
      INPUTS.map(async (input) => {
        const { status, json } = await server.call('full/size', input, { query: { mode: 'async' } });
        if (status === 202) kept.push([json.session, input.length]);
        else {
          assert.equal(json.code, 'E_QUOTA_EXCEEDED', JSON.stringify(json));
          assert.match(json.detail, /disk has \d+ bytes free/);
          refused++;
        }
      }),
    );
    assert.ok(kept.length < 1_000, 'the disk is small');
  }
  assert.ok(kept.length > 0);
  assert.equal((await server.call('full/echo', 'no disk')).json, 'no disk');
  assert.equal((await server.result(ending)).json, 'ended', 'there is room for ends');
  // Others may fill it to the last byte.
  const filler = join(server.dataDir, 'filler');
  try {
    writeFileSync(filler, Buffer.alloc(120 * MIB));
  } catch {}
  const full = await server.call('full/echo', 'x', { query: { mode: 'async' } });
  assert.equal(full.json.code, 'E_QUOTA_EXCEEDED', full.bytes.toString());
  assert.equal((await server.call('full/echo', 'no disk')).json, 'no disk');
  assert.equal(server.pid, pid);
  rmSync(filler);
  for (const [id, size] of kept) assert.equal((await server.result(id)).json, size, id);
});
