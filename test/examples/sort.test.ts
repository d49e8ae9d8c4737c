// Goal: 100 MB of records are sorted over all ranges, none lost, added or merged, also beside other sorts and when the
// app's process is killed between map and reduce. Method: a real server; every record is read back and compared with the
// input, which is made again from its seed. The checks themselves are seen to fail.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { bundleApp } from '#src/deploy/index.js';
import { type ExampleServer, openServer } from '../../examples/server.ts';
import { SortCheck } from '../../examples/sort/check.ts';
import { driveSort } from '../../examples/sort/drive.ts';
import { compareKeys, equalKeysOf, partitionOf, RECORD_BYTES, writeRecords } from '../../examples/sort/records.ts';
import { sortInto } from '../../examples/sort/sort-into.ts';
import { bytes, ms } from '../../examples/text.ts';
import { Served, until } from '../fixtures/served.ts';

/** Records. */
const MB = 10_000;
const SORT = new URL('../../../examples/sort/app.ts', import.meta.url).pathname;

describe('sort', () => {
  let server: ExampleServer;
  before(async () => {
    server = await openServer();
    await server.deploy('examples/sort/app.ts');
  });
  after(() => server?.close());

  test('of 100 MB by 8 mappers and 8 reducers', async (t) => {
    const job = { seed: 1, records: 100 * MB, mappers: 8, partitions: 8 };
    let inMemory = 0;
    const report = await driveSort({
      url: server.url,
      job,
      onSorted: async () => {
        const { apps } = await server.client.objects('sort');
        inMemory = apps.reduce((sum, one) => sum + one.memoryBytes, 0);
      },
    });
    assert.deepEqual(report.wrong, []);
    assert.equal(report.shuffleBytes, report.bytes);
    assert.ok(report.equalKeys >= job.records / 50 - 1, 'copies among the records');
    // Input as runs, and output.
    assert.ok(inMemory < 2.2 * report.bytes, `${bytes(inMemory)} of objects`);
    t.diagnostic(
      `${bytes(report.bytes)} in ${ms(report.sortMs)}; last mapper to first reducer ${ms(report.firstReducerMs)}, to last ` +
        `${ms(report.lastReducerMs)}; ${bytes(report.shuffleBytes)} shuffled; checked in ${ms(report.checkMs)}`,
    );
  });

  test('leaves nothing behind', async () => {
    await until(async () => {
      const { apps } = await server.client.objects('sort');
      const { sessions } = await server.client.sessions({ app: 'sort', state: 'running' });
      return apps.every((one) => one.objects === 0) && sessions.length === 0;
    }, 'no session runs and no object is left');
  });

  test('of nothing, of one record, of fewer records than mappers and ranges', async () => {
    for (const records of [0, 1, 5, 101]) {
      const report = await driveSort({ url: server.url, job: { seed: 3, records, mappers: 7, partitions: 13 } });
      assert.deepEqual(report.wrong, []);
      assert.equal(report.found.records, records);
    }
  });

  test('of four inputs at once does not mix them', async () => {
    const jobs = [1, 2, 3, 4].map((seed) => ({ seed, records: MB + seed, mappers: 2 + seed, partitions: 6 - seed }));
    const reports = await Promise.all(jobs.map((job) => driveSort({ url: server.url, job })));
    assert.deepEqual(
      reports.flatMap(({ wrong }) => wrong),
      [],
    );
    assert.equal(new Set(reports.map(({ found }) => found.sum)).size, jobs.length);
  });
});

test('a sort whose process is killed while reducers run is right all the same', async () => {
  const server = await Served.start();
  try {
    await server.deploy(`
      import { app, fn } from 'antrail';
      import sort from ${JSON.stringify(SORT)};
      const reduce = fn(async (ctx, runs) => {
        await new Promise((resolve) => setTimeout(resolve, 200));
        return sort.functions.reduce.handler(ctx, runs);
      });
      export default app('slow-sort', {
        entry: 'split', functions: { ...sort.functions, reduce }, buckets: sort.buckets,
      });`);
    const killed = until(async () => {
      const { sessions } = (await server.get('/v1/sessions?app=slow-sort&state=running')).json;
      if (sessions.length === 0) return false;
      const { invocations = [] } = (await server.get(`/v1/sessions/${sessions[0].session}/trace`)).json;
      const reducers = invocations.filter((one: { function: string }) => one.function === 'reduce');
      const done = reducers.filter((one: { attempts: { outcome: string }[] }) => one.attempts.at(-1)?.outcome === 'ok');
      if (done.length === 0 || done.length === 40) return false;
      process.kill(await server.host('slow-sort'), 'SIGKILL');
      return true;
    }, 'a reducer has ended and others have not');
    const job = { seed: 9, records: 2 * MB, mappers: 4, partitions: 40 };
    const report = await driveSort({ url: server.url, name: 'slow-sort', job });
    await killed;
    assert.deepEqual(report.wrong, []);
  } finally {
    await server.close();
  }
});

