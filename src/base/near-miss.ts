const CANDIDATES_MAX = 1_000;
const NAME_CHARS_MAX = 128;

/**
 * The known name that was probably meant, for `didYouMean`.
 * @returns undefined when nothing is near: more than a third of the letters differ.
 */
export function nearMiss(name: string, known: Iterable<string>): string | undefined {
  const wanted = name.toLowerCase().slice(0, NAME_CHARS_MAX);
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(wanted.length / 3)) + 1;
  let seen = 0;
  for (const candidate of known) {
    if (++seen > CANDIDATES_MAX) break;
    const distance = editDistance(wanted, candidate.toLowerCase().slice(0, NAME_CHARS_MAX), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Levenshtein distance with swapped neighbours counted once; gives up (returns `limit`) when it cannot be below. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    beforeLast = last;
    last = row;
  }
  return Math.min(last[b.length] ?? limit, limit);
}
