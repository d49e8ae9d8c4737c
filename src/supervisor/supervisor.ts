// Spawns and watches app hosts; the driver of HostLife. One Unix socket for all of them; a host shows who it is by a
// token that only it was given, once.

import { type ErrorData, fromErrorData, type MonotonicMs, PlatformError } from '../base/index.ts';
import type {
  CancelTimer,
  Channel,
  Clock,
  ProcessExit,
  ProcessHost,
  Random,
  SpawnedProcess,
  Timers,
} from '../platform/index.ts';
import {
  HOST_PROTOCOL_VERSION,
  type HostBoot,
  type HostReply,
  type HostRequest,
  type HostToServer,
  type ServerToHost,
} from '../protocol/index.ts';
import { HostLife, type HostLifeEffect, type HostLifeEvent, type HostState } from './host-life.ts';
import { Lanes } from './lanes.ts';
import { HELLO_MS_MAX, LAST_LINES_MAX, LAST_WORDS_MS_MAX } from './limits.ts';

/** A connection to a ready host. */
export interface HostConnection {
  /** Connections of its instances. */
  readonly lanes: Lanes;
  readonly pid: number;
  send(message: ServerToHost, blobs?: readonly Uint8Array[]): void;
  request(
    message: HostRequest,
    blobs?: readonly Uint8Array[],
  ): Promise<{ reply: HostReply; blobs: readonly Uint8Array[] }>;
}

export interface SupervisorPorts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly processes: ProcessHost;
}

export interface SupervisorOptions {
  /** The runtime, its arguments with the host's main file at the end, and the environment beside ANTRAIL_HOST. */
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where hosts connect; asked at each spawn. */
  readonly socket: () => string;
  readonly bootOf: (app: string, version: string) => Omit<HostBoot, 'socket' | 'token' | 'laneToken'>;
  /** How far the processes of this app stand back, 0 to 19. Default: not at all. */
  readonly nicenessOf?: (app: string) => number;
  readonly onReady: (app: string, version: string, connection: HostConnection) => void;
  readonly onLost: (
    app: string,
    version: string,
    lost: {
      readonly phase: 'starting' | 'ready';
      readonly planned: boolean;
      readonly error: ErrorData;
      readonly deaths: number;
    },
  ) => void;
  /** Everything but what the supervisor itself answers. */
  readonly onMessage: (app: string, version: string, message: HostToServer, blobs: readonly Uint8Array[]) => void;
  readonly onLine: (app: string, version: string, stream: 'stdout' | 'stderr', line: string) => void;
}

interface Host {
  readonly app: string;
  readonly version: string;
  readonly life: HostLife;
  process: SpawnedProcess | undefined;
  token: string | undefined;
  /** What its instances show; as long as the process lives. */
  laneToken: string | undefined;
  lanes: Lanes | undefined;
  channel: Channel | undefined;
  connection: HostConnection | undefined;
  pending: Map<
    number,
    {
      resolve: (answer: { reply: HostReply; blobs: readonly Uint8Array[] }) => void;
      reject: (error: unknown) => void;
    }
  >;
  exit: ProcessExit | undefined;
  lastLines: string[];
  cancelTimer: CancelTimer | undefined;
  readonly starters: { resolve: () => void; reject: (error: unknown) => void }[];
  readonly stoppers: (() => void)[];
}

export class Supervisor {
  readonly #ports: SupervisorPorts;
  readonly #options: SupervisorOptions;
  readonly #hosts = new Map<string, Host>();
  #requestCount = 0;
  #closed = false;

  constructor(ports: SupervisorPorts, options: SupervisorOptions) {
    this.#ports = ports;
    this.#options = options;
  }

