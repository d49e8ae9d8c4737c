// Entry of the thread that loads an HTTP server: a fixed request over some connections, each one asking again as soon as it
// is answered.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { assert } from '../base/index.ts';
import { type Address, HttpConnection, requestBytes } from './http-connection.ts';
import { nowUs } from './now.ts';

/** `workerData`: tells a thread of ours from somebody who only imports the types. */
export interface HttpLoadBoot {
  readonly role: 'http-load';
}

export interface HttpLoadOrder {
  readonly address: Address;
  readonly path: string;
  readonly body: string;
  readonly connections: number;
  /** Ends after this many answers or this long, whichever comes first. */
  readonly answersMax: number;
  readonly durationMs: number;
  /** Every answer must be the request's body. */
  readonly echo: boolean;
}

export interface HttpLoadResult {
  /** Microseconds of each request, in the order of the answers. */
  readonly latenciesUs: Float64Array;
  /** From the first request to the last answer. */
  readonly tookUs: number;
}

/** Connections stay open between orders: a server is measured as a client that stays finds it. */
const kept = new Map<string, HttpConnection[]>();

async function load(order: HttpLoadOrder): Promise<HttpLoadResult> {
  const { address, body } = order;
  const key = `${address.host}:${address.port}`;
  const connections = kept.get(key) ?? [];
  kept.set(key, connections);
  while (connections.length < order.connections) connections.push(await HttpConnection.open(address));
  const request = requestBytes(address, order.path, body);
  const expected = Buffer.from(body);
  const latenciesUs: number[] = [];
  const startedUs = nowUs();
  const endUs = startedUs + order.durationMs * 1_000;
  let lastUs = startedUs;
  let begun = 0;
  await Promise.all(
    connections.slice(0, order.connections).map(
      (connection) =>
        new Promise<void>((done, fail) => {
          const ask = () => {
            const sentUs = nowUs();
            if (begun >= order.answersMax || sentUs >= endUs) return done();
            begun++;
            connection.send(
              request,
              (answer) => {
                lastUs = nowUs();
                latenciesUs.push(lastUs - sentUs);
                if (order.echo && !answer.equals(expected)) fail(new Error(`not an echo: ${answer}`));
                else ask();
              },
              fail,
            );
          };
          ask();
        }),
    ),
  );
  return { latenciesUs: Float64Array.from(latenciesUs), tookUs: lastUs - startedUs };
}

if (!isMainThread && parentPort !== null && (workerData as HttpLoadBoot | null)?.role === 'http-load') {
  const port = parentPort;
  port.on('message', async (order: HttpLoadOrder) => {
    try {
      port.postMessage({ result: await load(order) });
    } catch (error) {
      port.postMessage({ error });
    }
  });
} else assert(isMainThread, 'a thread of the benchmarks has a role');
