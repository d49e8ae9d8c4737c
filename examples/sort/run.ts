// `npm run sort -- --size 1GB`: sorts that much on a server of its own, checks the result, and says what it took. Exit
// code 1 when a check fails.
//
//   --size 100MB   bytes of input, with kB, MB or GB
//   --mappers 8 --partitions 8 --seed 1

import { parseArgs } from 'node:util';
import { memoryOf, serve } from '../served.ts';
import { bytes, count, ms } from '../text.ts';
import type { SortJob } from './app.ts';
import { driveSort } from './drive.ts';
import { RECORD_BYTES } from './records.ts';

const UNITS: Readonly<Record<string, number>> = { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 };

function jobOf(args: readonly string[]): SortJob | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        size: { type: 'string', default: '100MB' },
        mappers: { type: 'string', default: '8' },
        partitions: { type: 'string', default: '8' },
        seed: { type: 'string', default: '1' },
      },
    });
    const [, size = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*(B|kB|MB|GB)$/.exec(values.size) ?? [];
    const records = Math.floor((Number(size) * (UNITS[unit] ?? Number.NaN)) / RECORD_BYTES);
    const job = {
      seed: Number(values.seed),
      records,
      mappers: Number(values.mappers),
      partitions: Number(values.partitions),
    };
    return size !== '' && Object.values(job).every(Number.isSafeInteger) && job.mappers > 0 && job.partitions > 0
      ? job
      : undefined;
  } catch {
    return undefined;
  }
}

async function main(): Promise<number> {
  const job = jobOf(process.argv.slice(2));
  if (job === undefined) {
    console.error('usage: npm run sort [-- [--size 100MB] [--mappers 8] [--partitions 8] [--seed 1]]');
    return 2;
  }
  const served = await serve();
  try {
    await served.deploy('examples/sort/app.ts');
    const report = await driveSort({ url: served.url, job });
    const perSecond = (took: number) => `${bytes(report.bytes / (took / 1_000))}/s`;
    const [host, server] = [await memoryOf(await served.host()), await memoryOf(served.server)];
    const rows = [
      ['input', `${bytes(report.bytes)}, ${count(job.records)} records of ${RECORD_BYTES} bytes`],
      ['mappers, partitions', `${job.mappers}, ${job.partitions}`],
      ['end to end', `${ms(report.sortMs)}, ${perSecond(report.sortMs)}`],
      ['last mapper to first reducer', ms(report.firstReducerMs)],
      ['last mapper to last reducer', ms(report.lastReducerMs)],
      ['shuffled', `${bytes(report.shuffleBytes)}, all of it in shared memory`],
      ['records with a key of another', count(report.equalKeys)],
      [
        'most memory of the app host',
        `${bytes(host.peakBytes)}, ${(host.peakBytes / report.bytes).toFixed(2)} × input`,
      ],
      ['most memory of the server', bytes(server.peakBytes)],
      ['read back and checked', ms(report.checkMs)],
    ];
    for (const [name = '', value = ''] of rows) console.log(`${name.padEnd(30)} ${value}`);
    for (const line of report.wrong) console.log(`WRONG ${line}`);
    if (report.wrong.length > 0) return 1;
    console.log('sorted: no record lost or added, each range sorted, ranges in order, repeated keys kept');
    return 0;
  } finally {
    await served.close();
  }
}

process.exitCode = await main();
