// Guarantee: events and lines are the same however the network cuts their bytes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readEvents, readLines } from './event-stream.ts';

const streamOf = (chunks: readonly Uint8Array[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });

function cut(text: string, places: readonly number[]): Uint8Array[] {
  const bytes = new TextEncoder().encode(text);
  const at = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return at.slice(1).map((end, i) => bytes.slice(at[i], end));
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test('an event stream gives its events wherever it is cut', async () => {
  const text =
    ': hello\n\nid: 1\nevent: output\ndata: {"a":"ä€"}\n\nid:2\r\nevent:output\r\ndata:x\r\ndata: y\r\n\r\n' +
    'retry: 5\n\ndata: plain\n\nevent: end\ndata: {}\n\nid: 9\ndata: unfinished';
  const expected = [
    { event: 'output', data: '{"a":"ä€"}', id: '1' },
    { event: 'output', data: 'x\ny', id: '2' },
    { event: 'message', data: 'plain', id: '2' },
    { event: 'end', data: '{}', id: '2' },
  ];
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(1_000), { maxLength: 12 }), async (places) => {
      assert.deepEqual(await collect(readEvents(streamOf(cut(text, places)))), expected);
    }),
  );
});

test('lines come without their ends, the last one too', async () => {
  const lines = await collect(readLines(streamOf(cut('a\r\nb\n\nc', [1, 2, 3]))));
  assert.deepEqual(lines, ['a', 'b', '', 'c']);
});

test('stopping early cancels the source', async () => {
  let cancelled = false;
  const endless = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(new TextEncoder().encode('line\n')),
    cancel: () => {
      cancelled = true;
    },
  });
  for await (const _ of readLines(endless)) break;
  assert.equal(cancelled, true);
});
