// What a word is, and how a text is cut so that none is cut in two.

/** Lower-cased runs of letters, apostrophes inside them included: `Ahab's` is one word, `whale-ship` two. */
export function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/\p{L}+(?:['’]\p{L}+)*/gu) ?? [];
}

export function countInto(counts: Map<string, number>, pairs: Iterable<readonly [word: string, count: number]>): void {
  for (const [word, count] of pairs) counts.set(word, (counts.get(word) ?? 0) + count);
}

/** Most frequent first, equal counts by word: the same counts give the same list. */
export function ranked(counts: Iterable<readonly [string, number]>): [word: string, count: number][] {
  return Array.from(counts, ([word, count]): [string, number] => [word, count]).sort(
    ([wordA, a], [wordB, b]) => b - a || (wordA < wordB ? -1 : 1),
  );
}

/**
 * At most `count` views of `bytes`, about equally long, that together are all of it; one empty view if there are no bytes.
 * Cuts lie at ASCII white space, which is no part of a longer UTF-8 sequence.
 */
export function* chunksOf(bytes: Uint8Array, count: number): Generator<Uint8Array> {
  if (bytes.length === 0) yield bytes;
  let from = 0;
  for (let i = 1; i <= count && from < bytes.length; i++) {
    let to = Math.max(from, Math.floor((bytes.length * i) / count));
    while (to < bytes.length && (bytes[to] as number) > 0x20) to++;
    if (to > from) yield bytes.subarray(from, to);
    from = to;
  }
}

/** FNV-1a over UTF-16 units, below `partitions`. */
export function partitionOf(word: string, partitions: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % partitions;
}
