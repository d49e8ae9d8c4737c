// Fan-out and fan-in: by width and size of the objects, and by width alone up to very many.

import { MemoryWatch, processesOf } from '../processes.ts';
import { type Metric, metricOf, ratioOf } from '../report.ts';
import type { Fan, FanOrder, Gathered } from './app.ts';
import { type InteractionRun, inTurn, sizeName } from './run.ts';

const WIDTHS = [2, 4, 8, 16];
const SIZES = [10, 1_000, 100_000, 1_000_000, 10_000_000];
const FIGURES = ['fanout', 'fanin'].flatMap((fan) => ['internal', 'external'].map((part) => [fan, part] as const));

/** Branches of the fan-ins whose cost per branch is compared. */
const FEW = 1_000;
const MANY = 100_000;
/** What `fanin-100000-per-branch` has in a quick run. */
const MANY_QUICK = 10_000;
const MIB = 1_048_576;

export async function measureFanTable({ server, quick, signal }: InteractionRun): Promise<Metric[]> {
  const cells = WIDTHS.flatMap((branches) => SIZES.map((bytes) => ({ branches, bytes })));
  const cellName = ({ branches, bytes }: FanOrder) => `${branches}-${sizeName(bytes)}`;
  const samples = await inTurn(
    quick ? 1 : 5,
    signal,
    cells.map((order) => async () => {
      const fans = [];
      for (let i = 0; i < (quick ? 1 : 8); i++) fans.push(await server.invoke<Fan>('fan', order));
      const name = cellName(order);
      return {
        [`fanout-${name}-internal`]: fans.map(({ value }) => value.outUs),
        [`fanout-${name}-external`]: fans.map(({ value, sentUs }) => value.startedUs - sentUs),
        [`fanin-${name}-internal`]: fans.map(({ value }) => value.inUs),
        [`fanin-${name}-external`]: fans.map(({ value, answeredUs }) => answeredUs - value.outputUs),
      };
    }),
  );
  return FIGURES.flatMap(([fan, part]) =>
    cells.map((order) => {
      const name = `${fan}-${cellName(order)}-${part}`;
      return metricOf(name, 'µs', samples(name));
    }),
  );
}

export async function measureWideFanIn({ server, quick, signal }: InteractionRun): Promise<Metric[]> {
  const perBranch = (name: string, branches: number, times: number) => async () => {
    const perBranchUs: number[] = [];
    for (let i = 0; i < times; i++) {
      const { tookUs } = (await server.invoke<Gathered>('spread', branches)).value;
      perBranchUs.push(tookUs / branches);
    }
    return { [name]: perBranchUs };
  };
  const { server: pid, hosts } = await processesOf(server.url);
  const memory = new MemoryWatch([pid, ...hosts]);
  // What the narrow ones reach is what the wide one is compared with.
  const peaksMib = () => memory.take().map((taken) => Math.max(...taken) / MIB);
  let before: number[] = [];
  let peaks: number[] = [];
  try {
    const few = perBranch('few', FEW, quick ? 3 : 10);
    const many = perBranch('many', quick ? MANY_QUICK : MANY, 1);
    const samples = await inTurn(quick ? 2 : 3, signal, [
      perBranch('1', 1, quick ? 3 : 100),
      perBranch('10', 10, quick ? 3 : 100),
      async () => {
        const taken = await few();
        before = peaksMib();
        return taken;
      },
      async () => {
        const taken = await many();
        peaks = peaksMib();
        return taken;
      },
    ]);
    return [
      metricOf('fanin-1-per-branch', 'µs', samples('1')),
      metricOf('fanin-10-per-branch', 'µs', samples('10')),
      metricOf('fanin-1000-per-branch', 'µs', samples('few')),
      ratioOf('fanin-100000-per-branch', 'µs', samples('many'), samples('few').median),
      ...['server', 'host'].flatMap((process, at) => [
        { name: `fanin-1000-${process}-memory`, value: before[at] ?? 0, unit: 'MiB' },
        { name: `fanin-100000-${process}-memory`, value: peaks[at] ?? 0, unit: 'MiB' },
      ]),
    ];
  } finally {
    memory.stop();
  }
}
