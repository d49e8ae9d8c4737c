// The trace that policies are compared over: invocations with times and durations, made from counts per minute.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlatformError, Prng } from '../../base/index.ts';

export interface TraceFunction {
  readonly name: string;
  readonly memoryMb: number;
  /** Median time of a cold start; the trace has none, so it is drawn by the seed: 0.3 s plus a log-normal with median 0.7 s. */
  readonly startMs: number;
}

/** Invocations in order of time. */
export interface Trace {
  readonly functions: readonly TraceFunction[];
  /** Ms from the trace's beginning. */
  readonly atMs: Float64Array;
  /** Index into `functions`. */
  readonly function: Uint16Array;
  readonly bodyMs: Float32Array;
  readonly lengthMs: number;
}

const MINUTE_MS = 60_000;
const MEMORY_MB_UNKNOWN = 64;

/** Reads `invocations.csv`, `durations.csv`, `memory.csv` of the Azure Functions trace 2019 (CC-BY 4.0). */
export function readAzure2019(folder: string, seed: number): Trace {
  const random = new Prng(seed);
  const durations = byFunction(readCsv(join(folder, 'durations.csv')));
  const memory = byFunction(readCsv(join(folder, 'memory.csv')));
  const rows = readCsv(join(folder, 'invocations.csv'));
  const minutes = Object.keys(rows[0] ?? {}).filter((column) => /^\d+$/.test(column));
  const functions: TraceFunction[] = [];
  const all: { at: number; which: number; body: number }[] = [];
  for (const row of rows) {
    const name = row.HashFunction ?? '';
    const which = functions.length;
    const quantiles = quantilesOf(durations.get(name));
    const startMs = 300 + 700 * Math.exp(0.6 * normal(random));
    functions.push({
      name: name.slice(0, 12),
      memoryMb: Number(memory.get(name)?.AverageAllocatedMb ?? MEMORY_MB_UNKNOWN),
      startMs,
    });
    minutes.forEach((minute, index) => {
      const count = Number(row[minute] ?? 0);
      for (let i = 0; i < count; i++) {
        all.push({ at: (index + random.float()) * MINUTE_MS, which, body: drawn(quantiles, random.float()) });
      }
    });
  }
  all.sort((a, b) => a.at - b.at);
  return {
    functions,
    atMs: Float64Array.from(all, ({ at }) => at),
    function: Uint16Array.from(all, ({ which }) => which),
    bodyMs: Float32Array.from(all, ({ body }) => body),
    lengthMs: minutes.length * MINUTE_MS,
  };
}

function readCsv(file: string): Record<string, string>[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    throw new PlatformError('E_REQUEST_INVALID', `no trace at ${file}: give its folder with --trace`);
  }
  const [head = '', ...lines] = text.trim().split('\n');
  const columns = head.split(',');
  return lines.map((line) => {
    const cells = line.split(',');
    return Object.fromEntries(columns.map((column, at) => [column, cells[at] ?? '']));
  });
}

function byFunction(rows: readonly Record<string, string>[]): Map<string, Record<string, string>> {
  return new Map(rows.map((row) => [row.HashFunction ?? '', row]));
}

const SHARES = [0, 0.01, 0.25, 0.5, 0.75, 0.99, 1];
const COLUMNS = [0, 1, 25, 50, 75, 99, 100].map((share) => `percentile_Average_${share}`);

function quantilesOf(row: Record<string, string> | undefined): readonly number[] {
  return COLUMNS.map((column) => Number(row?.[column] ?? 100));
}

/** Between the percentiles that are known, straight lines. */
function drawn(quantiles: readonly number[], share: number): number {
  let at = 1;
  while (at < SHARES.length - 1 && share > (SHARES[at] as number)) at++;
  const [fromShare, toShare] = [SHARES[at - 1] as number, SHARES[at] as number];
  const [from, to] = [quantiles[at - 1] as number, quantiles[at] as number];
  return from + ((share - fromShare) / (toShare - fromShare)) * (to - from);
}

function normal(random: Prng): number {
  return Math.sqrt(-2 * Math.log(1 - random.float())) * Math.cos(2 * Math.PI * random.float());
}
