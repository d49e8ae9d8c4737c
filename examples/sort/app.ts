// Sorting records that no function sees all of: the large workload of the Pheromone paper.
//
//   jobs ──▶ split ── parts ──▶ map × M ── runs, grouped by key range ──▶ reduce × R ── facts ──▶ finish
//         immediate        immediate          when every map has ended       │      when every reduce has
//                                                                            └── sorted: one object per range
//
// A mapper makes its part of the input and deals it out by key range; a reducer gets all runs of one range and sorts them.
// Bytes lie in shared memory from where they are made to where they are read: the shuffle copies nothing but what
// dealing out and merging write. In memory at once: the input (as runs) and the output, and per instance one part.
//
// The job is an object that is put into the bucket `jobs` with `open`: its session stays, and with it the sorted objects,
// until they have been read and the session is closed. `drive.ts` does that, and checks the result.

import { app, bucket, dynamicGroup, type EpheObject, fn, immediate, TerminalError } from 'antrail';
import { type Checksum, Checksummer, keyOf, partitionOf, RECORD_BYTES, writeRecords } from './records.ts';
import { sortInto } from './sort-into.ts';

export interface SortJob {
  readonly seed: number;
  readonly records: number;
  readonly mappers: number;
  readonly partitions: number;
}

interface Part {
  readonly job: SortJob;
  readonly from: number;
  readonly count: number;
}

/** What a reducer says about its range; its records are the object of that name in `sorted`. */
export interface RangeFact extends Checksum {
  readonly name: string;
  readonly bytes: number;
  /** Smallest and largest key, in hexadecimal; '' when the range is empty. */
  readonly first: string;
  readonly last: string;
}

export interface SortSummary {
  /** In the order of the keys. */
  readonly ranges: readonly RangeFact[];
  readonly checksum: Checksum;
  readonly shuffleBytes: number;
}

const split = fn<SortJob>((ctx, [input]) => {
  const job = input.json();
  const { records, mappers, partitions } = job;
  if (!(records >= 0 && mappers >= 1 && partitions >= 1)) {
    throw new TerminalError('give { seed, records, mappers, partitions }, of mappers and partitions at least one');
  }
  for (let i = 0; i < mappers; i++) {
    const from = Math.floor((records * i) / mappers);
    ctx.send('parts', { job, from, count: Math.floor((records * (i + 1)) / mappers) - from } satisfies Part);
  }
});

const map = fn<Part>((ctx, [input]) => {
  const { job, from, count } = input.json();
  const records = new Uint8Array(count * RECORD_BYTES);
  writeRecords(records, job, { from, count });
  const rangeOf = new Uint32Array(count);
  const sizes = new Uint32Array(job.partitions);
  for (let i = 0; i < count; i++) {
    const range = partitionOf(records, i, job.partitions);
    rangeOf[i] = range;
    sizes[range] = (sizes[range] as number) + 1;
  }
  // One run per range, empty ones too: every range has its reducer.
  const runs = Array.from(sizes, (size) => ctx.createObject('runs', size * RECORD_BYTES));
  const bytes = runs.map((run) => run.bytes);
  const filled = new Uint32Array(job.partitions);
  for (let i = 0; i < count; i++) {
    const range = rangeOf[i] as number;
    const at = filled[range] as number;
    filled[range] = at + RECORD_BYTES;
    bytes[range]?.set(records.subarray(i * RECORD_BYTES, (i + 1) * RECORD_BYTES), at);
  }
  for (const [range, run] of runs.entries()) ctx.sendObject(run, { group: nameOf(range) });
});

const reduce = fn<Uint8Array>((ctx, runs: readonly EpheObject[]) => {
  const name = runs[0]?.group ?? '';
  const size = runs.reduce((sum, run) => sum + run.size, 0);
  const sorted = ctx.createObject('sorted', name, size);
  sortInto(
    sorted.bytes,
    runs.map((run) => run.bytes),
  );
  const checksum = new Checksummer();
  checksum.add(sorted.bytes);
  const count = size / RECORD_BYTES;
  const [first, last] = count === 0 ? ['', ''] : [keyOf(sorted.bytes, 0), keyOf(sorted.bytes, count - 1)];
  ctx.sendObject(sorted);
  ctx.send('facts', { name, bytes: size, first, last, ...checksum.get() } satisfies RangeFact);
});

const finish = fn<RangeFact>((ctx, facts) => {
  const ranges = facts.map((fact) => fact.json<RangeFact>()).sort((a, b) => (a.name < b.name ? -1 : 1));
  const checksum = new Checksummer();
  for (const range of ranges) checksum.addSum(range);
  const shuffleBytes = ranges.reduce((sum, { bytes }) => sum + bytes, 0);
  ctx.output({ ranges, checksum: checksum.get(), shuffleBytes } satisfies SortSummary);
});

export default app('sort', {
  entry: 'split',
  functions: { split, map, reduce, finish },
  buckets: {
    jobs: bucket({ on: { each: immediate({ run: 'split' }) } }),
    parts: bucket({ on: { each: immediate({ run: 'map' }) } }),
    runs: bucket({ on: { byRange: dynamicGroup({ producers: ['map'], run: 'reduce' }) } }),
    sorted: bucket({}),
    facts: bucket({ on: { all: dynamicGroup({ producers: ['reduce'], run: 'finish' }) } }),
  },
});

/** Names in the order of the ranges. */
function nameOf(range: number): string {
  return `range-${String(range).padStart(5, '0')}`;
}
