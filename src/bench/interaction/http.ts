// An invocation over HTTP beside a bare web server that does the same: Fastify, which answers with the value it got.

import type { HttpLoadOrder } from '../http-load-thread.ts';
import { type Metric, metricOf, ratioOf } from '../report.ts';
import { type InteractionRun, inTurn } from './run.ts';

const BODY = JSON.stringify({ order: 4711, customer: 'ada', items: [{ sku: 'lamp', count: 2 }], express: true });
const CONNECTIONS = 32;
/** More answers than any turn gives. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;
const TURN_MS_MAX = 60_000;
const US_PER_S = 1_000_000;

export async function measureHttp({ server, load, peer, quick, signal }: InteractionRun): Promise<Metric[]> {
  const loopback = (port: number) => ({ host: '127.0.0.1', port });
  const targets = {
    bare: { address: loopback(peer.bare), path: '/', echo: false },
    fastify: { address: loopback(peer.fastify), path: '/', echo: true },
    ours: { address: server.address, path: server.pathOf('echo'), echo: true },
  };
  type Target = keyof typeof targets;
  const latency = (target: Target) => async () => {
    const order = { connections: 1, answersMax: quick ? 50 : 500, durationMs: TURN_MS_MAX };
    return { [`${target}-latency`]: (await load.run(orderOf(target, order))).latenciesUs };
  };
  const throughput = (target: Target) => async () => {
    const order = { connections: CONNECTIONS, answersMax: NO_LIMIT, durationMs: quick ? 200 : 1_000 };
    const { latenciesUs, tookUs } = await load.run(orderOf(target, order));
    return { [`${target}-throughput`]: [(latenciesUs.length / tookUs) * US_PER_S] };
  };
  const orderOf = (target: Target, how: Pick<HttpLoadOrder, 'connections' | 'answersMax' | 'durationMs'>) => ({
    ...targets[target],
    ...how,
    body: BODY,
  });
  const samples = await inTurn(quick ? 2 : 10, signal, [
    latency('bare'),
    latency('fastify'),
    latency('ours'),
    throughput('bare'),
    throughput('fastify'),
    throughput('ours'),
  ]);
  const rateOf = (name: string, target: Target) => ({
    name,
    value: samples(`${target}-throughput`).median,
    unit: 'requests/s',
  });
  const peerRate = rateOf('fastify-echo-throughput', 'fastify');
  const ourRate = rateOf('http-invoke-throughput', 'ours');
  return [
    metricOf('http-client-latency', 'µs', samples('bare-latency')),
    rateOf('http-client-throughput', 'bare'),
    metricOf('fastify-echo-latency', 'µs', samples('fastify-latency')),
    ratioOf('http-invoke-latency', 'µs', samples('ours-latency'), samples('fastify-latency').median),
    peerRate,
    { ...ourRate, baseline: peerRate.value, ratio: ourRate.value / peerRate.value },
  ];
}
