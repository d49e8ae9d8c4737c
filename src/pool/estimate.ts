import { CAUTION_SD, ESTIMATE_WEIGHT_MIN } from './limits.ts';

/** Mean and variance of what is measured one by one; the newest samples count most. Pure data plus arithmetic. */
export class Estimate {
  count = 0;
  mean = 0;
  #variance = 0;

  add(sample: number): void {
    this.count++;
    const weight = Math.max(ESTIMATE_WEIGHT_MIN, 1 / this.count);
    const apart = sample - this.mean;
    this.mean += weight * apart;
    this.#variance = (1 - weight) * (this.#variance + weight * apart * apart);
  }

  get deviation(): number {
    return Math.sqrt(this.#variance);
  }

  /** What it takes if it goes badly, but not at the worst; `unknown` while nothing was measured. */
  cautious(unknown: number): number {
    return this.count === 0 ? unknown : this.mean + CAUTION_SD * this.deviation;
  }
}
