// When an unused level of concurrency is worth an instance: the windows that cost least.
//
// While a gap lasts, an instance costs the time that it idles; when the gap ends it saves a cold start, which is worth
// `worthMs` of idling. So it pays to keep one through a bin exactly if the chance that the gap ends there, times the worth,
// is more than the bin's length; and one that was given up can be started again ahead of a likely end, at the cost of a
// start. The best windows follow backwards over the bins.

import { GAP_BOUNDS_MS } from './idle-gaps.ts';
import { GAP_BINS } from './limits.ts';

/** Ages of a gap, ms, in which an instance is wanted; ascending and apart. */
export type KeepPlan = readonly KeepWindow[];

export interface KeepWindow {
  readonly fromMs: number;
  readonly toMs: number;
  /** Worth a start of its own when there is no instance. */
  readonly ahead: boolean;
}

export function planOf(hazards: Float64Array, worthMs: number, startCostMs: number): KeepPlan {
  const keepInWarm = new Uint8Array(GAP_BINS);
  const keepInCold = new Uint8Array(GAP_BINS);
  let warmLater = 0;
  let coldLater = 0;
  for (let bin = GAP_BINS - 1; bin >= 0; bin--) {
    const hazard = hazards[bin] ?? 0;
    const widthMs = widthOf(bin);
    const keep = hazard * worthMs - widthMs * (1 - hazard / 2) + (1 - hazard) * warmLater;
    const drop = (1 - hazard) * coldLater;
    // The last bin has no end.
    const last = bin === GAP_BINS - 1;
    keepInWarm[bin] = !last && keep > drop ? 1 : 0;
    keepInCold[bin] = !last && keep - startCostMs > drop ? 1 : 0;
    warmLater = keepInWarm[bin] === 1 ? keep : drop;
    coldLater = keepInCold[bin] === 1 ? keep - startCostMs : drop;
  }
  const windows: { fromMs: number; toMs: number; ahead: boolean }[] = [];
  let warm = true;
  for (let bin = 0; bin < GAP_BINS; bin++) {
    const keep: boolean = (warm ? keepInWarm : keepInCold)[bin] === 1;
    const fromMs = bin === 0 ? 0 : (GAP_BOUNDS_MS[bin - 1] as number);
    if (keep) {
      const before = windows.at(-1);
      if (warm && before !== undefined) before.toMs = GAP_BOUNDS_MS[bin] as number;
      else windows.push({ fromMs, toMs: GAP_BOUNDS_MS[bin] as number, ahead: !warm });
    }
    warm = keep;
  }
  return windows;
}

function widthOf(bin: number): number {
  return (GAP_BOUNDS_MS[bin] as number) - (bin === 0 ? 0 : (GAP_BOUNDS_MS[bin - 1] as number));
}
