// From one function to the next: inside an instance, to another one, along a chain; beside bare messages.

import { PlatformError } from '../../base/index.ts';
import type { BenchServer } from '../bench-server.ts';
import { GAP_MS } from '../message-thread.ts';
import { type Metric, metricOf, ratioOf } from '../report.ts';
import type { Chain, InlineHop, Volley, VolleyOrder } from './app.ts';
import { type InteractionRun, inTurn } from './run.ts';

const CHAIN_HOPS = 1_000;
/** To another instance, in one session. */
const HOPS = 25;
/** Until V8 has compiled for good what a hop goes through: servers run for days, not for a thousand hops. */
const WARM_HOPS = 20_000;
const WARM_HOPS_PER_SESSION = 1_000;

export async function measureHops({ server, raw, quick, signal }: InteractionRun): Promise<Metric[]> {
  const count = quick
    ? { rounds: 2, raw: 300, rawGaps: 25, inline: 60, instance: 25, gaps: 25, chains: 1 }
    : { rounds: 10, raw: 2_000, rawGaps: 150, inline: 500, instance: 300, gaps: 150, chains: 5 };
  const warm = { hops: WARM_HOPS_PER_SESSION, bytes: 0, fresh: false, gapMs: 0 };
  if (!quick) await instanceHops(server, warm, WARM_HOPS);
  const samples = await inTurn(count.rounds, signal, [
    async () => ({ raw: await raw.roundTrips(count.raw) }),
    async () => {
      const hops = await inlineHops(server, 'inline', count.inline);
      return { inline: hops.map(({ hopUs }) => hopUs), send: hops.map(({ sendUs }) => sendUs) };
    },
    async () => ({ inlineAsync: (await inlineHops(server, 'inlineAsync', count.inline)).map(({ hopUs }) => hopUs) }),
    async () => ({
      instance: await instanceHops(server, { hops: HOPS, bytes: 0, fresh: false, gapMs: 0 }, count.instance),
    }),
    async () => {
      const chains: Chain[] = [];
      for (let i = 0; i < count.chains; i++) chains.push((await server.invoke<Chain>('chain', CHAIN_HOPS)).value);
      return {
        chain: chains.map(({ hopsUs }) => hopsUs / CHAIN_HOPS),
        wholeChain: chains.map(({ wholeUs }) => wholeUs / CHAIN_HOPS),
      };
    },
    async () => ({ rawGaps: await raw.gaps(count.rawGaps) }),
    async () => ({
      instanceGaps: await instanceHops(server, { hops: HOPS, bytes: 0, fresh: false, gapMs: GAP_MS }, count.gaps),
    }),
  ]);
  const r = samples('raw').median;
  return [
    metricOf('R', 'µs', samples('raw')),
    metricOf('raw-message-gaps', 'µs', samples('rawGaps')),
    ratioOf('hop-inline', 'µs', samples('inline'), r),
    ratioOf('hop-inline-async', 'µs', samples('inlineAsync'), r),
    metricOf('send-inline', 'µs', samples('send')),
    ratioOf('hop-instance', 'µs', samples('instance'), r),
    ratioOf('hop-instance-gaps', 'µs', samples('instanceGaps'), samples('rawGaps').median),
    ratioOf('chain-1000-per-hop', 'µs', samples('chain'), samples('inline').median),
    metricOf('chain-1000-whole-per-hop', 'µs', samples('wholeChain')),
  ];
}

/** Microseconds of at least `count` hops to another instance, one at a time. */
export async function instanceHops(server: BenchServer, order: VolleyOrder, count: number): Promise<number[]> {
  const hops: number[] = [];
  while (hops.length < count) hops.push(...(await server.invoke<Volley>('volley', order)).value);
  return hops;
}

async function inlineHops(server: BenchServer, entry: string, count: number): Promise<Required<InlineHop>[]> {
  const hops: Required<InlineHop>[] = [];
  for (let misses = 0; hops.length < count; ) {
    const { hopUs, sendUs } = (await server.invoke<InlineHop>(entry, null)).value;
    if (hopUs !== undefined) hops.push({ hopUs, sendUs });
    else if (++misses > count) {
      throw new PlatformError('E_INTERNAL', `most of ${hops.length + misses} successors ran on another instance`);
    }
  }
  return hops;
}
