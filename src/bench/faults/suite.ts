// Suite `faults`: four chained functions that sleep 100 ms each and crash once in a hundred attempts. How long does a session
// take with a `rerun` rule per function, with a deadline for the whole that begins it again, and with neither?

import { setTimeout } from 'node:timers/promises';
import { PlatformError } from '../../base/index.ts';
import { BenchServer } from '../bench-server.ts';
import { Closers } from '../closers.ts';
import { nowUs } from '../now.ts';
import { hostInfo, type Metric, metricOf, type Report, type SuiteOptions, type Target } from '../report.ts';
import { Samples } from '../samples.ts';
import { type FaultAnswer, type FaultOrder, STEPS } from './app.ts';

export const FAULTS_TARGETS: Readonly<Record<string, Target>> = {
  'function-rule-p99-vs-median': { of: 'ratio', atMost: 1.6 },
  'function-rule-ended-once': { of: 'value', atLeast: 1 },
  'workflow-rule-ended-once': { of: 'value', atLeast: 1 },
  'no-rule-ended-once': { of: 'value', atLeast: 1 },
};

const SEED = 20_230_417;
const CRASHES = 0.01;
/** Sessions at once: they sleep, so that no queue and no processor is full. */
const AT_ONCE = 12;
/** Each of those sleeps in an instance of its own, and one that hangs keeps its instance for a while. */
const INSTANCES_MAX = 32;
const WORKFLOW_MS = 800;
/** Without any rule a session that hangs would last as long as the function's own timeout, which is a minute. */
const GIVEN_UP_MS = 3_000;
const RUNS_MAX = 20;

interface Way {
  readonly name: string;
  readonly entry: string;
  /** Deadline of one execution. */
  readonly timeoutMs: number;
  /** Executions of one session, at most. */
  readonly runsMax: number;
}

const WAYS: readonly Way[] = [
  { name: 'function-rule', entry: 'ruled1', timeoutMs: 60_000, runsMax: 1 },
  { name: 'workflow-rule', entry: 'plain1', timeoutMs: WORKFLOW_MS, runsMax: RUNS_MAX },
  { name: 'no-rule', entry: 'plain1', timeoutMs: GIVEN_UP_MS, runsMax: 1 },
];

export async function faults({ quick, signal }: SuiteOptions): Promise<Report> {
  const startedAt = new Date().toISOString();
  const closers = new Closers();
  try {
    signal.throwIfAborted();
    const config = { instancesMax: INSTANCES_MAX };
    const server = await BenchServer.start(new URL('./app.js', import.meta.url), closers, { config });
    const sessions = quick ? 48 : 1_000;
    // Instances are there before anything counts.
    for (const { entry } of WAYS)
      await all(AT_ONCE * 2, (n) => call(server, { ...CALM, session: n }, entry, 60_000, signal));
    const metrics: Metric[] = [{ name: 'sessions', value: sessions, unit: 'sessions' }];
    for (const way of WAYS) metrics.push(...(await measure(server, way, sessions, signal)));
    return { suite: 'faults', host: hostInfo(), startedAt, metrics };
  } finally {
    await closers.close();
  }
}

const CALM: FaultOrder = { seed: SEED, session: 0, run: 0, crashes: 0 };

async function measure(server: BenchServer, way: Way, sessions: number, signal: AbortSignal): Promise<Metric[]> {
  const before = await counts(server);
  const latencies = new Samples();
  let executions = 0;
  let answered = 0;
  await all(sessions, async (session) => {
    const beganUs = nowUs();
    for (let run = 1; run <= way.runsMax; run++) {
      signal.throwIfAborted();
      executions++;
      const order = { seed: SEED, session, run, crashes: CRASHES };
      const answer = await call(server, order, way.entry, way.timeoutMs, signal);
      if (answer === undefined) continue;
      if (answer.session !== session || answer.steps !== STEPS) throw new PlatformError('E_INTERNAL', 'a wrong answer');
      answered++;
      break;
    }
    // One that was given up took as long as it was waited for.
    latencies.add((nowUs() - beganUs) / 1_000);
  });
  // Handlers that hang are told to stop; then every session that was accepted has ended, and none twice.
  let now = await counts(server);
  for (; now.live > 0; now = await counts(server)) {
    signal.throwIfAborted();
    await setTimeout(50);
  }
  const ended = now.ended - before.ended;
  const p99 = latencies.percentile(0.99);
  return [
    metricOf(`${way.name}-ms`, 'ms', latencies),
    {
      name: `${way.name}-p99-vs-median`,
      value: p99,
      unit: 'ms',
      baseline: latencies.median,
      ratio: p99 / latencies.median,
    },
    { name: `${way.name}-answered`, value: answered / sessions, unit: 'of 1' },
    { name: `${way.name}-ended-once`, value: Math.min(ended, executions) / Math.max(ended, executions), unit: 'of 1' },
  ];
}

/** @returns undefined when the session was out of time. */
async function call(
  server: BenchServer,
  order: FaultOrder,
  entry: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<FaultAnswer | undefined> {
  const response = await fetch(`${server.url}${server.pathOf(entry)}?timeoutMs=${timeoutMs}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(order),
    signal,
  });
  const answer: unknown = await response.json();
  if (response.status === 200) return answer as FaultAnswer;
  if (response.status === 504) return undefined;
  throw new PlatformError('E_INTERNAL', `a session failed: ${JSON.stringify(answer)}`);
}

async function counts(server: BenchServer): Promise<{ live: number; ended: number }> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const sum = (name: string) => {
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))];
    return values.reduce((total, [, value]) => total + Number(value), 0);
  };
  return { live: sum('antrail_sessions_live'), ended: sum('antrail_sessions_ended_total') };
}

/** Calls for 0 to `count` - 1, AT_ONCE at a time. */
async function all(count: number, each: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < count) await each(next++);
    }),
  );
}
