// One server process: the core over the real ports, with the gateway in front.

import { mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ControlPlane, createGateway, type Gateway } from '../gateway/index.ts';
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
import { startCore } from './core.ts';
import { lockDataFolder } from './data-lock.ts';
import { resolveSettings, type ServerLogEntry, type ServerOptions } from './settings.ts';

export interface RunningServer {
  /** `http://HOST:PORT` as others reach it. */
  readonly url: string;
  readonly port: number;
  readonly controlPlane: ControlPlane;
  /** Lets running requests end, stops the hosts, closes the data folder. Idempotent. */
  close(): Promise<void>;
}

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
  const core = await startCore(
    {
      clock: nodeClock,
      timers: nodeTimers,
      random: nodeRandom,
      digest: nodeDigest,
      processes: nodeProcessHost,
      store: new LmdbStore(join(dataDir, 'data.lmdb')),
      folder: new NodeDataFolder(dataDir),
      listen: (onChannel) => listenForChannels(dataDir, { blobBytesMax: Number.MAX_SAFE_INTEGER }, onChannel),
      log,
    },
    {
      settings,
      packageRoot: PACKAGE_ROOT,
      host: {
        file: process.execPath,
        args: ['--enable-source-maps', options.hostMain ?? HOST_MAIN],
        env: hostEnvironment(),
      },
    },
    closers,
  );
  const { controlPlane } = core;
  const gateway: Gateway = await createGateway(controlPlane, {
    host: options.host,
    port: options.port,
    allowedHosts: settings.allowedHosts,
    log: (entry) => log(entry as unknown as ServerLogEntry),
  });
  closers.push(() => gateway.close());
  core.ready();

  let closed: Promise<void> | undefined;
  const close = async () => {
    core.drain();
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

function hostEnvironment(): Record<string, string> {
  const env: Record<string, string> = {};
  for (const name of ENV_NAMES) {
    const value = process.env[name];
    if (value !== undefined) env[name] = value;
  }
  return env;
}

function logToStandardError({ level, message, fields }: ServerLogEntry): void {
  const at = new Date(nodeClock.epochMs()).toISOString();
  const rest = fields === undefined ? '' : ` ${JSON.stringify(fields)}`;
  process.stderr.write(`${at} ${level} ${message}${rest}\n`);
}
