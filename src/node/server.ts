// One server process put together: data folder, coordinator, supervisor, gateway.

import { mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PlatformError, toErrorData } from '../base/index.ts';
import { AppRegistry } from '../cluster/index.ts';
import { type ControlPlane, createGateway, type Gateway } from '../gateway/index.ts';
import type { ChannelListener } from '../platform/index.ts';
import {
  LmdbStore,
  listenForChannels,
  NodeDataFolder,
  nodeClock,
  nodeDigest,
  nodeProcessHost,
  nodeRandom,
  nodeTimers,
} from '../platform/node/index.ts';
import type { HostBoot, HostToServer } from '../protocol/index.ts';
import { Coordinator, RecordStore } from '../scheduler/index.ts';
import { Supervisor } from '../supervisor/index.ts';
import { createControlPlane, NODE_NAME } from './control-plane.ts';
import { lockDataFolder } from './data-lock.ts';
import { Deployments } from './deployments.ts';
import { LogBook } from './log-book.ts';
import { resolveSettings, type ServerLogEntry, type ServerOptions } from './settings.ts';

export interface RunningServer {
  /** `http://HOST:PORT` as others reach it. */
  readonly url: string;
  readonly port: number;
  readonly controlPlane: ControlPlane;
  /** Lets running requests end, stops the hosts, closes the data folder. Idempotent. */
  close(): Promise<void>;
}

/** A host of the current version that dies is started again without being asked, this often in a row. */
const RESTARTS_UNASKED_MAX = 3;
/** What a host's process may see of the server's environment. */
const ENV_NAMES = ['PATH', 'TZ', 'LANG', 'LC_ALL', 'TMPDIR'];
/** The folder of this file once built; the package's root is two above. */
const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGE_ROOT = dirname(dirname(HERE));
const HOST_MAIN = join(dirname(HERE), 'bin', 'app-host.js');

export interface ServerParts {
  /** Main file of the app host, for tests of this folder. */
  readonly hostMain?: string;
}

/** @throws E_DATA_IN_USE, E_PORT_IN_USE, E_OPTION_INVALID; nothing is left open then. */
export async function startServer(options: ServerOptions, parts: ServerParts = {}): Promise<RunningServer> {
  const settings = resolveSettings(options);
  const dataDir = resolve(options.dataDir);
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const closers: (() => void | Promise<void>)[] = [];
  const closeAll = async () => {
    for (const close of closers.splice(0).reverse()) await close();
  };
  try {
    const lock = lockDataFolder(dataDir);
    closers.push(() => lock.release());
    return await open(dataDir, settings, { ...options, ...parts }, closers, closeAll);
  } catch (error) {
    await closeAll();
    throw error;
  }
}

