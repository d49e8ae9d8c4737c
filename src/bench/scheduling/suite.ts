// Suite `scheduling`: how many cold starts which policy has for how much idling, over a real trace in virtual time.

import { PlatformError } from '../../base/index.ts';
import { hostInfo, type Metric, type Report, type SuiteOptions, type Target } from '../report.ts';
import { coldAt, type Point } from './frontier.ts';
import { OUR_SETTINGS, OURS, type PolicyFamily, RIVALS } from './policies.ts';
import { readAzure2019, type Trace } from './trace.ts';
import { runTrace, type TraceResult } from './trace-run.ts';

export const SCHEDULING_TARGETS: Readonly<Record<string, Target>> = {
  'trace-cold-vs-best-rival': { of: 'ratio', atMost: 0.85 },
};

const SEED = 1;
const DEFAULT_SETTING = OUR_SETTINGS.indexOf(1);

export async function scheduling({ quick, signal, trace: folder }: SuiteOptions): Promise<Report> {
  const startedAt = new Date().toISOString();
  if (folder === undefined) {
    throw new PlatformError(
      'E_REQUEST_INVALID',
      'suite scheduling replays a trace: give the folder with invocations.csv, durations.csv and memory.csv with --trace',
    );
  }
  const trace = readAzure2019(folder, SEED);
  const sweep = async (family: PolicyFamily) => {
    const results: { setting: string; result: TraceResult }[] = [];
    const settings = quick ? family.settings.filter((_, at) => at % 2 === 1) : family.settings;
    for (const { name, policy } of settings) {
      signal.throwIfAborted();
      results.push({ setting: name, result: runTrace(trace, policy(), SEED) });
      await new Promise((resolve) => setImmediate(resolve));
    }
    return results;
  };
  const ours = await sweep(OURS);
  const rivals: { name: string; results: { setting: string; result: TraceResult }[] }[] = [];
  for (const family of RIVALS) rivals.push({ name: family.name, results: await sweep(family) });
  return { suite: 'scheduling', host: hostInfo(), startedAt, metrics: metricsOf(trace, ours, rivals, quick) };
}

function metricsOf(
  trace: Trace,
  ours: readonly { setting: string; result: TraceResult }[],
  rivals: readonly { name: string; results: readonly { setting: string; result: TraceResult }[] }[],
  quick: boolean,
): Metric[] {
  const fronts = rivals.map(({ results }) => results.map(({ result }) => pointOf(result)));
  const againstBest = ({ idle, cold }: Point) => {
    const best = Math.min(...fronts.map((front) => coldAt(front, idle) ?? Number.POSITIVE_INFINITY));
    return Number.isFinite(best) ? { value: cold, baseline: best, ratio: cold / best } : { value: cold };
  };
  const usual = ours[quick ? (DEFAULT_SETTING - 1) / 2 : DEFAULT_SETTING]?.result as TraceResult;
  const rows = (name: string, { setting, result }: { setting: string; result: TraceResult }): Metric[] => {
    const about = `trace-${name} (${setting})`;
    return [
      { name: `${about}: cold, mean over functions`, value: result.coldPerFunction, unit: 'share' },
      { name: `${about}: cold, of all`, value: result.cold, unit: 'share' },
      { name: `${about}: p99 slowdown`, value: result.slowdownP99, unit: 'times' },
      { name: `${about}: idle`, value: result.idleSeconds, unit: 'instance-s' },
      { name: `${about}: idle memory`, value: result.idleGbSeconds, unit: 'GB-s' },
      { name: `${about}: starts`, value: result.starts, unit: 'instances' },
      { name: `${about}: never used`, value: result.neverUsed, unit: 'instances' },
    ];
  };
  return [
    { name: 'trace-invocations', value: trace.atMs.length, unit: 'invocations' },
    { name: 'trace-cold-vs-best-rival', unit: 'share', ...againstBest(pointOf(usual)) },
    ...ours.map(({ setting, result }) => ({
      name: `trace-cold-vs-best-rival (${setting})`,
      unit: 'share',
      ...againstBest(pointOf(result)),
    })),
    ...ours.flatMap((one) => rows('by-worth', one)),
    ...rivals.flatMap(({ name, results }) => results.flatMap((one) => rows(name, one))),
  ];
}

function pointOf({ idleSeconds, coldPerFunction }: TraceResult): Point {
  return { idle: idleSeconds, cold: coldPerFunction };
}
