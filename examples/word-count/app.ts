// How often each word occurs in a text: MapReduce with two dynamicGroup triggers.
//
//   split ── chunks ──▶ map × CHUNKS ── pairs, grouped by partition ──▶ reduce × PARTITIONS ── tables ──▶ collect
//          immediate                  when every map has ended                             when every reduce has
//
// `collect` makes the session's only output, so a synchronous caller gets the whole table.
//
//   antrail invoke word-count @moby-dick.txt

import { app, bucket, type Ctx, dynamicGroup, type EpheObject, fn, immediate } from 'antrail';
import { chunksOf, countInto, partitionOf, ranked, wordsOf } from './words.ts';

export const CHUNKS = 12;
export const PARTITIONS = 6;

type Pairs = readonly (readonly [word: string, count: number])[];

export interface WordCounts {
  readonly total: number;
  readonly distinct: number;
  /** Most frequent first, equal counts by word. */
  readonly counts: Pairs;
}

/** @throws TypeError when the input is JSON, but no string. */
export function splitText(ctx: Pick<Ctx, 'send'>, text: EpheObject<string | Uint8Array> | undefined): void {
  // Parts of an object's bytes are sent without a copy: every mapper reads in the memory of the input.
  for (const chunk of chunksOf(bytesOf(text), CHUNKS)) ctx.send('chunks', chunk);
}

/** One object per partition, empty ones too: a text without words has a result like any other. */
export function mapChunk(ctx: Pick<Ctx, 'send'>, chunk: EpheObject): void {
  const partitions = Array.from({ length: PARTITIONS }, () => new Map<string, number>());
  for (const word of wordsOf(chunk.text())) {
    const counts = partitions[partitionOf(word, PARTITIONS)] as Map<string, number>;
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  // Without a name an object is called after invocation and step: a second attempt sends the same, which is dropped.
  for (const [index, counts] of partitions.entries()) ctx.send('pairs', [...counts], { group: String(index) });
}

/** Gets all objects of one partition. */
export function reducePartition(ctx: Pick<Ctx, 'send'>, pairs: readonly EpheObject<Pairs>[]): void {
  const counts = new Map<string, number>();
  for (const object of pairs) countInto(counts, object.json());
  ctx.send('tables', [...counts]);
}

export function collectTables(ctx: Pick<Ctx, 'output'>, tables: readonly EpheObject<Pairs>[]): void {
  // No word is in two partitions.
  const counts = ranked(tables.flatMap((table) => table.json()));
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  ctx.output({ total, distinct: counts.length, counts } satisfies WordCounts);
}

export const buckets = {
  chunks: bucket({ on: { each: immediate({ run: 'map' }) } }),
  pairs: bucket({ on: { byPartition: dynamicGroup({ producers: ['map'], run: 'reduce' }) } }),
  tables: bucket({ on: { all: dynamicGroup({ producers: ['reduce'], run: 'collect' }) } }),
};

export default app('word-count', {
  entry: 'split',
  functions: {
    split: fn<string | Uint8Array>((ctx, [text]) => splitText(ctx, text)),
    map: fn((ctx, [chunk]) => mapChunk(ctx, chunk)),
    reduce: fn<Pairs>((ctx, pairs) => reducePartition(ctx, pairs)),
    collect: fn<Pairs>((ctx, tables) => collectTables(ctx, tables)),
  },
  buckets,
});

function bytesOf(text: EpheObject<string | Uint8Array> | undefined): Uint8Array {
  if (text === undefined) return new Uint8Array(0);
  if (text.contentType !== 'application/json') return text.bytes;
  const value: unknown = text.json();
  if (typeof value !== 'string') throw new TypeError('give the text as bytes or as a JSON string');
  return new TextEncoder().encode(value);
}
