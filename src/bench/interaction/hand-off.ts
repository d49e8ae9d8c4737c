// An object from one instance to another, by its size.

import type { Metric } from '../report.ts';
import { instanceHops } from './hops.ts';
import { type InteractionRun, inTurn, sizeName } from './run.ts';

const SIZES = [10, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const SMALL = 1_000;
const LARGE = 100_000_000;
/** A session's objects stay until it ends. */
const BYTES_PER_SESSION = 200_000_000;
const US_PER_MS = 1_000;

export async function measureHandOff({ server, quick, signal }: InteractionRun): Promise<Metric[]> {
  const hopsOf = (bytes: number) => Math.max(1, Math.min(quick ? 4 : 10, BYTES_PER_SESSION / bytes));
  const perTurn = (bytes: number) => (quick ? 1 : bytes === LARGE ? 4 : 30);
  const samples = await inTurn(
    quick ? 2 : 10,
    signal,
    SIZES.map((bytes) => async () => ({
      [sizeName(bytes)]: await instanceHops(server, { hops: hopsOf(bytes), bytes, gapMs: 0 }, perTurn(bytes)),
    })),
  );
  const msOf = (bytes: number, share = 0.5) => samples(sizeName(bytes)).percentile(share) / US_PER_MS;
  const value = msOf(LARGE);
  const baseline = msOf(SMALL);
  return [
    ...SIZES.map((bytes) => ({
      name: `handoff-${sizeName(bytes)}`,
      value: msOf(bytes),
      unit: 'ms',
      p99: msOf(bytes, 0.99),
    })),
    { name: 'handoff-100MB-vs-1KB', value, unit: 'ms', baseline, ratio: value / baseline },
  ];
}
