// What goes wrong in one run. The seed chooses how much of each, so that some runs are calm and some are cruel.

import type { Prng } from '../base/index.ts';
import type { Client } from './clients.ts';
import type { History } from './history.ts';
import type { SimMachine } from './machine.ts';
import type { World } from './world.ts';

export interface FaultPlan {
  /** How many of each in a run, on average. */
  readonly threadDeaths: number;
  readonly hostDeaths: number;
  readonly serverDeaths: number;
  readonly cuts: number;
  readonly pauses: number;
  readonly slowDisks: number;
  readonly slowNetworks: number;
  readonly clockJumps: number;
  /** Share of answers to clients that get lost. */
  readonly lostAnswers: number;
}

export function planFaults(random: Prng): FaultPlan {
  const some = (max: number) => (random.float() < 0.5 ? 0 : random.float() * max);
  if (random.float() < 0.15) {
    return {
      threadDeaths: 0,
      hostDeaths: 0,
      serverDeaths: 0,
      cuts: 0,
      pauses: 0,
      slowDisks: 0,
      slowNetworks: 0,
      clockJumps: 0,
      lostAnswers: 0,
    };
  }
  return {
    threadDeaths: some(8),
    hostDeaths: some(4),
    serverDeaths: some(3),
    cuts: some(4),
    pauses: some(6),
    slowDisks: some(3),
    slowNetworks: some(3),
    clockJumps: some(3),
    lostAnswers: some(0.2),
  };
}

/** Ports that a process calls before it dies in the middle of a turn. */
const PORTS_MAX = 40;
const DISK_MS = 2;
const NETWORK_MS = 0.2;
/** Less than what everything may take to end: a delay that was promised by the wall clock waits so much longer. */
const CLOCK_JUMP_MS = 40_000;

export class Faults {
  readonly #world: World;
  readonly #machine: SimMachine;
  readonly #history: History;
  readonly #client: Client;
  readonly #random: Prng;
  #isOver = false;

  constructor(world: World, machine: SimMachine, history: History, client: Client) {
    this.#world = world;
    this.#machine = machine;
    this.#history = history;
    this.#client = client;
    this.#random = world.random('faults');
  }

  begin(plan: FaultPlan, spanMs: number): void {
    const { threadDeaths, hostDeaths, serverDeaths, cuts, pauses, slowDisks, slowNetworks, clockJumps } = plan;
    this.#client.lossiness = plan.lostAnswers;
    this.#some(threadDeaths, spanMs, 'a thread dies', () => this.#killThread());
    this.#some(hostDeaths, spanMs, 'a host dies', () => this.#killHost());
    this.#some(serverDeaths, spanMs, 'the server dies', () => this.#killServer());
    this.#some(
      cuts,
      spanMs,
      'a connection is cut',
      () => void this.#machine.network.cutOne((count) => this.#random.int(count)),
    );
    this.#some(pauses, spanMs, 'somebody stands still', () => this.#pause());
    this.#some(slowDisks, spanMs, 'the disk is slow', () => {
      this.#machine.disk.slownessMs = 10 + this.#random.int(100);
      this.#after(200, () => {
        this.#machine.disk.slownessMs = DISK_MS;
      });
    });
    this.#some(slowNetworks, spanMs, 'the network is slow', () => {
      this.#machine.network.latencyMs = 1 + this.#random.int(50);
      this.#after(200, () => {
        this.#machine.network.latencyMs = NETWORK_MS;
      });
    });
    this.#some(clockJumps, spanMs, 'the clock is set', () => {
      this.#machine.epochOffsetMs += (this.#random.float() - 0.5) * CLOCK_JUMP_MS;
    });
  }

  /** Everything works from now on. */
  end(): void {
    this.#isOver = true;
    this.#client.lossiness = 0;
    this.#machine.disk.slownessMs = DISK_MS;
    this.#machine.network.latencyMs = NETWORK_MS;
    const { server } = this.#machine;
    if (server !== undefined) server.actor.dyingIn = 0;
    for (const one of this.#machine.alive()) {
      one.actor.dyingIn = 0;
      for (const { actor } of one.threads) actor.dyingIn = 0;
    }
    if (server?.actor.alive !== true) this.#machine.startServer();
  }

  #some(average: number, spanMs: number, what: string, act: () => void): void {
    const count = Math.floor(average + this.#random.float());
    for (let i = 0; i < count; i++) {
      this.#world.later(this.#world.nowMs + 100 + this.#random.float() * spanMs, `fault: ${what}`, () => {
        if (!this.#isOver) act();
      });
    }
  }

  #after(ms: number, act: () => void): void {
    this.#world.later(this.#world.nowMs + this.#random.float() * ms, '', act);
  }

  #killThread(): void {
    const threads = [...this.#machine.alive()].flatMap((one) => [...one.threads].map(({ actor }) => ({ one, actor })));
    const chosen = threads[this.#random.int(Math.max(1, threads.length))];
    if (chosen === undefined) return;
    const { actor, one } = chosen;
    this.#history.deaths.push({ who: 'thread', name: actor.name, atMs: this.#world.nowMs });
    if (this.#random.float() < 0.7) actor.dyingIn = 1 + this.#random.int(PORTS_MAX);
    else one.endThread(actor, new Error('killed by the simulator'), 'killed');
  }

  #killHost(): void {
    const all = [...this.#machine.alive()];
    const one = all[this.#random.int(Math.max(1, all.length))];
    if (one === undefined) return;
    this.#history.deaths.push({ who: 'host', name: one.actor.name, atMs: this.#world.nowMs });
    if (this.#random.float() < 0.5) one.actor.dyingIn = 1 + this.#random.int(PORTS_MAX);
    else one.end({ exitCode: null, signal: 'SIGKILL' }, 'killed');
  }

  #killServer(): void {
    const { server } = this.#machine;
    if (server?.actor.alive !== true) return;
    const stop = this.#machine.onServerDeath(() => {
      stop();
      this.#history.deaths.push({ who: 'server', name: server.actor.name, atMs: this.#world.nowMs });
      this.#after(400, () => {
        if (this.#machine.server === server) this.#machine.startServer();
      });
    });
    if (this.#random.float() < 0.6) server.actor.dyingIn = 1 + this.#random.int(PORTS_MAX);
    else this.#world.kill(server.actor, 'killed');
  }

  #pause(): void {
    const processes = [...this.#machine.alive()];
    const actors = processes.flatMap((one) => [one.actor, ...[...one.threads].map(({ actor }) => actor)]);
    const { server } = this.#machine;
    if (server?.actor.alive) actors.push(server.actor);
    const actor = actors[this.#random.int(Math.max(1, actors.length))];
    if (actor === undefined || actor.pausedUntilMs > this.#world.nowMs) return;
    const ms = this.#random.int(this.#random.float() < 0.8 ? 100 : 1_000);
    this.#world.note(`fault: ${actor.name} stands still for ${ms} ms`);
    actor.pausedUntilMs = this.#world.nowMs + ms;
  }
}
