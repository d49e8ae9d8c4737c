import { HOP_SAMPLES_MAX } from './limits.ts';

/** Latest samples of one quantity, ms. */
export class HopSamples {
  readonly #values = new Float64Array(HOP_SAMPLES_MAX);
  #count = 0;

  add(ms: number): void {
    this.#values[this.#count++ % HOP_SAMPLES_MAX] = ms;
  }

  /** Of all samples ever. */
  get count(): number {
    return this.#count;
  }

  percentile(share: number): number {
    const kept = this.#values.slice(0, Math.min(this.#count, HOP_SAMPLES_MAX)).sort();
    return kept[Math.min(kept.length - 1, Math.floor(kept.length * share))] ?? 0;
  }
}
