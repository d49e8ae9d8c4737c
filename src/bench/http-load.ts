// The loading client, in a thread of its own: it must wait neither for who orders it nor for who evaluates.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Closers } from './closers.ts';
import type { HttpLoadBoot, HttpLoadOrder, HttpLoadResult } from './http-load-thread.ts';

export class HttpLoad {
  readonly #worker: Worker;

  constructor(closers: Closers) {
    const boot: HttpLoadBoot = { role: 'http-load' };
    this.#worker = new Worker(new URL('./http-load-thread.js', import.meta.url), { workerData: boot });
    closers.add(async () => void (await this.#worker.terminate()));
  }

  /** One order at a time. @throws what the first failing request failed with. */
  async run(order: HttpLoadOrder): Promise<HttpLoadResult> {
    this.#worker.postMessage(order);
    const [answer] = (await once(this.#worker, 'message')) as [{ result?: HttpLoadResult; error?: unknown }];
    if (answer.result === undefined) throw answer.error;
    return answer.result;
  }
}
