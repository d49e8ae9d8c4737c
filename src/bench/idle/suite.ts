// Suite `idle`: what a server costs that has nothing to do.

import { setTimeout } from 'node:timers/promises';
import { BenchServer } from '../bench-server.ts';
import { Closers } from '../closers.ts';
import { cpuMeter, processesOf, residentBytes } from '../processes.ts';
import { hostInfo, type Report, type SuiteOptions, type Target } from '../report.ts';

export const IDLE_TARGETS: Readonly<Record<string, Target>> = {
  'idle-cpu-percent': { of: 'value', atMost: 0.5 },
};

const APPS = 10;
/** Invocations of each app before, so that all of it has run. */
const WARM_UP = 20;
/** V8 gives memory back after the last work: up to three collections in each isolate, 8 s apart. */
const SETTLE_MS = 40_000;
const MIB = 1_048_576;

export async function idle({ quick, signal }: SuiteOptions): Promise<Report> {
  const startedAt = new Date().toISOString();
  const closers = new Closers();
  try {
    signal.throwIfAborted();
    const server = await BenchServer.start(new URL('./app.js', import.meta.url), closers, { copies: APPS });
    for (let i = 0; i < WARM_UP; i++) {
      for (let n = 0; n < APPS; n++) await server.invoke('fan', 8, n === 0 ? server.app : `${server.app}-${n}`);
      signal.throwIfAborted();
    }
    const { server: pid, hosts } = await processesOf(server.url);
    await setTimeout(quick ? SETTLE_MS / 40 : SETTLE_MS, undefined, { signal });
    const serverPercent = cpuMeter([pid]);
    const hostsPercent = cpuMeter(hosts);
    await setTimeout(quick ? 2_000 : 30_000, undefined, { signal });
    const [ofServer, ofHosts] = [serverPercent(), hostsPercent()];
    return {
      suite: 'idle',
      host: hostInfo(),
      startedAt,
      metrics: [
        { name: 'apps', value: hosts.length, unit: 'app hosts' },
        { name: 'idle-cpu-percent', value: ofServer + ofHosts, unit: '% of a core' },
        { name: 'idle-cpu-percent-server', value: ofServer, unit: '% of a core' },
        { name: 'idle-cpu-percent-hosts', value: ofHosts, unit: '% of a core' },
        { name: 'server-memory', value: residentBytes(pid) / MIB, unit: 'MiB' },
        {
          name: 'host-memory',
          value: hosts.reduce((sum, host) => sum + residentBytes(host), 0) / hosts.length / MIB,
          unit: 'MiB',
        },
      ],
    };
  } finally {
    await closers.close();
  }
}
