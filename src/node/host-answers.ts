// What all app hosts, or those of one app, say of themselves.

import type { MonotonicMs } from '../base/index.ts';
import type { AppRegistry } from '../cluster/index.ts';
import type { Clock, Timers } from '../platform/index.ts';
import type { HostReply, HostRequest, HostStats } from '../protocol/index.ts';
import { unknownApp } from '../scheduler/index.ts';
import type { Supervisor } from '../supervisor/index.ts';

/** A host that is too busy to answer is left out of an overview. */
const STATS_MS_MAX = 2_000;

export interface AskedParts {
  readonly registry: AppRegistry;
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly timers: Timers;
}

export interface HostAnswer<T> {
  readonly app: string;
  readonly version: string;
  readonly said: T;
}

/** @throws E_APP_UNKNOWN. */
export async function askHosts<T>(
  { registry, supervisor, clock, timers }: AskedParts,
  app: string | undefined,
  question: HostRequest,
  pick: (reply: HostReply) => T | undefined,
): Promise<HostAnswer<T>[]> {
  if (app !== undefined && registry.current(app) === undefined) throw unknownApp(app, registry.names());
  const found: HostAnswer<T>[] = [];
  const asked = supervisor.states().filter((host) => app === undefined || host.app === app);
  await Promise.all(
    asked.map(async (host) => {
      const answer = host.connection?.request(question);
      if (answer === undefined) return;
      let cancel = () => {};
      const late = new Promise<undefined>((resolve) => {
        cancel = timers.set((clock.monotonicMs() + STATS_MS_MAX) as MonotonicMs, () => resolve(undefined));
      });
      const given = await Promise.race([answer.catch(() => undefined), late]);
      cancel();
      const said = given === undefined ? undefined : pick(given.reply);
      if (said !== undefined) found.push({ app: host.app, version: host.version, said });
    }),
  );
  return found;
}

export async function statsOf(
  parts: AskedParts,
  app: string | undefined,
): Promise<{ app: string; version: string; stats: HostStats }[]> {
  const answers = await askHosts(parts, app, { type: 'stats-get' }, ({ stats }) => stats);
  return answers.map(({ said, ...host }) => ({ ...host, stats: said }));
}
