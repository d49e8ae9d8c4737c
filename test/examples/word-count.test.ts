// Goal: the distributed count equals one made in a single thread, whatever else runs or fails. Method: the text of
// Moby-Dick through a real server; the expected tables are counted here, by other means than the app's.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'antrail/client';
import { type ExampleServer, openServer } from '../../examples/server.ts';
import { CHUNKS, PARTITIONS, type WordCounts } from '../../examples/word-count/app.ts';
import { chaptersOfMobyDick, textOfMobyDick } from '../../examples/word-count/moby-dick.ts';
import { chunksOf } from '../../examples/word-count/words.ts';

type WordCountApp = typeof import('../../examples/word-count/app.ts').default;

const text = textOfMobyDick();
const part = text.slice(0, 200_000);

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/word-count/app.ts');
  await server.deploy('test/examples/fixtures/flaky-word-count.ts');
});
after(() => server?.close());

const countWords = (input?: string | Uint8Array) =>
  connect<WordCountApp>({ app: 'word-count', url: server.url }).invoke<WordCounts>('split', input);

describe('word count', () => {
  test('of the whole text equals a count in one thread', async () => {
    const counted = await countWords(Buffer.from(text));
    assert.deepEqual(counted, expected(text));
    assert.ok(counted.total > 200_000, `${counted.total} words`);
  });

  test('is the same every time, as bytes and as a JSON string', async () => {
    const bytes = Buffer.from(part);
    const results = [await countWords(bytes), await countWords(bytes), await countWords(part)];
    const [first, ...others] = results.map((result) => JSON.stringify(result));
    for (const other of others) assert.equal(other, first);
  });

  test('of two texts at once does not mix them', async () => {
    const chapters = chaptersOfMobyDick().map((chapter) => chapter.text);
    const even = chapters.filter((_, i) => i % 2 === 0).join('\n');
    const odd = chapters.filter((_, i) => i % 2 === 1).join('\n');
    const results = await Promise.all([even, odd].map((one) => countWords(Buffer.from(one))));
    assert.deepEqual(results, [expected(even), expected(odd)]);
  });

  test('is right when every mapper fails once in the middle of its sends', async () => {
    const flaky = connect({ app: 'flaky-word-count', url: server.url });
    const handle = await flaky.start<WordCounts>('split', Buffer.from(part));
    assert.deepEqual(await handle.result(), expected(part));
    const { counts } = await handle.info();
    assert.equal(counts.invocations, 1 + CHUNKS + PARTITIONS + 1);
    assert.equal(counts.attempts, counts.invocations + CHUNKS, 'one attempt more per mapper');
    const { invocations } = await handle.trace();
    for (const { attempts } of invocations.filter((one) => one.function === 'map')) {
      assert.deepEqual(
        attempts.map(({ outcome }) => outcome),
        ['error', 'ok'],
      );
    }
  });

  test('of texts without words, and of less words than chunks', async () => {
    const nothing: WordCounts = { total: 0, distinct: 0, counts: [] };
    assert.deepEqual(await countWords(), nothing);
    assert.deepEqual(await countWords(Buffer.from(' 1 — 2\n\n')), nothing);
    assert.deepEqual(await countWords('To be, or not to be: __proto__ isn’t'), {
      total: 8,
      distinct: 6,
      counts: [
        ['be', 2],
        ['to', 2],
        ['isn’t', 1],
        ['not', 1],
        ['or', 1],
        ['proto', 1],
      ],
    });
  });

  test('refuses what is no text', async () => {
    await assert.rejects(countWords(5 as never), { code: 'E_FUNCTION_FAILED', message: /bytes or as a JSON string/ });
  });
});

test('chunks are all of the text, and no word is in two', () => {
  const bytes = Buffer.from(`${'ä'.repeat(300)} ${'whale ship\n'.repeat(50)}${'é'.repeat(9)}`);
  for (const count of [1, 2, 3, 12, 1_000]) {
    const chunks = [...chunksOf(bytes, count)];
    assert.ok(chunks.length <= count);
    assert.deepEqual(Buffer.concat(chunks), bytes);
    for (const chunk of chunks) assert.equal(chunk.buffer, bytes.buffer, 'a view');
    const words = chunks.flatMap((chunk) => Buffer.from(chunk).toString().split(/\s+/)).filter((word) => word !== '');
    assert.deepEqual(words, bytes.toString().split(/\s+/));
  }
});

/** By splitting at what is no letter, not by matching words. */
function expected(source: string): WordCounts {
  const counts: Record<string, number> = Object.create(null);
  let total = 0;
  for (const part of source.toLowerCase().split(/[^\p{L}'’]+/u)) {
    const stripped = part.replace(/^['’]+|['’]+$/g, '');
    for (const word of stripped.split(/['’]{2,}/)) {
      if (word === '') continue;
      counts[word] = (counts[word] ?? 0) + 1;
      total++;
    }
  }
  const pairs = Object.entries(counts).sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return { total, distinct: pairs.length, counts: pairs };
}
