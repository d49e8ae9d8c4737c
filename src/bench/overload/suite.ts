// Suite `overload`: three times as much as the server can do, for ten seconds. Does it finish what it accepted, refuse the
// rest at once, and go on doing as much as before?

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { PlatformError } from '../../base/index.ts';
import { BenchServer } from '../bench-server.ts';
import { Closers } from '../closers.ts';
import { HttpLoad } from '../http-load.ts';
import type { OpenLoadBoot, OpenLoadOrder, OpenLoadResult } from '../open-load-thread.ts';
import { cpuMeter, MemoryWatch, processesOf } from '../processes.ts';
import { hostInfo, type Metric, type Report, type SuiteOptions, type Target } from '../report.ts';
import { Samples } from '../samples.ts';
import { CHAIN } from './app.ts';

export const OVERLOAD_TARGETS: Readonly<Record<string, Target>> = {
  'accepted-finished': { of: 'value', atLeast: 1 },
  'refusal-p99-ms': { of: 'value', atMost: 10 },
  'throughput-vs-peak': { of: 'ratio', atLeast: 0.9 },
};

const TIMES_CAPACITY = 3;
const CONNECTIONS = 64;
/** A hundredth of the default, so that the queue is full within a second or two on a slow machine too. */
const QUEUE_MAX = 100;
/** More than the queue, what runs and what is being refused: what is accepted holds a connection until it is answered. */
const CONNECTIONS_MAX = 4_000;
const US_PER_S = 1_000_000;
const MIB = 1_048_576;

export async function overload({ quick, signal }: SuiteOptions): Promise<Report> {
  const startedAt = new Date().toISOString();
  const closers = new Closers();
  try {
    signal.throwIfAborted();
    const config = { queueMax: QUEUE_MAX };
    const server = await BenchServer.start(new URL('./app.js', import.meta.url), closers, { config });
    const { server: pid, hosts } = await processesOf(server.url);
    const load = new HttpLoad(closers);
    const request = { address: server.address, path: server.pathOf('step'), body: String(CHAIN) };
    const closed = async (durationMs: number) => {
      const { latenciesUs, tookUs } = await load.run({
        ...request,
        connections: CONNECTIONS,
        answersMax: Number.MAX_SAFE_INTEGER,
        durationMs,
        echo: true,
      });
      return (latenciesUs.length / tookUs) * US_PER_S;
    };
    await closed(quick ? 500 : 5_000);
    signal.throwIfAborted();
    const capacity = Math.max(await closed(quick ? 500 : 5_000), await closed(quick ? 500 : 5_000));
    signal.throwIfAborted();

    const memory = new MemoryWatch([pid, ...hosts]);
    closers.add(async () => memory.stop());
    const usedPercent = cpuMeter([process.pid]);
    const serverPercent = cpuMeter([pid]);
    const hostPercent = cpuMeter(hosts);
    const before = memory.take();
    const result = await openLoad(closers, {
      ...request,
      expected: String(CHAIN),
      perSecond: TIMES_CAPACITY * capacity,
      durationMs: quick ? 1_000 : 10_000,
      connectionsMax: CONNECTIONS_MAX,
    });
    const cpu = { generator: usedPercent(), server: serverPercent(), hosts: hostPercent() };
    const peaks = memory.take().map((samples) => Math.max(...samples) / MIB);
    return {
      suite: 'overload',
      host: hostInfo(),
      startedAt,
      metrics: metricsOf(capacity, result, {
        cpu,
        peaks,
        before: before.map((samples) => Math.max(...samples) / MIB),
      }),
    };
  } finally {
    await closers.close();
  }
}

function metricsOf(
  capacity: number,
  result: OpenLoadResult,
  machine: {
    readonly cpu: Readonly<Record<string, number>>;
    readonly peaks: readonly number[];
    readonly before: readonly number[];
  },
): Metric[] {
  const accepted = result.sent - result.refusalsUs.length;
  const throughput = (result.resultsInTime / result.sentForUs) * US_PER_S;
  const ms = (values: Float64Array) => {
    const samples = new Samples();
    samples.addAll(values.length === 0 ? [0] : values.map((us) => us / 1_000));
    return samples;
  };
  const refusals = ms(result.refusalsUs);
  const lags = new Samples();
  lags.addAll(result.lagsMs);
  const [serverBefore = 0, hostBefore = 0] = machine.before;
  const [serverPeak = 0, hostPeak = 0] = machine.peaks;
  return [
    { name: 'capacity', value: capacity, unit: 'sessions/s' },
    { name: 'offered', value: (result.sent / result.sentForUs) * US_PER_S, unit: 'sessions/s' },
    { name: 'accepted', value: accepted, unit: 'sessions' },
    { name: 'refused', value: result.refusalsUs.length, unit: 'sessions' },
    { name: 'accepted-finished', value: accepted === 0 ? 0 : result.resultsUs.length / accepted, unit: 'of 1' },
    { name: 'refusal-ms', value: refusals.median, unit: 'ms', p99: refusals.percentile(0.99) },
    { name: 'refusal-p99-ms', value: refusals.percentile(0.99), unit: 'ms' },
    {
      name: 'throughput-vs-peak',
      value: throughput,
      unit: 'sessions/s',
      baseline: capacity,
      ratio: throughput / capacity,
    },
    {
      name: 'accepted-wait-ms',
      value: ms(result.resultsUs).median,
      unit: 'ms',
      p99: ms(result.resultsUs).percentile(0.99),
    },
    { name: 'server-memory-before', value: serverBefore, unit: 'MiB' },
    { name: 'server-memory-peak', value: serverPeak, unit: 'MiB' },
    { name: 'host-memory-before', value: hostBefore, unit: 'MiB' },
    { name: 'host-memory-peak', value: hostPeak, unit: 'MiB' },
    { name: 'generator-lag', value: lags.median, unit: 'ms', p99: lags.percentile(0.99) },
    ...Object.entries(machine.cpu).map(([who, value]) => ({ name: `${who}-cpu-percent`, value, unit: '% of a core' })),
  ];
}

async function openLoad(closers: Closers, order: OpenLoadOrder): Promise<OpenLoadResult> {
  const boot: OpenLoadBoot = { role: 'open-load' };
  const worker = new Worker(new URL('../open-load-thread.js', import.meta.url), { workerData: boot });
  closers.add(async () => void (await worker.terminate()));
  worker.postMessage(order);
  const [answer] = (await once(worker, 'message')) as [{ result?: OpenLoadResult; error?: unknown }];
  if (answer.result === undefined) throw answer.error;
  const [[what, count] = []] = Object.entries(answer.result.failures);
  if (what !== undefined) {
    throw new PlatformError('E_INTERNAL', `${count} requests were neither answered nor refused, such as: ${what}`);
  }
  return answer.result;
}
