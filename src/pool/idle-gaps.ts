// How long each level of concurrency stays unused before it is used again.
//
// Level k is in use while k or more invocations run. An instance that is kept for level k saves a cold start when the gap of
// level k ends; so gaps are counted by level, whether or not an instance was kept. Bins grow by a factor: what matters at
// one second is a fraction of a second, at an hour it is minutes.

import { GAP_BIN_FIRST_MS, GAP_BIN_GROWTH, GAP_BINS } from './limits.ts';

/** Upper bounds of the bins, ms; the last has none. */
export const GAP_BOUNDS_MS: readonly number[] = Array.from(
  { length: GAP_BINS },
  (_, i) => GAP_BIN_FIRST_MS * GAP_BIN_GROWTH ** i,
);

export function gapBin(gapMs: number): number {
  if (gapMs <= GAP_BIN_FIRST_MS) return 0;
  const bin = Math.ceil(Math.log(gapMs / GAP_BIN_FIRST_MS) / Math.log(GAP_BIN_GROWTH));
  return Math.min(GAP_BINS - 1, bin);
}

/** Gaps by their length. */
export class IdleGaps {
  readonly #ended = new Float64Array(GAP_BINS);
  /** Gaps that were seen, by weight. */
  total = 0;

  add(gapMs: number, weight = 1): void {
    this.total += weight;
    const bin = gapBin(gapMs);
    this.#ended[bin] = (this.#ended[bin] ?? 0) + weight;
  }

  endedIn(bin: number): number {
    return this.#ended[bin] ?? 0;
  }

  /**
   * Chance that a gap which has lasted to the beginning of a bin ends in it, by bin.
   * @param prior the same of a wider population, which counts as much as `priorGaps` gaps of this one.
   */
  hazards(prior: Float64Array | undefined, priorGaps: number): Float64Array {
    const hazards = new Float64Array(GAP_BINS);
    let lasting = this.total;
    for (let bin = 0; bin < GAP_BINS; bin++) {
      const ended = this.endedIn(bin);
      const before = prior?.[bin] ?? 0;
      const seen = lasting + priorGaps;
      hazards[bin] = seen <= 0 ? before : (ended + priorGaps * before) / seen;
      lasting -= ended;
    }
    return hazards;
  }
}
