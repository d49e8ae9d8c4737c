// Entry of an instance: a thread of the app host that loads the bundle once and then runs invocations.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { assert, PlatformError, toErrorData } from '../base/index.ts';
import {
  captureConsole,
  createLog,
  type HostToInstance,
  type InstanceBoot,
  type InstanceToHost,
  isApp,
  LANE_BYTES_MAX,
  NO_LOCATIONS,
  Runner,
} from '../executor/guest/index.ts';
import { connectChannel, threadClock } from '../platform/node/index.ts';
import type { HostToServer, ServerToHost } from '../protocol/index.ts';
import type { AppDefinition } from '../sdk/index.ts';

assert(!isMainThread && parentPort !== null, 'an instance is a thread of an app host');
const port = parentPort;
const boot = workerData as InstanceBoot;
const post = (message: InstanceToHost): void => port.postMessage(message);

async function begin(): Promise<void> {
  const monotonicMs = threadClock(boot.clockOriginMs);
  const loadedFromMs = monotonicMs();
  Object.assign(globalThis, { [NO_LOCATIONS]: true });
  const module = (await import(boot.main)) as { default?: unknown };
  const app = module.default;
  if (!isApp(app)) {
    throw new PlatformError(
      'E_APP_INVALID',
      "the bundle's default export is not an app: export default app(name, {…})",
    );
  }
  const loadedAtMs = monotonicMs();
  const runner = new Runner(boot, app, {
    monotonicMs,
    epochMs: () => Date.now(),
    post,
    afterTurn: (callback) => void setImmediate(callback),
    later: (delayMs, callback) => void setTimeout(callback, delayMs).unref(),
  });
  captureConsole(runner);
  await initialise(app, runner);
  port.on('message', (message: HostToInstance) => runner.receive(message));
  post({ type: 'ready', loadMs: loadedAtMs - loadedFromMs, initMs: monotonicMs() - loadedAtMs });
  runner.start();
  // Without the connection the host does what would go over it.
  if (boot.lane !== undefined) connectLane(boot.lane, runner).catch(() => runner.connect(undefined));
}

/** The instance's own connection to the server: answers, and sessions while it is idle. */
async function connectLane(lane: NonNullable<InstanceBoot['lane']>, runner: Runner): Promise<void> {
  const channel = await connectChannel(lane.socket, { blobBytesMax: LANE_BYTES_MAX });
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
async function initialise(app: AppDefinition, runner: Runner): Promise<void> {
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

begin().catch((thrown: unknown) => {
  post({ type: 'load-failed', error: toErrorData(thrown, 'E_APP_INVALID') });
  port.close();
});
