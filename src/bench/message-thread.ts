// Entry of a thread that measures bare messages: the least that a hop between threads can cost.
//
// Two of them share a port. The `asker` measures, the `answerer` sends back what it gets, or when it got it.

import { setTimeout } from 'node:timers/promises';
import { isMainThread, type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { assert } from '../base/index.ts';
import { nowUs } from './now.ts';

export interface MessageThreadBoot {
  readonly role: 'asker' | 'answerer';
  /** To the other one. */
  readonly port: MessagePort;
}

/** To the asker; it answers with one Float64Array of microseconds. */
export interface MessageOrder {
  /** `round-trips`: there and back, one after the other. `gaps`: one way, each GAP_MS after the one before. */
  readonly measure: 'round-trips' | 'gaps';
  readonly count: number;
}

/** Between two messages with gaps: long enough for an idle core to halt. */
export const GAP_MS = 1;

/** The answerer's reply to this is when it got it; to anything else the same again. */
const WHEN = 'when';

function ask(port: MessagePort, orders: MessagePort): void {
  let answer: (value: unknown) => void = () => undefined;
  port.on('message', (value: unknown) => answer(value));
  orders.on('message', async ({ measure, count }: MessageOrder) => {
    orders.postMessage(await (measure === 'round-trips' ? roundTrips(count) : gaps(count)));
  });

  function roundTrips(count: number): Promise<Float64Array> {
    return new Promise((done) => {
      const samples = new Float64Array(count);
      let at = 0;
      let sentUs = 0;
      answer = () => {
        samples[at++] = nowUs() - sentUs;
        if (at === count) return done(samples);
        sentUs = nowUs();
        port.postMessage(at);
      };
      sentUs = nowUs();
      port.postMessage(at);
    });
  }

  async function gaps(count: number): Promise<Float64Array> {
    const samples = new Float64Array(count);
    for (let at = 0; at < count; at++) {
      await setTimeout(GAP_MS);
      const got = new Promise<unknown>((resolve) => {
        answer = resolve;
      });
      const sentUs = nowUs();
      port.postMessage(WHEN);
      samples[at] = ((await got) as number) - sentUs;
    }
    return samples;
  }
}

// Importing its types starts nothing; as a program it needs somebody to ask.
if (!isMainThread && parentPort !== null && (workerData as { role?: unknown } | null)?.role !== undefined) {
  const { role, port } = workerData as MessageThreadBoot;
  if (role === 'asker') ask(port, parentPort as unknown as MessagePort);
  else port.on('message', (value: unknown) => port.postMessage(value === WHEN ? nowUs() : value));
} else assert(isMainThread, 'a thread of the benchmarks has a role');
