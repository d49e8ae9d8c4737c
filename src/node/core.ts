// One server put together over ports: everything but HTTP. A simulated machine runs this very composition.
//
// Owns: which part is told what, and the order in which they begin and end.
// Does not own: real clocks, files and sockets, and the gateway (server).

import { type EpochMs, PlatformError, toErrorData } from '../base/index.ts';
import { AppRegistry } from '../cluster/index.ts';
import type { ControlPlane } from '../gateway/index.ts';
import type {
  Channel,
  ChannelListener,
  Clock,
  DataFolder,
  Digest,
  KeyValueStore,
  ProcessHost,
  Random,
  Timers,
} from '../platform/index.ts';
import type { HostBoot, HostToServer } from '../protocol/index.ts';
import { Coordinator, RecordStore } from '../scheduler/index.ts';
import { Supervisor } from '../supervisor/index.ts';
import { createControlPlane, NODE_NAME } from './control-plane.ts';
import { Deployments } from './deployments.ts';
import { LogBook } from './log-book.ts';
import { nicenessOf, type ServerLogEntry, type Settings, weightOf } from './settings.ts';

export interface CorePorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly digest: Digest;
  readonly processes: ProcessHost;
  /** The core closes it. */
  readonly store: KeyValueStore;
  readonly folder: DataFolder;
  /** App hosts and their instances connect there. */
  readonly listen: (onChannel: (channel: Channel) => void) => Promise<ChannelListener>;
  readonly log: (entry: ServerLogEntry) => void;
}

export interface CoreOptions {
  readonly settings: Settings;
  /** What `import 'antrail'` means in a bundle that was not bundled. */
  readonly packageRoot: string;
  /** How an app host is started; its environment beside ANTRAIL_HOST. */
  readonly host: {
    readonly file: string;
    readonly args: readonly string[];
    readonly env: Readonly<Record<string, string>>;
  };
}

export interface Core {
  readonly controlPlane: ControlPlane;
  readonly coordinator: Coordinator;
  readonly supervisor: Supervisor;
  readonly registry: AppRegistry;
  /** Requests may come: `notReady` says so too. */
  ready(): void;
  /** New sessions are refused, app hosts that end are not missed. */
  drain(): void;
}

/** Below the data folder: files of spilled objects, each nameless as soon as it is open. */
const SPILL_FOLDER = 'spill';
/** A host of the current version that dies is started again without being asked, this often in a row. */
const RESTARTS_UNASKED_MAX = 3;

/** @param closers how to end what was begun, also when this throws; called in reverse order. */
export async function startCore(
  ports: CorePorts,
  { settings, packageRoot, host }: CoreOptions,
  closers: (() => void | Promise<void>)[],
): Promise<Core> {
  const { clock, timers, random, digest, store, folder, log } = ports;
  closers.push(() => store.close());
  const bootEpoch = await nextEpoch(store);
  const records = new RecordStore(store, folder, bootEpoch);
  closers.push(() => records.close());
  const registry = new AppRegistry(store, folder);
  await registry.restore(packageRoot);

  const logBook = new LogBook();
  closers.push(() => logBook.close());
  let closing = false;
  let ready = false;

  const coordinator = new Coordinator(
    {
      clock,
      timers,
      random,
      digest,
      records,
      admission: { queueMax: settings.queueMax, weightOf: (app) => weightOf(settings, app) },
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
    { bytesMax: settings.persistedBytesMax, retentionMs: settings.persistedRetentionMs },
  );

  let listener: ChannelListener | undefined;
  const supervisor: Supervisor = new Supervisor(
    { clock, timers, random, processes: ports.processes },
    {
      ...host,
      nicenessOf: (app) => nicenessOf(settings, app),
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
        const at = new Date(clock.epochMs()).toISOString();
        logBook.add({ at, app, version, level: stream === 'stderr' ? 'error' : 'info', message: line });
      },
    },
  );
  const deployments: Deployments = new Deployments(registry, coordinator, supervisor, clock);

  const bootOf = (app: string, version: string): Omit<HostBoot, 'socket' | 'token'> => {
    const one = registry.version(app, version);
    if (one === undefined) throw new PlatformError('E_INTERNAL', `version ${version} of app ${app} is not here`);
    const { objectBytesMax, objectOverBytesMax, spillBytesMax } = settings;
    const { instancesMax, inlineBytesMax, verifyObjects } = settings;
    return {
      app,
      version,
      node: NODE_NAME,
      folder: registry.folderOf(app, version),
      main: one.main,
      env: one.env,
      secrets: {},
      spillFolder: `${ports.folder.path}/${SPILL_FOLDER}`,
      limits: {
        objectBytesMax,
        objectOverBytesMax,
        spillBytesMax,
        instancesMax,
        inlineBytesMax,
        verifyObjects,
      },
    };
  };

  listener = await ports.listen((channel) => supervisor.onChannel(channel));
  const { close: closeListener } = listener;
  closers.push(() => closeListener());
  closers.push(() => deployments.settled());
  closers.push(() => supervisor.close());
  closers.push(() => coordinator.close());

  const startedAtMs: EpochMs = clock.epochMs();
  const controlPlane = createControlPlane({
    registry,
    coordinator,
    supervisor,
    deployments,
    logBook,
    settings,
    clock,
    timers,
    startedAtMs,
    notReady: () => (closing ? 'the server is shutting down' : ready ? undefined : 'the server is starting'),
  });
  await coordinator.restore();
  return {
    controlPlane,
    coordinator,
    supervisor,
    registry,
    ready: () => {
      ready = true;
    },
    drain: () => {
      closing = true;
      coordinator.drain();
    },
  };
}

/** Counts starts, so that ids of different starts never meet. */
async function nextEpoch(store: KeyValueStore): Promise<number> {
  const before = store.get('m/epoch');
  const epoch = before === undefined ? 1 : Number(new TextDecoder().decode(before)) + 1;
  await store.transaction([{ put: 'm/epoch', value: new TextEncoder().encode(String(epoch)) }]);
  return epoch;
}

function keepLogs(
  logBook: LogBook,
  app: string,
  version: string,
  { entries }: Extract<HostToServer, { type: 'logs' }>,
): void {
  for (const entry of entries) logBook.add({ ...entry, app, version });
}
