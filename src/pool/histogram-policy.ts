// The hybrid policy of Serverless in the Wild (ATC 2020), as a rival to measure against: a histogram of idle times per
// function in bins of a minute; start ahead of its head, keep until its tail; a plain keep-alive while it says too little.

import type { WarmPolicy, Wish } from './warm-policy.ts';

const MINUTE_MS = 60_000;
const HEAD_SHARE = 0.05;
const MARGIN = 0.1;
/** Below this the counts of the bins differ too little to tell anything. */
const CV_MIN = 2;
const GAPS_MIN = 5;

export interface HybridOptions {
  /** Longest idle time of the histogram, and the plain keep-alive, minutes. */
  readonly rangeMinutes: number;
  /** Share of the idle times that are covered, e.g. 0.99. */
  readonly tailShare: number;
}

export function hybrid({ rangeMinutes, tailShare }: HybridOptions): WarmPolicy {
  const bins = new Float64Array(rangeMinutes);
  let inside = 0;
  let outside = 0;
  let headMs = 0;
  let tailMs = rangeMinutes * MINUTE_MS;

  const replan = () => {
    headMs = 0;
    tailMs = rangeMinutes * MINUTE_MS;
    const total = inside + outside;
    if (total < GAPS_MIN || outside > inside || variation(bins, inside) < CV_MIN) return;
    headMs = percentile(bins, inside, HEAD_SHARE) * MINUTE_MS * (1 - MARGIN);
    tailMs = Math.min(rangeMinutes, percentile(bins, inside, tailShare) + 1) * MINUTE_MS * (1 + MARGIN);
    // A head in the first minute leaves nothing to gain from going.
    if (headMs < MINUTE_MS) headMs = 0;
  };

  return {
    rose(level, gapMs) {
      if (level !== 1 || gapMs === undefined) return;
      const bin = Math.floor(gapMs / MINUTE_MS);
      if (bin < rangeMinutes) {
        bins[bin] = (bins[bin] ?? 0) + 1;
        inside++;
      } else outside++;
      replan();
    },
    wish(_, ageMs): Wish {
      if (ageMs < headMs)
        return { wanted: false, ahead: false, untilAgeMs: headMs, why: 'before the head of its idle times' };
      if (ageMs < tailMs)
        return { wanted: true, ahead: headMs > 0, untilAgeMs: tailMs, why: 'between head and tail of its idle times' };
      return {
        wanted: false,
        ahead: false,
        untilAgeMs: Number.POSITIVE_INFINITY,
        why: 'past the tail of its idle times',
      };
    },
    bodyTook() {},
    startTook() {},
  };
}

function percentile(bins: Float64Array, total: number, share: number): number {
  let sum = 0;
  for (let bin = 0; bin < bins.length; bin++) {
    sum += bins[bin] ?? 0;
    if (sum >= share * total) return bin;
  }
  return bins.length - 1;
}

function variation(bins: Float64Array, total: number): number {
  const mean = total / bins.length;
  let squares = 0;
  for (const count of bins) squares += (count - mean) ** 2;
  return mean === 0 ? 0 : Math.sqrt(squares / bins.length) / mean;
}
