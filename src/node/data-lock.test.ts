// Goal: one server per data folder; a lock of a dead process is taken over by exactly one.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { lockDataFolder } from './data-lock.ts';

const folder = mkdtempSync(join(tmpdir(), 'antrail-lock-'));
after(() => rmSync(folder, { recursive: true, force: true }));

test('a second lock is refused with the pid of the owner, until it is released', () => {
  const lock = lockDataFolder(folder);
  assert.throws(
    () => lockDataFolder(folder),
    (error: { code?: string; details?: { pid?: number } }) => {
      assert.equal(error.code, 'E_DATA_IN_USE');
      assert.equal(error.details?.pid, process.pid);
      return true;
    },
  );
  lock.release();
  lock.release();
  lockDataFolder(folder).release();
});

test('a lock of a process that is gone, of a pid that is used again, or that is garbage is taken over', () => {
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  const stale = [
    { pid: dead, startedAt: '1' },
    { pid: process.pid, startedAt: '1' },
    { pid: process.ppid, startedAt: '1' },
  ];
  for (const owner of [...stale.map((one) => JSON.stringify(one)), 'garbage', '']) {
    writeFileSync(join(folder, 'lock'), owner);
    lockDataFolder(folder).release();
  }
});

test('of many processes that try to take over, one gets it', async () => {
  const dead = spawnSync(process.execPath, ['-e', '']).pid;
  writeFileSync(join(folder, 'lock'), JSON.stringify({ pid: dead, startedAt: '1' }));
  const script = `
    import { lockDataFolder } from ${JSON.stringify(new URL('./data-lock.js', import.meta.url).href)};
    try { lockDataFolder(${JSON.stringify(folder)}); console.log('got'); } catch (error) { console.log(error.code); }
    process.stdin.resume();
    process.stdin.on('end', () => process.exit());`;
  const children = Array.from({ length: 5 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const said = await Promise.all(
    children.map(
      (child) => new Promise<string>((resolve) => child.stdout.once('data', (chunk) => resolve(String(chunk).trim()))),
    ),
  );
  for (const child of children) child.stdin.end();
  assert.deepEqual(said.sort(), ['E_DATA_IN_USE', 'E_DATA_IN_USE', 'E_DATA_IN_USE', 'E_DATA_IN_USE', 'got']);
});
