// The process of a simulated app host: the real host and the real instances, over simulated threads.
//
// Owns: its threads, how they wait for each other, which of them lives.
// Does not own: what happens in them (executor), connections (network), the app's code (AppCode).
//
// AP1. Threads share memory and nothing else; what is posted is copied, as between real ones.

import { assert, toErrorData } from '../base/index.ts';
import { type HostToInstance, type InstanceBoot, type InstanceToHost, runInstance } from '../executor/guest/index.ts';
import { type Host, type HostPorts, type HostThread, type HostThreadOptions, runHost } from '../executor/host/index.ts';
import type { ProcessExit, SpawnedProcess, SpawnOptions } from '../platform/index.ts';
import type { HostBoot, Manifest } from '../protocol/index.ts';
import type { AppDefinition } from '../sdk/index.ts';
import type { SimDisk } from './disk.ts';
import type { SimNetwork } from './network.ts';
import { type Actor, DEAD, type World } from './world.ts';

type WordWaits = NonNullable<HostPorts['waits']>;

/** Where a handler runs: what the interpreter of scripts needs to know of its surroundings. */
export interface HandlerPlace {
  /** Counts up over all processes of a run. */
  readonly incarnation: number;
  readonly actor: Actor;
  /** `process.exit`, or out of memory. */
  readonly exit: (error?: Error) => void;
}

export interface AppCode {
  /** The default export of a bundle's main module, as loaded by one instance. */
  load(text: string, place: HandlerPlace): AppDefinition;
}

export interface ProcessParts {
  readonly world: World;
  readonly disk: SimDisk;
  readonly network: SimNetwork;
  readonly code: AppCode;
  readonly epochMs: () => number;
}

interface Thread {
  readonly actor: Actor;
  readonly options: HostThreadOptions;
  receive: ((message: HostToInstance) => void) | undefined;
  /** Posted before it listened. */
  readonly waiting: HostToInstance[];
  /** When the newest message to it, and from it, arrives: order is kept. */
  lastInMs: number;
  lastOutMs: number;
  /** What it died of, if it was something. */
  error: Error | undefined;
}

const START_MS = 20;
const LOAD_MS = 5;
const TURN_MS = 0.01;
const POST_MS = 0.05;
const LATE_POST_MS = 10;
const LATE_SHARE = 0.05;
const WAKE_MS = 0.05;
const END_MS = 2;
const TINY_MS = 1e-6;

export class AppProcess implements SpawnedProcess {
  readonly actor: Actor;
  readonly pid: number;
  readonly incarnation: number;
  readonly boot: HostBoot;
  host: Host | undefined;
  readonly threads = new Set<Thread>();
  readonly #parts: ProcessParts;
  readonly #options: SpawnOptions;
  readonly #parent: Actor;
  readonly #sleepers = new Map<number, { readonly actor: Actor; readonly wake: () => void }[]>();
  #threadCount = 0;
  #exit: ProcessExit = { exitCode: null, signal: 'SIGKILL' };

  constructor(parts: ProcessParts, options: SpawnOptions, parent: Actor, incarnation: number) {
    this.#parts = parts;
    this.#options = options;
    this.#parent = parent;
    this.incarnation = incarnation;
    this.pid = 1_000 + incarnation;
    this.actor = parts.world.actor(`host${incarnation}`);
    this.boot = JSON.parse(options.env.ANTRAIL_HOST ?? '') as HostBoot;
    this.actor.onDeath = () => this.#died();
    parts.world.soon(this.actor, START_MS, `starts ${this.boot.app}/${this.boot.version}`, () => this.#start());
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    const { world } = this.#parts;
    const end = () => this.end({ exitCode: null, signal }, signal);
    // Who stands still gets SIGTERM when it goes on, and SIGKILL at once.
    if (signal === 'SIGTERM') world.soon(this.actor, END_MS, '', end);
    else world.later(world.nowMs + world.schedule.float() * END_MS, '', end);
  }

  end(exit: ProcessExit, why: string): void {
    if (!this.actor.alive) return;
    this.#exit = exit;
    this.#parts.world.kill(this.actor, why);
  }

  /** One of its threads ends by itself, or because it must. */
  endThread(actor: Actor, error: Error | undefined, why: string): void {
    const thread = [...this.threads].find((one) => one.actor === actor);
    if (thread === undefined) return;
    thread.error = error;
    this.#parts.world.kill(actor, why);
  }

  #died(): void {
    const { world, network } = this.#parts;
    for (const { actor } of this.threads) {
      actor.onDeath = undefined;
      world.kill(actor, `with ${this.actor.name}`);
      network.died(actor);
    }
    network.died(this.actor);
    world.soon(this.#parent, END_MS, `${this.actor.name} has ended`, () => this.#options.onExit(this.#exit));
  }

  #start(): void {
    const { world, disk, network, epochMs } = this.#parts;
    const text = (path: string): string => {
      const bytes = disk.files.get(`${this.boot.folder}/${path}`.replace('/sim/', ''));
      assert(bytes !== undefined, `the bundle has ${path}`);
      return new TextDecoder().decode(bytes);
    };
    const { actor } = this;
    runHost(this.boot, JSON.parse(text('manifest.json')) as Manifest, {
      pid: this.pid,
      connect: (address, options) => network.connect(actor, address, options),
      monotonicMs: () => world.readClock(actor),
      epochMs,
      setTimer: (atMs, callback) => world.at(actor, atMs, '', callback),
      afterTurn: (callback) => void world.soon(actor, TURN_MS, '', callback),
      seed: world.schedule.uint32(),
      clockOriginMs: 0,
      startThread: (options) => this.#startThread(options, () => text(this.boot.main)),
      waits: this.#waitsOf(actor),
      kill: () => this.end({ exitCode: null, signal: 'SIGKILL' }, 'it has no server'),
      exit: (exitCode) => this.end({ exitCode, signal: null }, `exit ${exitCode}`),
    }).then(
      (host) => {
        this.host = host;
      },
      () => this.end({ exitCode: 1, signal: null }, 'it cannot reach its server'),
    );
  }

