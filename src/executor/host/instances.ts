// Instances of one app host: their threads, slots, rings and bells.
//
// Owns: threads, event rings, tickets of each pool, which attempts really run where (overtaken ones too).
// Does not own: decisions about starting and ending them (LocalScheduler).

import { assert, type ErrorData, toErrorData } from '../../base/index.ts';
import type { AppTables, Slab, TriggersByBucket } from '../../bucket/index.ts';
import type { HostBoot, Manifest } from '../../protocol/index.ts';
import type { Instance } from '../../scheduler/local/index.ts';
import {
  Bells,
  createBells,
  createEventRing,
  createTicketMemory,
  EventRingReader,
  HOST_BELL,
  type HostToInstance,
  INSTANCE_SLOTS_MAX,
  type InstanceBoot,
  type InstanceToHost,
  LANE_SESSIONS,
  type Speaker,
  type SweptTicket,
  Tickets,
} from '../shared/index.ts';
import type { HostPorts, HostThread } from './ports.ts';

/** As many as fit above the host's own numbers. */
const LANE_BLOCKS = 0x8000_0000 / LANE_SESSIONS;
/** Owner number of the host in slab and tickets. */
export const HOST_OWNER = 1;

export interface PoolMemory {
  readonly name: string;
  readonly memory: SharedArrayBuffer;
  readonly tickets: Tickets;
  /** One byte per slot: 1 = an instance of this pool that may be woken. */
  readonly members: SharedArrayBuffer;
  readonly memberBytes: Uint8Array;
}

/** An attempt that an instance has begun and not ended, whether or not it still counts. */
export interface Actual extends Speaker {
  readonly startedAtMs: number;
  /** Its handler was told to stop; monotonic ms after which the instance is replaced. 0 = not told. */
  replaceAtMs: number;
}

export interface RunningInstance {
  readonly slot: number;
  readonly instance: Instance;
  readonly thread: HostThread;
  readonly reader: EventRingReader;
  readonly actual: Actual[];
  ready: boolean;
  /** It was told to end when what it runs has ended. */
  retiring: boolean;
  /** Its ring is read up to here for now. */
  readTo: number;
  /** Records that were taken from its ring. */
  recordsRead: number;
  /** Why it was ended by the host, if it was. */
  endedFor: ErrorData | undefined;
}

export interface InstanceEvents {
  readonly onMessage: (running: RunningInstance, message: InstanceToHost) => void;
  readonly onLine: (running: RunningInstance, stream: 'stdout' | 'stderr', line: string) => void;
  /** Its ring is still readable; afterwards call `remove`. */
  readonly onExit: (running: RunningInstance, error: ErrorData) => void;
}

export class Instances {
  readonly bells: Bells;
  readonly pools = new Map<string, PoolMemory>();
  readonly #bellMemory = createBells();
  readonly #running: (RunningInstance | undefined)[] = new Array(INSTANCE_SLOTS_MAX).fill(undefined);
  #laneBlock = 0;
  #actualCount = 0;
  readonly #boot: HostBoot;
  readonly #manifest: Manifest;
  readonly #slab: Slab;
  readonly #ports: HostPorts;
  readonly #events: InstanceEvents;

