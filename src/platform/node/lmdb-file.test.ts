// Goal: a database that is cut off, overwritten or gone is told apart from a whole one before LMDB maps it. Method: a real one
// with short and long values, damaged in each way.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { checkLmdbFile } from './lmdb-file.ts';
import { LmdbStore } from './lmdb-store.ts';

const PAGE = 4_096;
const folder = mkdtempSync(join(tmpdir(), 'antrail-lmdb-'));
const file = join(folder, 'data.lmdb');
let whole: Buffer;

before(async () => {
  const store = new LmdbStore(file);
  for (let i = 0; i < 40; i++) {
    const small = Array.from({ length: 50 }, (_, k) => ({ put: `k/${i}/${k}`, value: new Uint8Array(200).fill(i) }));
    await store.transaction([...small, { put: `long/${i}`, value: new Uint8Array(50_000).fill(i) }]);
    if (i % 3 === 2) await store.transaction([{ delete: `long/${i - 1}` }]);
  }
  await store.close();
  whole = readFileSync(file);
});
after(() => rmSync(folder, { recursive: true, force: true }));

function check(bytes: Uint8Array): void {
  writeFileSync(file, bytes);
  checkLmdbFile(file);
}

const DAMAGED = { code: 'E_CHECKSUM', message: /data\.lmdb .*backup/ };

test('a whole one passes, also with a little more behind it', () => {
  check(whole);
  check(Buffer.concat([whole, Buffer.alloc(3 * PAGE)]));
});

for (const share of [0.1, 0.5, 0.9]) {
  test(`the first ${share * 100} % of one`, () => {
    const bytes = Math.floor((whole.length * share) / PAGE) * PAGE;
    assert.throws(() => check(whole.subarray(0, bytes)), DAMAGED);
  });
}

test('100 bytes, text, and one whose first pages were overwritten', () => {
  assert.throws(() => check(whole.subarray(0, 100)), DAMAGED);
  assert.throws(() => check(Buffer.from('hello '.repeat(5_000))), DAMAGED);
  for (const [from, to] of [
    [0, 2],
    [0, 1],
    [1, 2],
  ] as const) {
    const overwritten = Buffer.from(whole);
    overwritten.fill(0xab, from * PAGE, to * PAGE);
    assert.throws(() => check(overwritten), DAMAGED);
  }
});

test('an empty or missing one is a new one, unless other files rest on it', () => {
  check(Buffer.alloc(0));
  rmSync(file);
  checkLmdbFile(file);
  mkdirSync(join(folder, 'objects'));
  checkLmdbFile(file);
  writeFileSync(join(folder, 'objects', '1-0'), 'x');
  assert.throws(() => checkLmdbFile(file), DAMAGED);
  assert.throws(() => check(Buffer.alloc(0)), DAMAGED);
  assert.equal(statSync(join(folder, 'objects', '1-0')).size, 1);
});
