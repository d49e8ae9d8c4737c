import { count, table } from '../text.ts';
import type { AdReport } from './drive.ts';

export function adReportLines(report: AdReport): string[] {
  const { events, purchases, truth, feedMs, batches, windows, differences } = report;
  const rate = Math.round((events / feedMs) * 1_000);
  const verdict =
    differences.length === 0
      ? `the sums of all ${truth.size} campaigns over all windows equal the truth`
      : `WRONG for ${differences.length} of ${truth.size} campaigns: ${differences.slice(0, 3).join('; ')}`;
  const rows = windows.map(({ closedAt, objects, purchases: sold, delayMs }) => [
    closedAt.slice(11, 23),
    count(objects),
    count(sold),
    delayMs === undefined ? '-' : `${count(delayMs)} ms`,
  ]);
  return [
    `${count(events)} events in ${count(batches)} batches, ${count(rate)} events/s; ${count(purchases)} are purchases`,
    verdict,
    `${windows.length} windows of one second, ${report.windowsAfterSilence} closed after the last batch`,
    ...table([['window closed (UTC)', 'objects', 'purchases', 'close to aggregate'], ...rows]),
  ];
}
