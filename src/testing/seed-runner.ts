// Runs seeds on threads of their own: a simulation owns its thread, errors that nobody caught included.

import { Worker } from 'node:worker_threads';
import type { SimulationOptions, SimulationResult } from './simulate.ts';

export class SeedRunner {
  readonly #workers: readonly Worker[];

  constructor(threads: number) {
    this.#workers = Array.from({ length: threads }, () => new Worker(new URL('./seed-thread.js', import.meta.url)));
  }

  /** Results come as they are done, in no order. */
  async run(simulations: Iterable<SimulationOptions>, onResult: (result: SimulationResult) => void): Promise<void> {
    const next = simulations[Symbol.iterator]();
    await Promise.all(this.#workers.map((worker) => work(worker, next, onResult)));
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

async function work(
  worker: Worker,
  next: Iterator<SimulationOptions>,
  onResult: (result: SimulationResult) => void,
): Promise<void> {
  for (;;) {
    const { done, value } = next.next();
    if (done === true) return;
    onResult(
      await new Promise<SimulationResult>((resolve, reject) => {
        worker.once('error', reject);
        worker.once('message', (result: SimulationResult) => {
          worker.off('error', reject);
          resolve(result);
        });
        worker.postMessage(value);
      }),
    );
  }
}