  constructor(
    boot: HostBoot,
    manifest: Manifest,
    tables: AppTables,
    slab: Slab,
    ports: HostPorts,
    events: InstanceEvents,
  ) {
    this.#boot = boot;
    this.#manifest = manifest;
    this.#slab = slab;
    this.#ports = ports;
    this.#events = events;
    this.bells = new Bells(this.#bellMemory, ports.waits);
    for (const row of tables.functions) {
      if (this.pools.has(row.pool)) continue;
      const memory = createTicketMemory();
      const members = new SharedArrayBuffer(INSTANCE_SLOTS_MAX);
      this.pools.set(row.pool, {
        name: row.pool,
        memory,
        tickets: new Tickets(memory, HOST_OWNER),
        members,
        memberBytes: new Uint8Array(members),
      });
    }
  }

  /** Blocks of session numbers for sessions that instances get themselves; the host numbers its own from 1. */
  nextLaneBase(): number {
    const base = 0x8000_0000 + (this.#laneBlock % LANE_BLOCKS) * LANE_SESSIONS;
    this.#laneBlock++;
    return base;
  }

  pool(name: string): PoolMemory {
    const pool = this.pools.get(name);
    assert(pool !== undefined, 'a function names a pool of this host');
    return pool;
  }

  at(slot: number): RunningInstance | undefined {
    return this.#running[slot];
  }

  *all(): Generator<RunningInstance> {
    for (const running of this.#running) if (running !== undefined) yield running;
  }

  /** Attempts that really run, on all of them. */
  get actualCount(): number {
    return this.#actualCount;
  }

  runsSomethingOf(sessionNo: number): boolean {
    for (const running of this.all()) {
      if (running.actual.some((one) => one.sessionNo === sessionNo)) return true;
    }
    return false;
  }

  attemptBegun(running: RunningInstance, { sessionNo, id, fence }: Speaker, startedAtMs: number): void {
    running.actual.push({ sessionNo, id, fence, startedAtMs, replaceAtMs: 0 });
    this.#actualCount++;
  }

  /** @returns the attempt, if its beginning was told. */
  attemptOver(running: RunningInstance, speaker: Speaker): Actual | undefined {
    const at = running.actual.findIndex((one) => sameAttempt(one, speaker));
    if (at < 0) return undefined;
    const actual = running.actual[at];
    running.actual.splice(at, 1);
    this.#actualCount--;
    return actual;
  }

  /** Its thread is gone: @returns what ran there. */
  allAttemptsOver(running: RunningInstance): Actual[] {
    const attempts = running.actual.splice(0);
    this.#actualCount -= attempts.length;
    return attempts;
  }

  start(instance: Instance, memoryMb: number, triggers: TriggersByBucket, tableVersion: number): void {
    const ring = createEventRing();
    const data: InstanceBoot = {
      instanceId: instance.id,
      slot: instance.slot,
      pool: instance.pool,
      app: this.#boot.app,
      version: this.#boot.version,
      laneBase: this.nextLaneBase(),
      lane: this.#boot.laneToken === undefined ? undefined : { socket: this.#boot.socket, token: this.#boot.laneToken },
      requestedAtMs: instance.startedAtMs,
      main: this.#boot.main,
      manifest: this.#manifest,
      triggers,
      tableVersion,
      env: this.#boot.env,
      secrets: this.#boot.secrets,
      slab: this.#slab.memory,
      pools: Object.fromEntries(
        Array.from(this.pools.values(), ({ name, memory, members }) => [name, { tickets: memory, members }]),
      ),
      bells: this.#bellMemory,
      ring,
      clockOriginMs: this.#ports.clockOriginMs,
      inlineBytesMax: this.#boot.limits.inlineBytesMax,
      verifyObjects: this.#boot.limits.verifyObjects,
    };
    this.bells.reset(instance.slot);
    let startError: ErrorData | undefined;
    const thread = this.#ports.startThread({
      data,
      memoryMb,
      env: this.#boot.env,
      onMessage: (message) => {
        const received = message as InstanceToHost;
        if (received.type === 'load-failed') startError = received.error;
        this.#events.onMessage(running, received);
      },
      onLine: (stream, line) => this.#events.onLine(running, stream, line),
      onExit: (exitCode, error) => {
        const why = running.endedFor ?? startError ?? exitError(exitCode, error, memoryMb);
        this.#events.onExit(running, why);
      },
    });
    const running: RunningInstance = {
      slot: instance.slot,
      instance,
      thread,
      reader: new EventRingReader(ring),
      actual: [],
      ready: false,
      retiring: false,
      readTo: 0,
      recordsRead: 0,
      endedFor: undefined,
    };
    this.#running[instance.slot] = running;
  }

  /** May be woken from now on. */
  admit(running: RunningInstance): void {
    running.ready = true;
    const { memberBytes, tickets } = this.pool(running.instance.pool);
    memberBytes[running.slot] = 1;
    // What was put on offer since it fell asleep had nobody to wake.
    if (tickets.readyCount > 0) this.bells.ring(running.slot);
  }

  post(slot: number, message: HostToInstance): void {
    this.#running[slot]?.thread.post(message);
  }

  /** No new offers wake it. */
  dismiss(slot: number): void {
    const running = this.#running[slot];
    if (running === undefined) return;
    running.retiring = true;
    this.pool(running.instance.pool).memberBytes[slot] = 0;
    running.thread.post({ type: 'retire' } satisfies HostToInstance);
  }

  terminate(running: RunningInstance, why: ErrorData): void {
    running.endedFor ??= why;
    this.pool(running.instance.pool).memberBytes[running.slot] = 0;
    running.thread.terminate();
  }

  /**
   * The thread is gone and everything that it told was read: its slots are free again.
   * @returns what it had claimed and not begun, or begun and not taken out of its slot.
   */
  remove(running: RunningInstance): SweptTicket[] {
    this.pool(running.instance.pool).memberBytes[running.slot] = 0;
    this.#running[running.slot] = undefined;
    this.bells.reset(running.slot);
    // It may have been offering to another pool.
    return Array.from(this.pools.values()).flatMap(({ tickets }) => tickets.sweep(running.slot + 2));
  }

  /** Wakes one sleeping instance of the pool. */
  wakeOne(pool: PoolMemory): boolean {
    const members = pool.memberBytes;
    for (let slot = 0; slot < members.length; slot++) {
      if (members[slot] === 1 && this.bells.ring(slot)) return true;
    }
    return false;
  }

  /** Sleeps until an instance rings; at once if `hasWork`. */
  sleep(hasWork: () => boolean, wake: () => void): boolean {
    return this.bells.sleep(HOST_BELL, hasWork, wake);
  }
}

export function sameAttempt(a: Speaker, b: Speaker): boolean {
  return a.sessionNo === b.sessionNo && a.id.lo === b.id.lo && a.id.hi === b.id.hi && a.fence === b.fence;
}

function exitError(exitCode: number, error: Error | undefined, memoryMb: number): ErrorData {
  if (error === undefined) {
    return {
      code: 'E_FUNCTION_FAILED',
      message: `the instance ended by itself with exit code ${exitCode} (process.exit)`,
    };
  }
  if ((error as { code?: string }).code === 'ERR_WORKER_OUT_OF_MEMORY') {
    return {
      code: 'E_FUNCTION_FAILED',
      message: `the instance ran out of memory: its heap limit is ${memoryMb} MB. Raise memoryMb of the function, or hold less at once`,
      name: 'OutOfMemory',
    };
  }
  return { ...toErrorData(error, 'E_FUNCTION_FAILED'), message: `the instance ended: ${error.message}` };
}