  #startThread(options: HostThreadOptions, readMain: () => string): HostThread {
    const { world, network, code, epochMs } = this.#parts;
    const actor = world.actor(`host${this.incarnation}.${++this.#threadCount}`);
    const thread: Thread = {
      actor,
      options,
      receive: undefined,
      waiting: [],
      lastInMs: 0,
      lastOutMs: 0,
      error: undefined,
    };
    this.threads.add(thread);
    actor.onDeath = () => this.#threadDied(thread);
    const boot = structuredClone(options.data) as InstanceBoot;
    const post = (message: InstanceToHost): void => {
      world.touch(actor);
      const copy = structuredClone(message);
      thread.lastOutMs = Math.max(thread.lastOutMs + TINY_MS, world.nowMs + this.#postMs());
      world.at(this.actor, thread.lastOutMs, '', () => {
        world.note(`${actor.name} => ${this.actor.name} ${copy.type}`);
        options.onMessage(copy);
      });
    };
    world.soon(actor, LOAD_MS, 'starts', () => {
      const place: HandlerPlace = {
        incarnation: this.incarnation,
        actor,
        exit: (error) => {
          this.endThread(actor, error, error === undefined ? 'process.exit' : error.message);
          throw DEAD;
        },
      };
      runInstance(boot, {
        monotonicMs: () => world.readClock(actor),
        epochMs,
        post,
        afterTurn: (callback) => void world.soon(actor, TURN_MS, '', callback),
        later: (delayMs, callback) => void world.at(actor, world.nowMs + delayMs, '', callback),
        waits: this.#waitsOf(actor),
        load: async () => ({ default: code.load(readMain(), place) }),
        connect: (address, channelOptions) => network.connect(actor, address, channelOptions),
        onMessage: (receive) => {
          thread.receive = receive;
          for (const message of thread.waiting.splice(0)) this.#deliver(thread, message);
        },
      }).catch((thrown: unknown) => {
        if (thrown === DEAD || !actor.alive) return;
        post({ type: 'load-failed', error: toErrorData(thrown, 'E_APP_INVALID') });
        world.soon(actor, END_MS, 'ends', () => this.endThread(actor, undefined, 'it could not be loaded'));
      });
    });
    return {
      post: (message) => {
        const copy = structuredClone(message) as HostToInstance;
        if (thread.receive === undefined) thread.waiting.push(copy);
        else this.#deliver(thread, copy);
      },
      terminate: () => {
        if (!actor.alive) return;
        // It is stopped wherever it is, also in a loop without end.
        const atMs = world.nowMs + world.schedule.float() * END_MS;
        world.later(atMs, '', () => this.endThread(actor, undefined, 'terminated'));
      },
    };
  }

  #deliver(thread: Thread, message: HostToInstance): void {
    const { world } = this.#parts;
    thread.lastInMs = Math.max(thread.lastInMs + TINY_MS, world.nowMs + this.#postMs());
    world.at(thread.actor, thread.lastInMs, '', () => {
      world.note(`${this.actor.name} => ${thread.actor.name} ${message.type}`);
      thread.receive?.(message);
    });
  }

  /** Now and then the receiver is at something else. */
  #postMs(): number {
    const { schedule } = this.#parts.world;
    return schedule.float() * (schedule.float() < LATE_SHARE ? LATE_POST_MS : POST_MS);
  }

  #threadDied(thread: Thread): void {
    if (!this.threads.delete(thread)) return;
    const { world, network } = this.#parts;
    const { actor, options, error } = thread;
    network.died(actor);
    // After the last of what it posted.
    const atMs = Math.max(thread.lastOutMs + TINY_MS, world.nowMs + world.schedule.float() * END_MS);
    world.at(this.actor, atMs, `${actor.name} has ended`, () => options.onExit(1, error));
  }

  #waitsOf(actor: Actor): WordWaits {
    const { world } = this.#parts;
    return {
      wait: (words, index, value, wake) => {
        if (Atomics.load(words, index) !== value) {
          world.soon(actor, WAKE_MS, '', wake);
          return;
        }
        const sleepers = this.#sleepers.get(index);
        if (sleepers === undefined) this.#sleepers.set(index, [{ actor, wake }]);
        else sleepers.push({ actor, wake });
      },
      notify: (_words, index) => {
        const sleepers = this.#sleepers.get(index) ?? [];
        this.#sleepers.delete(index);
        for (const one of sleepers) world.soon(one.actor, WAKE_MS, `woken by ${actor.name}`, one.wake);
        world.touch(actor);
      },
      block: () => assert(false, 'what a simulated instance tells in one turn fits its ring'),
    };
  }
}
