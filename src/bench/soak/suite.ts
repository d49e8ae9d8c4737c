// Suite `soak`: does anything stay behind of a session? Resident memory in the last tenth of a million sessions over that in
// the second tenth: the first fills what is bounded.

import { BenchServer } from '../bench-server.ts';
import { Closers } from '../closers.ts';
import { HttpLoad } from '../http-load.ts';
import { MemoryWatch, processesOf } from '../processes.ts';
import { hostInfo, type Metric, type Report, type SuiteOptions, type Target } from '../report.ts';
import { ANSWER } from './app.ts';

export const SOAK_TARGETS: Readonly<Record<string, Target>> = {
  'rss-growth': { of: 'ratio', atMost: 1.05 },
  'rss-growth-server': { of: 'ratio', atMost: 1.05 },
  'rss-growth-host': { of: 'ratio', atMost: 1.05 },
};

const TENTHS = 10;
const CONNECTIONS = 32;
const TENTH_MS_MAX = 24 * 3_600_000;
const US_PER_S = 1_000_000;
const MIB = 1_048_576;

export async function soak({ quick, signal }: SuiteOptions): Promise<Report> {
  const startedAt = new Date().toISOString();
  const sessions = quick ? 20_000 : 1_000_000;
  const closers = new Closers();
  try {
    signal.throwIfAborted();
    const server = await BenchServer.start(new URL('./app.js', import.meta.url), closers);
    const { server: pid, hosts } = await processesOf(server.url);
    const load = new HttpLoad(closers);
    const memory = new MemoryWatch([pid, ...hosts]);
    closers.add(async () => memory.stop());
    /** Mean resident memory of each tenth: server, host. */
    const means: number[][] = [];
    let tookUs = 0;
    for (let tenth = 0; tenth < TENTHS; tenth++) {
      signal.throwIfAborted();
      memory.take();
      const result = await load.run({
        address: server.address,
        path: server.pathOf('begin'),
        // The function ignores it; an echo of the answer shows that the session did what it should.
        body: String(ANSWER),
        connections: CONNECTIONS,
        answersMax: sessions / TENTHS,
        durationMs: TENTH_MS_MAX,
        echo: true,
      });
      tookUs += result.tookUs;
      means.push(memory.take().map((samples) => samples.reduce((a, b) => a + b, 0) / samples.length / MIB));
    }
    const of = (tenth: number, process?: number) => {
      const mean = means[tenth] ?? [];
      return process === undefined ? mean.reduce((a, b) => a + b, 0) : (mean[process] ?? 0);
    };
    const growth = (name: string, process?: number): Metric => {
      const [value, baseline] = [of(TENTHS - 1, process), of(1, process)];
      return { name, value, unit: 'MiB', baseline, ratio: value / baseline };
    };
    const metrics: Metric[] = [
      { name: 'sessions', value: sessions, unit: 'sessions' },
      { name: 'throughput', value: (sessions / tookUs) * US_PER_S, unit: 'sessions/s' },
      growth('rss-growth'),
      growth('rss-growth-server', 0),
      growth('rss-growth-host', 1),
    ];
    for (let tenth = 0; tenth < TENTHS; tenth++) {
      metrics.push({ name: `server-memory-${tenth + 1}`, value: of(tenth, 0), unit: 'MiB' });
      metrics.push({ name: `host-memory-${tenth + 1}`, value: of(tenth, 1), unit: 'MiB' });
    }
    return { suite: 'soak', host: hostInfo(), startedAt, metrics };
  } finally {
    await closers.close();
  }
}
