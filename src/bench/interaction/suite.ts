// Suite `interaction`: what it costs when one function sets off another, beside what the machine could do at best.

import { BenchServer } from '../bench-server.ts';
import { startProgram } from '../child.ts';
import { Closers } from '../closers.ts';
import type { EchoPeerPorts } from '../echo-peer.ts';
import { HttpLoad } from '../http-load.ts';
import { RawMessages } from '../raw-messages.ts';
import { hostInfo, type Metric, type Report, type SuiteOptions, type Target } from '../report.ts';
import { measureFanTable, measureWideFanIn } from './fans.ts';
import { measureHandOff } from './hand-off.ts';
import { measureHops } from './hops.ts';
import { measureHttp } from './http.ts';
import type { InteractionRun } from './run.ts';
import { measureWindows } from './windows.ts';

export const INTERACTION_TARGETS: Readonly<Record<string, Target>> = {
  'hop-inline': { of: 'ratio', atMost: 0.15 },
  'hop-instance': { of: 'ratio', atMost: 0.8 },
  'hop-instance-gaps': { of: 'ratio', atMost: 1.2 },
  'handoff-100MB': { of: 'value', atMost: 0.1 },
  'handoff-100MB-vs-1KB': { of: 'ratio', atMost: 1.3 },
  'http-invoke-latency': { of: 'ratio', atMost: 2.5 },
  'http-invoke-throughput': { of: 'ratio', atLeast: 0.6 },
  'chain-1000-per-hop': { of: 'ratio', atMost: 1.5 },
  'fanin-100000-per-branch': { of: 'ratio', atMost: 1.5 },
};

export async function interaction({ quick, signal }: SuiteOptions): Promise<Report> {
  const startedAt = new Date().toISOString();
  const closers = new Closers();
  try {
    signal.throwIfAborted();
    const run: InteractionRun = {
      quick,
      signal,
      raw: new RawMessages(closers),
      load: new HttpLoad(closers),
      peer: JSON.parse(await startProgram(new URL('../echo-peer.js', import.meta.url), [], closers)) as EchoPeerPorts,
      server: await BenchServer.start(new URL('./app.js', import.meta.url), closers),
    };
    const metrics: Metric[] = [];
    for (const part of [measureHops, measureHandOff, measureWideFanIn, measureFanTable, measureHttp, measureWindows]) {
      metrics.push(...(await part(run)));
    }
    return { suite: 'interaction', host: hostInfo(), startedAt, metrics };
  } finally {
    await closers.close();
  }
}
