// A simulated machine: one server over the production composition, its app hosts, one disk.
//
// Owns: which server runs, which processes live.
// Does not own: when something dies (faults), what clients ask (clients).

import { createHash } from 'node:crypto';
import { type EpochMs, MIB, type MonotonicMs, type Prng } from '../base/index.ts';
import { type Core, startCore } from '../node/index.ts';
import type { Clock, Random, Timers } from '../platform/index.ts';
import { type AppCode, AppProcess } from './app-process.ts';
import { SimDisk } from './disk.ts';
import { SimNetwork } from './network.ts';
import type { Actor, World } from './world.ts';

/** Small, so that queues fill and instances are contended for. */
export interface MachineSettings {
  readonly instancesMax: number;
  readonly queueMax: number;
  readonly inlineBytesMax: number;
}

/** Server and clients speak of this server's life only. */
export interface Server {
  readonly actor: Actor;
  /** Counts up over the run. */
  readonly boot: number;
  /** Undefined until it takes requests. */
  core: Core | undefined;
}

const BOOT_MS = 20;
const EPOCH_MS = 1_700_000_000_000;

export class SimMachine {
  readonly world: World;
  readonly disk: SimDisk;
  readonly network: SimNetwork;
  readonly processes: AppProcess[] = [];
  readonly settings: MachineSettings;
  readonly reports: string[] = [];
  server: Server | undefined;
  #boots = 0;
  /** Wall clock minus monotonic clock: somebody may set the clock. */
  epochOffsetMs = EPOCH_MS;
  readonly #code: AppCode;
  readonly #mourners = new Set<() => void>();

  constructor(world: World, settings: MachineSettings, code: AppCode) {
    this.world = world;
    this.settings = settings;
    this.#code = code;
    this.disk = new SimDisk(world);
    this.network = new SimNetwork(world);
  }

  epochMs(): number {
    return Math.floor(this.world.nowMs + this.epochOffsetMs);
  }

  /** The processes that live. */
  *alive(): Generator<AppProcess> {
    for (const one of this.processes) if (one.actor.alive) yield one;
  }

  startServer(): Server {
    const { world } = this;
    const actor = world.actor(`server${++this.#boots}`);
    const server: Server = { actor, boot: this.#boots, core: undefined };
    this.server = server;
    actor.onDeath = () => this.#serverDied(server);
    world.soon(actor, BOOT_MS, 'boots', () => {
      this.#start(actor).then(
        (core) => {
          server.core = core;
          core.ready();
        },
        (error) => world.caught(error),
      );
    });
    return server;
  }

  /** @returns how to be told no more. */
  onServerDeath(callback: () => void): () => void {
    this.#mourners.add(callback);
    return () => void this.#mourners.delete(callback);
  }

  /** All machines, hosts and the server: asserts what must hold between two events. */
  checkInvariants(): void {
    if (this.server?.actor.alive) this.server.core?.coordinator.checkInvariants();
    for (const { host } of this.alive()) host?.checkInvariants();
  }

  #start(actor: Actor): Promise<Core> {
    const { world } = this;
    const clock: Clock = {
      monotonicMs: () => world.readClock(actor) as MonotonicMs,
      epochMs: () => this.epochMs() as EpochMs,
    };
    const timers: Timers = { set: (atMs, callback) => world.at(actor, atMs, '', callback) };
    const chance = world.random(`server ${this.#boots}`);
    return startCore(
      {
        clock,
        timers,
        random: randomOf(chance),
        digest: (parts) => {
          const hash = createHash('sha256');
          for (const part of parts) hash.update(`${part.length}:`).update(part);
          return hash.digest('hex');
        },
        processes: {
          spawn: (options) => {
            const { disk, network } = this;
            const parts = { world, disk, network, code: this.#code, epochMs: () => this.epochMs() };
            const one = new AppProcess(parts, options, actor, this.processes.length + 1);
            this.processes.push(one);
            return one;
          },
        },
        store: this.disk.store(actor),
        folder: this.disk.folder(actor),
        listen: async (onChannel) => this.network.listen(actor, onChannel),
        log: ({ level, message }) => {
          world.note(`${actor.name} ${level}: ${message}`);
          if (level === 'error') this.reports.push(message);
        },
      },
      {
        settings: {
          allowedHosts: [],
          bodyBytesMax: MIB,
          objectBytesMax: 64 * MIB,
          objectOverBytesMax: 64 * MIB,
          spillBytesMax: 64 * MIB,
          persistedBytesMax: 64 * MIB,
          persistedRetentionMs: 0,
          weights: {},
          verifyObjects: true,
          ...this.settings,
        },
        packageRoot: '/sim/antrail',
        host: { file: 'node', args: [], env: {} },
      },
      [],
    );
  }

  #serverDied(server: Server): void {
    server.core = undefined;
    this.network.died(server.actor);
    this.disk.crash();
    for (const callback of [...this.#mourners]) callback();
  }
}

function randomOf(chance: Prng): Random {
  return {
    uint32: () => chance.uint32(),
    bytes: (count) => Uint8Array.from({ length: count }, () => chance.int(256)),
  };
}