test('a sort that does not fit into the object store goes over the disk, and is right', async () => {
  const server = await Served.start({ objectBytesMax: 12_000_000 });
  try {
    const { bundle } = await bundleApp(SORT);
    await server.ask('PUT', '/v1/apps/sort', bundle);
    let onDisk = 0;
    const report = await driveSort({
      url: server.url,
      job: { seed: 6, records: 10 * MB, mappers: 16, partitions: 16 },
      onSorted: async () => {
        const { apps } = (await server.get('/v1/objects?app=sort')).json;
        onDisk = apps[0].spilledBytes;
      },
    });
    assert.deepEqual(report.wrong, []);
    assert.ok(onDisk > report.bytes / 4, `${bytes(onDisk)} on disk`);
  } finally {
    await server.close();
  }
});

describe('the check of a sort', () => {
  const input = { seed: 4, records: 1_000 };
  const made = new Uint8Array(input.records * RECORD_BYTES);
  writeRecords(made, input, { from: 0, count: input.records });
  const sorted = new Uint8Array(made.length);
  sortInto(sorted, [made]);
  const half = 500 * RECORD_BYTES;

  /** What it says of these ranges. */
  const verdict = (...ranges: readonly Uint8Array[]) => {
    const check = new SortCheck();
    for (const [i, range] of ranges.entries()) {
      check.beginRange(`range ${i}`);
      // Pieces that end within records.
      for (let at = 0; at < range.length; at += 777) check.add(range.subarray(at, at + 777));
      check.endRange();
    }
    return check.compareWith(input).join('\n');
  };

  test('accepts what is sorted, however it is cut', () => {
    assert.equal(verdict(sorted), '');
    assert.equal(verdict(sorted.subarray(0, half), new Uint8Array(0), sorted.subarray(half)), '');
  });

  test('finds what is lost, added, changed, out of order, and ranges that overlap', () => {
    const copy = () => sorted.slice();
    assert.match(verdict(sorted.subarray(RECORD_BYTES)), /999 records came out, 1000 went in/);
    assert.match(verdict(sorted, sorted.subarray(-RECORD_BYTES)), /1001 records came out/);
    const changed = copy();
    changed[99] = (changed[99] ?? 0) ^ 1;
    assert.match(verdict(changed), /not the input’s/);
    const swapped = copy();
    swapped.copyWithin(0, RECORD_BYTES, 2 * RECORD_BYTES);
    swapped.set(sorted.subarray(0, RECORD_BYTES), RECORD_BYTES);
    assert.match(verdict(swapped), /^range 0 is not sorted$/);
    assert.match(
      verdict(sorted.subarray(half), sorted.subarray(0, half)),
      /^range 1 begins before the range before it ends$/,
    );
    assert.match(verdict(sorted.subarray(0, 150)), /ends within a record/);
    // A reducer that merges equal keys.
    const kept: Uint8Array[] = [];
    for (let i = 0; i < input.records; i++) {
      if (i > 0 && compareKeys(sorted, i - 1, sorted, i) === 0) continue;
      kept.push(sorted.subarray(i * RECORD_BYTES, (i + 1) * RECORD_BYTES));
    }
    assert.match(verdict(Buffer.concat(kept)), /0 repeated keys came out/);
  });
});

test('records are the same in any pieces; ranges follow the unsigned order of keys', () => {
  const input = { seed: 5, records: 2_000 };
  const [whole, pieces] = [0, 1].map(() => new Uint8Array(input.records * RECORD_BYTES)) as [Uint8Array, Uint8Array];
  writeRecords(whole, input, { from: 0, count: 2_000 });
  for (let from = 0; from < 2_000; from += 125) {
    writeRecords(pieces.subarray(from * RECORD_BYTES), input, { from, count: 125 });
  }
  assert.deepEqual(pieces, whole);
  const keys = new Set<string>();
  for (let i = 0; i < 2_000; i++)
    keys.add(Buffer.from(whole.subarray(i * RECORD_BYTES, i * RECORD_BYTES + 10)).toString('latin1'));
  assert.equal(equalKeysOf(input), 2_000 - keys.size);
  for (const [head, range] of [
    [[0, 0, 0, 0], 0],
    [[0x3f, 255, 255, 255], 0],
    [[0x40, 0, 0, 0], 1],
    [[0x7f, 255, 255, 255], 1],
    [[0x80, 0, 0, 0], 2],
    [[255, 255, 255, 255], 3],
  ] as const) {
    assert.equal(partitionOf(Uint8Array.from(head), 0, 4), range);
  }
});
