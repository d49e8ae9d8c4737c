// Samples of one quantity, gathered over all rounds of a run.

import { assert } from '../base/index.ts';

export class Samples {
  readonly #values: number[] = [];
  #sorted = true;

  add(value: number): void {
    assert(Number.isFinite(value), 'a sample is a finite number');
    this.#values.push(value);
    this.#sorted = false;
  }

  addAll(values: Iterable<number>): void {
    for (const value of values) this.add(value);
  }

  get count(): number {
    return this.#values.length;
  }

  get median(): number {
    return this.percentile(0.5);
  }

  /** Nearest rank; there is at least one sample. */
  percentile(share: number): number {
    assert(this.#values.length > 0, 'a percentile is of something');
    if (!this.#sorted) this.#values.sort((a, b) => a - b);
    this.#sorted = true;
    return this.#values[Math.max(0, Math.ceil(this.#values.length * share) - 1)] as number;
  }
}
