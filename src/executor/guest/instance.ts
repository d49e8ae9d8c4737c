// The thread of an instance: loads the bundle once, makes it ready, and connects it to the server.
//
// Owns: the order of loading, `init` and being ready; the instance's own connection.
// Does not own: running invocations (Runner), threads and sockets (ports: bin/instance, or simulated ones).

import { PlatformError } from '../../base/index.ts';
import type { Connect } from '../../platform/index.ts';
import type { HostToServer, ServerToHost } from '../../protocol/index.ts';
import type { AppDefinition } from '../../sdk/index.ts';
import type { HostToInstance, InstanceBoot } from '../shared/index.ts';
import { isApp } from './brand.ts';
import { LANE_BYTES_MAX } from './limits.ts';
import { createLog } from './log.ts';
import { Runner, type RunnerPorts } from './runner.ts';

export interface InstancePorts extends RunnerPorts {
  /** The bundle's main module. */
  readonly load: (main: string) => Promise<{ readonly default?: unknown }>;
  readonly connect: Connect;
  /** Before anything of the app's runs but its module. */
  readonly onLoaded?: (runner: Runner) => void;
  /** What the host posts is handed over from now on. */
  readonly onMessage: (receive: (message: HostToInstance) => void) => void;
}

/** Resolves when it takes work. Rejects when the bundle cannot be used: then it takes none. */
export async function runInstance(boot: InstanceBoot, ports: InstancePorts): Promise<void> {
  const { monotonicMs } = ports;
  const loadedFromMs = monotonicMs();
  const { default: app } = await ports.load(boot.main);
  if (!isApp(app)) {
    throw new PlatformError(
      'E_APP_INVALID',
      "the bundle's default export is not an app: export default app(name, {…})",
    );
  }
  const loadedAtMs = monotonicMs();
  const runner = new Runner(boot, app, ports);
  ports.onLoaded?.(runner);
  await initialise(boot, app, runner);
  ports.onMessage((message) => runner.receive(message));
  ports.post({ type: 'ready', loadMs: loadedAtMs - loadedFromMs, initMs: monotonicMs() - loadedAtMs });
  try {
    runner.start();
  } catch (thrown) {
    // What it ran first has spoilt it: it ends of that, and not because it could not be loaded.
    ports.afterTurn(() => {
      throw thrown;
    });
    return;
  }
  // Without the connection the host does what would go over it.
  if (boot.lane !== undefined) connectLane(boot, boot.lane, runner, ports).catch(() => runner.connect(undefined));
}

/** The instance's own connection to the server: answers, and sessions while it is idle. */
async function connectLane(
  boot: InstanceBoot,
  lane: NonNullable<InstanceBoot['lane']>,
  runner: Runner,
  { connect }: InstancePorts,
): Promise<void> {
  const channel = await connect(lane.socket, { blobBytesMax: LANE_BYTES_MAX });
  channel.onMessage((header, blobs) => {
    try {
      runner.receiveSession(header as ServerToHost & { type: 'session-start' }, blobs);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      channel.close();
    }
  });
  channel.onClose(() => runner.connect(undefined));
  const functions = runner.tables.functions.filter((row) => row.pool === boot.pool).map((row) => row.name);
  channel.send({ type: 'lane-hello', token: lane.token, instance: boot.instanceId, functions } satisfies HostToServer);
  runner.connect((message, blobs) => channel.send(message, blobs));
}

/** Runs `init` of each function of this instance's pool, once. */
async function initialise(boot: InstanceBoot, app: AppDefinition, runner: Runner): Promise<void> {
  const ctx = { env: boot.env, secrets: boot.secrets, log: createLog(runner, undefined) };
  const done = new Set<unknown>();
  for (const row of runner.tables.functions) {
    if (row.pool !== boot.pool) continue;
    const { init } = app.functions[row.name]?.options ?? {};
    if (typeof init !== 'function' || done.has(init)) continue;
    done.add(init);
    await (init as (ctx: unknown) => unknown)(ctx);
  }
}
