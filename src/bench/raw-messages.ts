// Two bare threads with a port between them: R and its kin.

import { once } from 'node:events';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { Closers } from './closers.ts';
import type { MessageOrder, MessageThreadBoot } from './message-thread.ts';

export class RawMessages {
  readonly #asker: Worker;

  constructor(closers: Closers) {
    const { port1, port2 } = new MessageChannel();
    this.#asker = start({ role: 'asker', port: port1 }, closers);
    start({ role: 'answerer', port: port2 }, closers);
  }

  /** Microseconds there and back. */
  roundTrips(count: number): Promise<Float64Array> {
    return this.#order({ measure: 'round-trips', count });
  }

  /** Microseconds one way, each message after a pause in which both threads slept. */
  gaps(count: number): Promise<Float64Array> {
    return this.#order({ measure: 'gaps', count });
  }

  async #order(order: MessageOrder): Promise<Float64Array> {
    this.#asker.postMessage(order);
    const [samples] = (await once(this.#asker, 'message')) as [Float64Array];
    return samples;
  }
}

function start(boot: MessageThreadBoot, closers: Closers): Worker {
  const worker = new Worker(new URL('./message-thread.js', import.meta.url), {
    workerData: boot,
    transferList: [boot.port],
  });
  closers.add(async () => void (await worker.terminate()));
  return worker;
}
