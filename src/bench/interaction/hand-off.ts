// An object from one instance to another, by its size: handed on by reference, and each made and filled by its sender.

import type { Metric } from '../report.ts';
import { instanceHops } from './hops.ts';
import { type InteractionRun, inTurn, sizeName } from './run.ts';

const SIZES = [10, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
const SMALL = 1_000;
const LARGE = 100_000_000;
const HOPS = 25;
/** A session's objects stay until it ends. */
const BYTES_PER_SESSION = 200_000_000;
const US_PER_MS = 1_000;

export async function measureHandOff({ server, quick, signal }: InteractionRun): Promise<Metric[]> {
  const order = (bytes: number, fresh: boolean) => {
    const most = fresh ? BYTES_PER_SESSION / bytes : HOPS;
    return { hops: Math.max(3, Math.min(quick ? 4 : HOPS, most)), bytes, fresh, gapMs: 0 };
  };
  const perTurn = (bytes: number, fresh: boolean) => (quick ? 1 : fresh && bytes === LARGE ? 4 : 50);
  const nameOf = (bytes: number, fresh: boolean) => `handoff-${sizeName(bytes)}${fresh ? '-filled' : ''}`;
  const cases = [false, true].flatMap((fresh) => SIZES.map((bytes) => ({ bytes, fresh, name: nameOf(bytes, fresh) })));
  const samples = await inTurn(
    quick ? 2 : 10,
    signal,
    cases.map(({ bytes, fresh, name }) => async () => ({
      [name]: await instanceHops(server, order(bytes, fresh), perTurn(bytes, fresh)),
    })),
  );
  const msOf = (name: string, share = 0.5) => samples(name).percentile(share) / US_PER_MS;
  const value = msOf(nameOf(LARGE, false));
  const baseline = msOf(nameOf(SMALL, false));
  return [
    ...cases.map(({ name }) => ({ name, value: msOf(name), unit: 'ms', p99: msOf(name, 0.99) })),
    { name: 'handoff-100MB-vs-1KB', value, unit: 'ms', baseline, ratio: value / baseline },
  ];
}