  /** Somebody waits for this host. `onReady` or `onLost` follow, never within this call. */
  need(app: string, version: string): void {
    if (this.#closed) return;
    this.#feed(this.#hostOf(app, version), { type: 'needed' });
  }

  /** Resolves when it is ready; rejects with why its next attempt failed. */
  start(app: string, version: string): Promise<void> {
    const host = this.#hostOf(app, version);
    if (host.life.state === 'ready') return Promise.resolve();
    if (this.#closed) return Promise.reject(new PlatformError('E_SHUTTING_DOWN', 'The server is shutting down.'));
    return new Promise((resolve, reject) => {
      host.starters.push({ resolve, reject });
      this.#feed(host, { type: 'needed' });
    });
  }

  unused(app: string, version: string): void {
    const host = this.#hosts.get(`${app}/${version}`);
    if (host !== undefined) this.#feed(host, { type: 'unused' });
  }

  /** Resolves when its process has ended. */
  async stop(app: string, version: string): Promise<void> {
    const host = this.#hosts.get(`${app}/${version}`);
    if (host === undefined) return;
    const stopped = new Promise<void>((resolve) => host.stoppers.push(resolve));
    this.#feed(host, { type: 'stop' });
    await stopped;
    this.#hosts.delete(`${app}/${version}`);
  }

  /** Ends all hosts. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#hosts.values(), (host) => this.stop(host.app, host.version)));
  }

  states(): { app: string; version: string; state: HostState; pid: number | undefined; connection?: HostConnection }[] {
    return Array.from(this.#hosts.values(), ({ app, version, life, process, connection }) => ({
      app,
      version,
      state: life.state,
      pid: process?.pid,
      ...(connection === undefined || life.state !== 'ready' ? {} : { connection }),
    }));
  }

  /** A process connected to the socket: whoever it is must say `hello` with a token that is waited for. */
  onChannel(channel: Channel): void {
    const { clock, timers } = this.#ports;
    const cancel = timers.set((clock.monotonicMs() + HELLO_MS_MAX) as MonotonicMs, () => channel.close());
    channel.onClose(() => cancel());
    channel.onMessage((header) => {
      cancel();
      const hello = header as Partial<Extract<HostToServer, { type: 'hello' }>>;
      if ((header as HostToServer).type === 'lane-hello') {
        this.#adoptLane(channel, header as HostToServer & { type: 'lane-hello' });
        return;
      }
      const host = Array.from(this.#hosts.values()).find((one) => one.token !== undefined && one.token === hello.token);
      if (hello.type !== 'hello' || host === undefined) {
        channel.close();
        return;
      }
      host.token = undefined; // single use
      this.#adopt(host, channel);
      if (hello.protocol !== HOST_PROTOCOL_VERSION) {
        const message = `The app host speaks protocol ${hello.protocol}, the server ${HOST_PROTOCOL_VERSION}.`;
        this.#feed(host, { type: 'load-failed', error: { code: 'E_PROTOCOL', message } });
      }
    });
  }

  #adoptLane(channel: Channel, hello: HostToServer & { type: 'lane-hello' }): void {
    const host = Array.from(this.#hosts.values()).find(
      (one) => one.laneToken !== undefined && one.laneToken === hello.token,
    );
    if (host?.lanes === undefined || !Array.isArray(hello.functions)) {
      channel.close();
      return;
    }
    channel.onMessage((header, blobs) => {
      const message = header as HostToServer;
      // The host keeps the account; its instances may say nothing else.
      if (message.type === 'session-outcome') this.#options.onMessage(host.app, host.version, message, blobs);
      else channel.close();
    });
    host.lanes.add(channel, hello.functions);
  }

  #adopt(host: Host, channel: Channel): void {
    host.channel = channel;
    const lanes = new Lanes(this.#ports, () => channel.send({ type: 'flush' } satisfies ServerToHost));
    host.lanes = lanes;
    channel.onMessage((header, blobs) => this.#receive(host, header as HostToServer, blobs));
    channel.onClose(() => {
      if (host.channel !== channel) return;
      host.channel = undefined;
      host.lanes = undefined;
      lanes.close();
      if (host.exit === undefined) this.#feed(host, { type: 'disconnected' });
      else this.#gone(host);
    });
    host.connection = {
      lanes,
      pid: host.process?.pid ?? 0,
      send: (message, blobs) => channel.send(message, blobs),
      request: (message, blobs) =>
        new Promise((resolve, reject) => {
          if (host.channel !== channel) {
            reject(new PlatformError('E_NODE_LOST', 'The app host is gone.'));
            return;
          }
          const requestId = ++this.#requestCount;
          host.pending.set(requestId, { resolve, reject });
          channel.send({ ...message, requestId }, blobs);
        }),
    };
  }

  #receive(host: Host, message: HostToServer, blobs: readonly Uint8Array[]): void {
    switch (message.type) {
      case 'ready':
        this.#feed(host, { type: 'ready' });
        return;
      case 'load-failed':
        this.#feed(host, { type: 'load-failed', error: message.error });
        return;
      case 'reply': {
        const waiting = host.pending.get(message.requestId);
        if (waiting === undefined) return;
        host.pending.delete(message.requestId);
        if (message.error !== undefined) waiting.reject(fromErrorData(message.error));
        else waiting.resolve({ reply: message, blobs });
        return;
      }
      default:
        this.#options.onMessage(host.app, host.version, message, blobs);
    }
  }

  #feed(host: Host, event: HostLifeEvent): void {
    const effects = host.life.handle(event, this.#ports.clock.monotonicMs());
    for (const effect of effects) this.#do(host, effect);
    if (host.life.state !== 'stopped') return;
    for (const resolve of host.stoppers.splice(0)) resolve();
    // One that ended in peace leaves nothing to remember.
    if (host.life.deaths === 0 && host.starters.length === 0) this.#hosts.delete(`${host.app}/${host.version}`);
  }

  #do(host: Host, effect: HostLifeEffect): void {
    switch (effect.type) {
      case 'spawn':
        this.#spawn(host);
        return;
      case 'kill':
        host.process?.kill(effect.signal);
        return;
      case 'set-timer':
        host.cancelTimer?.();
        host.cancelTimer =
          effect.atMs === undefined
            ? undefined
            : this.#ports.timers.set(effect.atMs, () => this.#feed(host, { type: 'timer-fired' }));
        return;
      case 'send-drain':
        host.channel?.send({ type: 'drain' } satisfies ServerToHost);
        return;
      case 'tell-ready':
        if (host.connection !== undefined) this.#options.onReady(host.app, host.version, host.connection);
        for (const starter of host.starters.splice(0)) starter.resolve();
        return;
      case 'tell-lost': {
        const { phase, planned, error } = effect;
        for (const starter of host.starters.splice(0)) starter.reject(fromErrorData(error));
        this.#options.onLost(host.app, host.version, { phase, planned, error, deaths: host.life.deaths });
        return;
      }
    }
  }

  #spawn(host: Host): void {
    const token = Buffer.from(this.#ports.random.bytes(24)).toString('hex');
    const laneToken = Buffer.from(this.#ports.random.bytes(24)).toString('hex');
    host.token = token;
    host.laneToken = laneToken;
    host.exit = undefined;
    host.lastLines = [];
    const boot: HostBoot = {
      ...this.#options.bootOf(host.app, host.version),
      socket: this.#options.socket(),
      token,
      laneToken,
    };
    host.process = this.#ports.processes.spawn({
      file: this.#options.file,
      args: this.#options.args,
      env: { ...this.#options.env, ANTRAIL_HOST: JSON.stringify(boot) },
      cwd: boot.folder,
      niceness: this.#options.nicenessOf?.(host.app) ?? 0,
      onLine: (stream, line) => {
        host.lastLines.push(line);
        if (host.lastLines.length > LAST_LINES_MAX) host.lastLines.shift();
        this.#options.onLine(host.app, host.version, stream, line);
      },
      onExit: (exit) => {
        host.exit = exit;
        // What it sent before it died is still on its way: sessions that ended there must not be executed again.
        if (host.channel === undefined) {
          this.#gone(host);
          return;
        }
        const { clock, timers } = this.#ports;
        const channel = host.channel;
        const cancel = timers.set((clock.monotonicMs() + LAST_WORDS_MS_MAX) as MonotonicMs, () => channel.close());
        channel.onClose(() => cancel());
      },
    });
  }

  /** The process has ended and its connection too. */
  #gone(host: Host): void {
    const exit = host.exit ?? { exitCode: null, signal: null };
    host.process = undefined;
    host.token = undefined;
    host.laneToken = undefined;
    host.connection = undefined;
    const error = exitError(exit, host.lastLines);
    const pending = host.pending;
    host.pending = new Map();
    for (const waiting of pending.values()) waiting.reject(fromErrorData(error));
    this.#feed(host, { type: 'exited', error });
  }

  #hostOf(app: string, version: string): Host {
    const key = `${app}/${version}`;
    let host = this.#hosts.get(key);
    if (host === undefined) {
      host = {
        app,
        version,
        life: new HostLife(() => this.#ports.random.uint32() / 2 ** 32),
        process: undefined,
        token: undefined,
        laneToken: undefined,
        lanes: undefined,
        channel: undefined,
        connection: undefined,
        pending: new Map(),
        exit: undefined,
        lastLines: [],
        cancelTimer: undefined,
        starters: [],
        stoppers: [],
      };
      this.#hosts.set(key, host);
    }
    return host;
  }
}

function exitError(exit: ProcessExit, lastLines: readonly string[]): ErrorData {
  const how =
    exit.error !== undefined
      ? `The app host could not be started: ${exit.error}`
      : exit.signal !== null
        ? `The app host was ended by ${exit.signal}.`
        : `The app host ended with exit code ${exit.exitCode}.`;
  const last = lastLines.at(-1);
  return {
    code: 'E_NODE_LOST',
    message: last === undefined ? how : `${how} Its last line: ${last}`,
    details: { exitCode: exit.exitCode, signal: exit.signal, lastLines: [...lastLines] },
  };
}
