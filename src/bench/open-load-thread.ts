// Entry of the thread that sends at a fixed pace, whether or not earlier requests were answered: what happens to a server
// whose clients do not wait for each other.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { assert } from '../base/index.ts';
import { type Address, HttpConnection, requestBytes } from './http-connection.ts';
import { nowUs } from './now.ts';

/** `workerData`: tells a thread of ours from somebody who only imports the types. */
export interface OpenLoadBoot {
  readonly role: 'open-load';
}

export interface OpenLoadOrder {
  readonly address: Address;
  readonly path: string;
  readonly body: string;
  /** What a session that ended well answers. */
  readonly expected: string;
  readonly perSecond: number;
  readonly durationMs: number;
  /** Requests under way at once: one more waits for a connection, and is late. */
  readonly connectionsMax: number;
}

export interface OpenLoadResult {
  readonly sent: number;
  /** Microseconds from writing a request to its refusal. */
  readonly refusalsUs: Float64Array;
  /** Microseconds from writing a request to its result. */
  readonly resultsUs: Float64Array;
  /** Of those, how many came while requests were still sent. */
  readonly resultsInTime: number;
  /** Neither refused nor the expected result: what was said, by how often. */
  readonly failures: Readonly<Record<string, number>>;
  /** Milliseconds by which requests were written later than planned. */
  readonly lagsMs: Float64Array;
  /** From the first request to the last. */
  readonly sentForUs: number;
}

const REFUSALS = new Set([429, 503]);
const FAILURE_CHARS_MAX = 200;

async function load(order: OpenLoadOrder): Promise<OpenLoadResult> {
  const { address, path, body, perSecond, durationMs } = order;
  const request = requestBytes(address, path, body);
  const expected = Buffer.from(order.expected);
  const free: HttpConnection[] = [];
  let connections = 0;
  const refusalsUs: number[] = [];
  const resultsUs: number[] = [];
  const lagsMs: number[] = [];
  const failures: Record<string, number> = {};
  const late: number[] = [];
  let resultsInTime = 0;
  let sent = 0;
  let answered = 0;
  let sending = true;
  let done = () => {};
  const failed = (what: string) => {
    const text = what.slice(0, FAILURE_CHARS_MAX);
    failures[text] = (failures[text] ?? 0) + 1;
  };
  const over = () => {
    answered++;
    if (!sending && answered === sent) done();
  };

  const write = (connection: HttpConnection, plannedUs: number) => {
    const sentUs = nowUs();
    lagsMs.push((sentUs - plannedUs) / 1_000);
    connection.sendAny(
      request,
      (answer, status) => {
        const tookUs = nowUs() - sentUs;
        if (REFUSALS.has(status)) refusalsUs.push(tookUs);
        else if (status === 200 && answer.equals(expected)) {
          resultsUs.push(tookUs);
          if (sending) resultsInTime++;
        } else failed(`${status} ${answer.toString('utf8')}`);
        over();
        const next = late.shift();
        if (next === undefined) free.push(connection);
        else write(connection, next);
      },
      (error) => {
        failed(error.message);
        connections--;
        over();
      },
    );
  };
  const send = (plannedUs: number) => {
    sent++;
    const connection = free.pop();
    if (connection !== undefined) write(connection, plannedUs);
    else if (connections >= order.connectionsMax) late.push(plannedUs);
    else {
      connections++;
      HttpConnection.open(address).then(
        (opened) => write(opened, plannedUs),
        (error: Error) => {
          failed(error.message);
          connections--;
          over();
        },
      );
    }
  };

  const startedUs = nowUs();
  const us = 1_000_000 / perSecond;
  const total = Math.round((durationMs * perSecond) / 1_000);
  await new Promise<void>((resolve) => {
    const tick = () => {
      const due = Math.min(total, Math.floor((nowUs() - startedUs) / us));
      while (sent < due) send(startedUs + sent * us);
      if (sent >= total) resolve();
      else setTimeout(tick, 1);
    };
    tick();
  });
  const sentForUs = nowUs() - startedUs;
  sending = false;
  if (answered < sent) {
    await new Promise<void>((resolve) => {
      done = resolve;
    });
  }
  for (const connection of free) connection.close();
  return {
    sent,
    refusalsUs: Float64Array.from(refusalsUs),
    resultsUs: Float64Array.from(resultsUs),
    resultsInTime,
    failures,
    lagsMs: Float64Array.from(lagsMs),
    sentForUs,
  };
}

if (!isMainThread && parentPort !== null && (workerData as OpenLoadBoot | null)?.role === 'open-load') {
  const port = parentPort;
  port.on('message', async (order: OpenLoadOrder) => {
    try {
      port.postMessage({ result: await load(order) });
    } catch (error) {
      port.postMessage({ error });
    }
  });
} else assert(isMainThread, 'a thread of the benchmarks has a role');