async function open(
  dataDir: string,
  settings: ReturnType<typeof resolveSettings>,
  options: ServerOptions & ServerParts,
  closers: (() => void | Promise<void>)[],
  closeAll: () => Promise<void>,
): Promise<RunningServer> {
  const log = options.log ?? logToStandardError;
  const store = new LmdbStore(join(dataDir, 'data.lmdb'));
  closers.push(() => store.close());
  const bootEpoch = await nextEpoch(store);
  const folder = new NodeDataFolder(dataDir);
  const records = new RecordStore(store, folder, bootEpoch);
  closers.push(() => records.close());
  const registry = new AppRegistry(store, folder);
  await registry.restore(PACKAGE_ROOT);

  const logBook = new LogBook();
  closers.push(() => logBook.close());
  let closing = false;
  let ready = false;

  const coordinator = new Coordinator(
    {
      clock: nodeClock,
      timers: nodeTimers,
      random: nodeRandom,
      digest: nodeDigest,
      records,
      apps: registry,
      hosts: {
        need: (app, version) => {
          if (registry.hasVersion(app, version)) supervisor.need(app, version);
        },
        unused: (app, version) => supervisor.unused(app, version),
      },
      report: (what, error) => log({ level: 'error', message: what, fields: { error: toErrorData(error) } }),
    },
    bootEpoch,
  );

  let listener: ChannelListener | undefined;
  const supervisor: Supervisor = new Supervisor(
    { clock: nodeClock, timers: nodeTimers, random: nodeRandom, processes: nodeProcessHost },
    {
      file: process.execPath,
      args: ['--enable-source-maps', options.hostMain ?? HOST_MAIN],
      env: hostEnvironment(),
      socket: () => listener?.address ?? '',
      bootOf: (app, version) => bootOf(app, version),
      onReady: (app, version, connection) => {
        for (const bucket of deployments.changedBuckets(app, version)) {
          const triggers = registry.current(app)?.manifest.buckets[bucket]?.on ?? {};
          connection.send({ type: 'triggers-set', bucket, triggers });
        }
        coordinator.hostReady(app, version, connection);
      },
      onLost: (app, version, lost) => {
        if (!closing && !lost.planned) {
          log({ level: 'warn', message: `app host of '${app}' was lost: ${lost.error.message}` });
        }
        coordinator.hostLost(app, version, lost);
        const current = registry.current(app)?.version === version;
        if (current && !closing && lost.deaths <= RESTARTS_UNASKED_MAX) supervisor.need(app, version);
      },
      onMessage: (app, version, message, blobs) => {
        if (message.type === 'logs') keepLogs(logBook, app, version, message);
        else coordinator.hostMessage(app, version, message, blobs);
      },
      onLine: (app, version, stream, line) => {
        const at = new Date(nodeClock.epochMs()).toISOString();
        logBook.add({ at, app, version, level: stream === 'stderr' ? 'error' : 'info', message: line });
      },
    },
  );
  const deployments: Deployments = new Deployments(registry, coordinator, supervisor, nodeClock);

  const bootOf = (app: string, version: string): Omit<HostBoot, 'socket' | 'token'> => {
    const one = registry.version(app, version);
    if (one === undefined) throw new PlatformError('E_INTERNAL', `version ${version} of app ${app} is not here`);
    const { objectBytesMax, instancesMax, queueMax, inlineBytesMax, verifyObjects } = settings;
    return {
      app,
      version,
      node: NODE_NAME,
      folder: registry.folderOf(app, version),
      main: one.main,
      env: one.env,
      secrets: {},
      limits: { objectBytesMax, instancesMax, queueMax, inlineBytesMax, verifyObjects },
    };
  };

  listener = await listenForChannels(dataDir, { blobBytesMax: Number.MAX_SAFE_INTEGER }, (channel) =>
    supervisor.onChannel(channel),
  );
  const { close: closeListener } = listener;
  closers.push(() => closeListener());
  closers.push(() => deployments.settled());
  closers.push(() => supervisor.close());
  closers.push(() => coordinator.close());

  const controlPlane = createControlPlane({
    registry,
    coordinator,
    supervisor,
    deployments,
    logBook,
    settings,
    clock: nodeClock,
    startedAtMs: nodeClock.epochMs(),
    notReady: () => (closing ? 'the server is shutting down' : ready ? undefined : 'the server is starting'),
  });
  await coordinator.restore();
  const gateway: Gateway = await createGateway(controlPlane, {
    host: options.host,
    port: options.port,
    allowedHosts: settings.allowedHosts,
    log: (entry) => log(entry as unknown as ServerLogEntry),
  });
  closers.push(() => gateway.close());
  ready = true;

  let closed: Promise<void> | undefined;
  const close = async () => {
    closing = true;
    coordinator.drain();
    await closeAll();
  };
  return {
    url: gateway.url,
    port: gateway.port,
    controlPlane,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}

/** Counts starts, so that ids of different starts never meet. */
async function nextEpoch(store: LmdbStore): Promise<number> {
  const before = store.get('m/epoch');
  const epoch = before === undefined ? 1 : Number(new TextDecoder().decode(before)) + 1;
  await store.transaction([{ put: 'm/epoch', value: new TextEncoder().encode(String(epoch)) }]);
  return epoch;
}

function hostEnvironment(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ENV_NAMES) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function keepLogs(
  logBook: LogBook,
  app: string,
  version: string,
  { entries }: Extract<HostToServer, { type: 'logs' }>,
): void {
  for (const entry of entries) logBook.add({ ...entry, app, version });
}

function logToStandardError({ level, message, fields }: ServerLogEntry): void {
  const at = new Date(nodeClock.epochMs()).toISOString();
  const rest = fields === undefined ? '' : ` ${JSON.stringify(fields)}`;
  process.stderr.write(`${at} ${level} ${message}${rest}\n`);
}
