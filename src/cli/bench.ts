import { writeFile } from 'node:fs/promises';
import { nearMiss } from '../base/index.ts';
import type { CommandSpec } from './command.ts';
import { loadPart } from './server-door.ts';
import { table } from './text.ts';
import { UsageError } from './usage.ts';

export interface BenchMetric {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly p99?: number;
  readonly baseline?: number;
  readonly ratio?: number;
}

export interface BenchReport {
  readonly suite: string;
  readonly host: unknown;
  readonly startedAt: string;
  readonly metrics: readonly BenchMetric[];
}

interface BenchTarget {
  readonly of: 'ratio' | 'value';
  readonly atMost?: number;
  readonly atLeast?: number;
}

interface BenchPart {
  readonly TARGETS: Readonly<Record<string, Readonly<Record<string, BenchTarget>>>>;
  isReached(metric: BenchMetric, target: BenchTarget): boolean;
  targetText(target: BenchTarget, unit: string): string;
  readonly SUITES: Readonly<
    Record<string, (options: { quick: boolean; trace?: string; signal: AbortSignal }) => Promise<BenchReport>>
  >;
}

export const BENCH: CommandSpec = {
  usage: 'bench <suite>',
  does: 'measure on this machine, beside what it is compared with',
  options: [
    { flags: '--json <file>', does: 'also write the figures to a file' },
    { flags: '--quick', does: 'fewer rounds: for a first look' },
    {
      flags: '--trace <folder>',
      does: 'suite scheduling: invocations.csv, durations.csv, memory.csv of the Azure trace 2019',
    },
  ],
  examples: [
    ['antrail bench interaction --quick', 'a first look'],
    ['antrail bench interaction --json figures.json', 'figures for a program'],
    ['antrail bench overload', 'three times what the server can do; also: faults, idle, soak, scheduling'],
  ],
  run: async ({ terminal, options, paint }, [name]) => {
    const { SUITES, TARGETS, isReached, targetText } = await loadPart<BenchPart>('bench', 'benchmarks');
    const suite = Object.hasOwn(SUITES, name) ? SUITES[name] : undefined;
    if (suite === undefined) {
      const meant = nearMiss(name, Object.keys(SUITES));
      throw new UsageError(
        `there is no suite ${name}${meant === undefined ? `: there is ${Object.keys(SUITES).join(', ')}` : `. Did you mean ${meant}?`}`,
      );
    }
    const report = await suite({
      quick: options.quick === true,
      ...(options.trace === undefined ? {} : { trace: options.trace }),
      signal: terminal.interrupted,
    });
    if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
    const targetOf = ({ name: metric }: BenchMetric) => TARGETS[name]?.[metric];
    const verdict = (metric: BenchMetric) => {
      const target = targetOf(metric);
      return target === undefined ? '' : isReached(metric, target) ? 'reached' : 'missed';
    };
    await terminal.out(
      table(
        report.metrics,
        [
          { title: 'metric', value: (metric) => metric.name, color: () => 'bold' },
          { title: 'value', value: ({ value, unit }) => `${figure(value)} ${unit}`, align: 'right' },
          { title: 'p99', value: ({ p99 }) => (p99 === undefined ? '' : figure(p99)), align: 'right' },
          {
            title: 'baseline',
            value: ({ baseline }) => (baseline === undefined ? '' : figure(baseline)),
            align: 'right',
          },
          { title: 'ratio', value: ({ ratio }) => (ratio === undefined ? '' : ratio.toFixed(2)), align: 'right' },
          {
            title: 'target',
            value: (metric) => {
              const target = targetOf(metric);
              return target === undefined ? '' : targetText(target, metric.unit);
            },
            align: 'right',
          },
          {
            title: '',
            value: verdict,
            color: (metric) => (verdict(metric) === 'missed' ? 'red' : 'green'),
          },
        ],
        paint,
      ),
    );
    return undefined;
  },
};

/** Three significant digits. */
function figure(value: number): string {
  return Math.abs(value) >= 1_000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}
