// Local scheduler of one app host: what waits, what is on offer, which instances there are.
//
// Owns: the queues of waiting invocations, how many of them are on offer to be claimed, the life of instances.
// Does not own: sessions and attempts (SessionMachine), the slots themselves (driver), placement across nodes.
//
// LS1. What waits is in the queue or on offer, never both; an invocation leaves by being claimed or withdrawn.
// LS2. Nothing is bound to an instance before it is claimed: whatever is free first takes the oldest.
// LS3. Instances never exceed the limit; each start and each retirement says why.
// LS4. An instance that dies while it starts is started again after a back-off, and never blocks what others can run.
// LS6. A pool whose attempts are long keeps one instance free while all others are busy, as far as the limit allows: an
//      attempt that is tried again, because its instance died or never ends it, shall not wait for a start.
// LS5. At the limit a pool gives up instances for one that has work and none, or far fewer: idle ones at once, busy ones
//      when their attempts have ended. So every pool with work gets its turn, however many pools there are.

import { assert, type ErrorData, type Prng, unreachable } from '../../base/index.ts';
import {
  BACKOFF_JITTER,
  KEEP_ALIVE_MS,
  OFFERS_PER_INSTANCE,
  RESERVE_INSTANCES,
  ROOM_RETRY_MS,
  ROTATE_AFTER_MS,
  SPARE_BODY_MS,
  SPARE_BODY_WEIGHT,
  START_AFTER_MS,
  START_BACKOFF_MAX_MS,
  START_BACKOFF_MIN_MS,
  START_FAILURES_MAX,
} from './limits.ts';
import type { Invocation } from './session.ts';
import { rankOf, WaitQueue } from './wait-queue.ts';

/**
 *   starting ──ready──▶ idle ◀──▶ busy
 *      │                 │          │
 *      └──────▶ gone ◀───┴── draining
 */
export type InstanceState = 'starting' | 'idle' | 'busy' | 'draining' | 'gone';

export interface Instance {
  readonly slot: number;
  readonly id: string;
  readonly pool: string;
  readonly startedAtMs: number;
  readonly whyStarted: string;
  state: InstanceState;
  /** Attempts that run on it, overtaken ones that have not returned yet included. */
  running: number;
  useCount: number;
  /** Since when it has run something, ms. */
  busySinceMs: number;
  idleSinceMs: number;
}

export type SchedulerEvent =
  | { readonly type: 'waiting'; readonly invocation: Invocation }
  | { readonly type: 'withdrawn'; readonly invocation: Invocation }
  /** An instance has begun an attempt, of an offer or of what it had made itself; undefined: of something overtaken. */
  | { readonly type: 'claimed'; readonly invocation: Invocation | undefined; readonly slot: number }
  | { readonly type: 'attempt-over'; readonly slot: number }
  /** There was no slot for it, or whoever had claimed it died before it began: it waits again. */
  | { readonly type: 'offer-refused'; readonly invocation: Invocation }
  /** It was on offer and is lost or taken back; the session machine decides what comes next. */
  | { readonly type: 'offer-ended'; readonly invocation: Invocation }
  /** Instances of the pool have that many offers of their own that nobody has claimed. */
  | { readonly type: 'demand'; readonly pool: string; readonly offers: number }
  | { readonly type: 'instance-ready'; readonly slot: number }
  | { readonly type: 'instance-gone'; readonly slot: number; readonly error: ErrorData | undefined }
  | { readonly type: 'time-passed' };

export type SchedulerEffect =
  | { readonly type: 'offer'; readonly invocation: Invocation }
  | { readonly type: 'start-instance'; readonly instance: Instance }
  | { readonly type: 'retire'; readonly instance: Instance; readonly why: string }
  /** No instance of the pool can be started: what waits for it fails with this. */
  | { readonly type: 'pool-broken'; readonly pool: string; readonly error: ErrorData };

interface Pool {
  readonly name: string;
  readonly queue: WaitQueue;
  /** Of whatever came first; `ranked`: not all were of that rank. */
  rank: number | undefined;
  ranked: boolean;
  /** On offer by the host, in slots. */
  readonly offered: Set<Invocation>;
  readonly instances: Set<Instance>;
  /** Since when something waits without an instance to take it; -1 = nothing does. */
  waitsSinceMs: number;
  /** Estimated time that an instance is busy with one attempt, ms. */
  bodyMs: number;
  startFailures: number;
  startNotBeforeMs: number;
  /** It looked for room in vain: not again before. */
  roomNotBeforeMs: number;
}

export interface LocalSchedulerOptions {
  readonly instancesMax: number;
  /** Names of the pools. */
  readonly pools: readonly string[];
  /** Instances started ahead in the first pool. */
  readonly reserve?: number;
}

export class LocalScheduler {
  readonly #options: LocalSchedulerOptions;
  readonly #random: Prng;
  readonly #pools = new Map<string, Pool>();
  readonly #bySlot: (Instance | undefined)[] = [];
  #instanceCount = 0;
  #nextInstance = 1;
  #effects: SchedulerEffect[] = [];
  #nowMs = 0;

  constructor(options: LocalSchedulerOptions, random: Prng) {
    this.#options = options;
    this.#random = random;
    for (const name of options.pools) {
      this.#pools.set(name, {
        name,
        queue: new WaitQueue(),
        rank: undefined,
        ranked: false,
        offered: new Set(),
        instances: new Set(),
        waitsSinceMs: -1,
        bodyMs: 0,
        startFailures: 0,
        startNotBeforeMs: 0,
        roomNotBeforeMs: 0,
      });
    }
  }

  handle(event: SchedulerEvent, nowMs: number): SchedulerEffect[] {
    this.#effects = [];
    this.#nowMs = nowMs;
    switch (event.type) {
      case 'waiting': {
        const pool = this.#pool(event.invocation.row.pool);
        const rank = rankOf(event.invocation);
        if (pool.rank === undefined) pool.rank = rank;
        else if (pool.rank !== rank) pool.ranked = true;
        pool.queue.push(event.invocation, nowMs);
        this.#feed(pool);
        break;
      }
      case 'withdrawn': {
        const pool = this.#pool(event.invocation.row.pool);
        if (!pool.offered.delete(event.invocation)) pool.queue.withdrawn();
        this.#feed(pool);
        break;
      }
      case 'claimed': {
        const instance = this.#bySlot[event.slot];
        if (instance !== undefined) {
          if (instance.running++ === 0) instance.busySinceMs = nowMs;
          instance.useCount++;
          if (instance.state === 'idle') instance.state = 'busy';
          this.#spare(this.#pool(instance.pool));
        }
        if (event.invocation === undefined) break;
        const pool = this.#pool(event.invocation.row.pool);
        if (pool.offered.delete(event.invocation)) this.#feed(pool);
        break;
      }
      case 'attempt-over': {
        const instance = this.#bySlot[event.slot];
        if (instance !== undefined && --instance.running === 0) {
          if (instance.state === 'busy') instance.state = 'idle';
          instance.idleSinceMs = nowMs;
          const pool = this.#pool(instance.pool);
          pool.bodyMs += SPARE_BODY_WEIGHT * (nowMs - instance.busySinceMs - pool.bodyMs);
        }
        break;
      }
      case 'offer-refused': {
        const pool = this.#pool(event.invocation.row.pool);
        // It goes to the back of its class: slots are full of older offers of instances.
        if (pool.offered.delete(event.invocation)) pool.queue.push(event.invocation, nowMs);
        break;
      }
      case 'offer-ended':
        this.#pool(event.invocation.row.pool).offered.delete(event.invocation);
        break;
      case 'demand':
        this.#demand(this.#pool(event.pool), event.offers);
        break;
      case 'instance-ready':
        this.#ready(event.slot);
        break;
      case 'instance-gone':
        this.#gone(event.slot, event.error);
        break;
      case 'time-passed':
        this.#timePassed();
        break;
      default:
        unreachable(event, 'SchedulerEvent');
    }
    return this.#effects;
  }

  /** Starts an instance without waiting for demand. @returns undefined when the limit is reached. */
  prewarm(pool: string, why: string, nowMs: number): SchedulerEffect[] {
    this.#effects = [];
    this.#nowMs = nowMs;
    this.#startInstance(this.#pool(pool), why);
    return this.#effects;
  }

  instance(slot: number): Instance | undefined {
    return this.#bySlot[slot];
  }

  *instances(): Generator<Instance> {
    for (const instance of this.#bySlot) if (instance !== undefined) yield instance;
  }

  /** Whether it is in a slot, as far as is known here. */
  isOnOffer(invocation: Invocation): boolean {
    return this.#pool(invocation.row.pool).offered.has(invocation);
  }

  /** What waits in the pool's queue and is not on offer. */
  backlogOf(pool: string): number {
    return this.#pool(pool).queue.size;
  }

  get waiting(): number {
    let sum = 0;
    for (const pool of this.#pools.values()) sum += pool.queue.size + pool.offered.size;
    return sum;
  }

  /** Everything that waits, in queues or on offer. Cost: all of it. */
  waitingInvocations(): Set<Invocation> {
    const all = new Set<Invocation>();
    for (const pool of this.#pools.values()) {
      for (const invocation of pool.queue.values()) all.add(invocation);
      for (const invocation of pool.offered) all.add(invocation);
    }
    return all;
  }

  whyKept(instance: Instance): string {
    if (instance.state === 'starting') return 'it is starting';
    if (instance.state === 'draining') return 'it ends when its attempts have ended';
    if (instance.running > 0) return `it runs ${instance.running} attempt(s)`;
    const pool = this.#pool(instance.pool);
    if (pool.instances.size <= RESERVE_INSTANCES) return `reserve of ${RESERVE_INSTANCES} per pool`;
    return `idle for less than ${KEEP_ALIVE_MS / 1000} s`;
  }

  /** Monotonic ms; undefined when nothing is timed. */
  nextTimerMs(): number | undefined {
    let next: number | undefined;
    const earlier = (at: number) => {
      if (next === undefined || at < next) next = at;
    };
    for (const pool of this.#pools.values()) {
      if (pool.waitsSinceMs >= 0 && this.#mayStart(pool)) {
        const room = this.#isFull ? pool.roomNotBeforeMs : 0;
        earlier(Math.max(pool.waitsSinceMs + START_AFTER_MS, pool.startNotBeforeMs, room));
      }
      if (pool.instances.size > RESERVE_INSTANCES) {
        for (const instance of pool.instances) {
          if (instance.state === 'idle') earlier(instance.idleSinceMs + KEEP_ALIVE_MS);
        }
      }
    }
    return next;
  }

  checkInvariants(): void {
    let count = 0;
    for (const pool of this.#pools.values()) {
      count += pool.instances.size;
      for (const invocation of pool.offered) assert(invocation.place === 'queued', 'what is on offer is queued (LS1)');
    }
    assert(
      count === this.#instanceCount && count <= this.#options.instancesMax,
      'instances are within the limit (LS3)',
    );
  }

  /**
   * Puts as much on offer as instances could take soon; the rest keeps its order in the queue. What goes before all that is
   * on offer does not wait for room: there are slots for it, and who claims takes it first.
   */
  #feed(pool: Pool): void {
    const room = Math.max(1, pool.instances.size) * OFFERS_PER_INSTANCE;
    while (pool.offered.size < room || (pool.ranked && this.#outranks(pool, 2 * room))) {
      const invocation = pool.queue.shift(this.#nowMs);
      if (invocation === undefined) break;
      pool.offered.add(invocation);
      this.#effects.push({ type: 'offer', invocation });
    }
    if (pool.queue.size + pool.offered.size === 0) pool.waitsSinceMs = -1;
    else this.#wait(pool);
  }

  #outranks(pool: Pool, room: number): boolean {
    const first = pool.offered.size < room ? pool.queue.peek(this.#nowMs) : undefined;
    if (first === undefined) return false;
    const rank = rankOf(first);
    for (const offered of pool.offered) if (rankOf(offered) >= rank) return false;
    return true;
  }

  /** (LS6) */
  #spare(pool: Pool): void {
    if (pool.bodyMs < SPARE_BODY_MS || this.#instanceCount + 1 >= this.#options.instancesMax) return;
    if (this.#nowMs < pool.startNotBeforeMs) return;
    let busy = 0;
    for (const instance of pool.instances) {
      if (instance.state === 'idle' || instance.state === 'starting') return;
      if (instance.state === 'busy') busy++;
    }
    if (busy > 0)
      this.#startInstance(pool, `spare: all ${busy} are busy, and for ${Math.round(pool.bodyMs)} ms each time`);
  }

  /** Something waits: if no instance is idle, time runs until another one is started. */
  #wait(pool: Pool): void {
    if (idle(pool)) {
      pool.waitsSinceMs = -1;
      return;
    }
    if (pool.waitsSinceMs < 0) pool.waitsSinceMs = this.#nowMs;
    // Without any instance there is nothing to wait for.
    if (pool.instances.size === 0 && this.#nowMs >= pool.startNotBeforeMs) {
      if (this.#isFull) this.#makeRoom(pool);
      else this.#startInstance(pool, 'first work of its pool');
    }
  }

  #demand(pool: Pool, offers: number): void {
    // What was refused for want of a slot is offered again.
    this.#feed(pool);
    if (offers > 0) this.#wait(pool);
  }

  get #isFull(): boolean {
    return this.#instanceCount >= this.#options.instancesMax;
  }

  #mayStart(pool: Pool): boolean {
    return starting(pool) < Math.max(1, waiting(pool));
  }

  /** Pools in which something waits: those with the fewest instances first, then the longest wait. */
  #inNeed(): Pool[] {
    const pools = [...this.#pools.values()].filter((pool) => pool.waitsSinceMs >= 0);
    return pools.sort((a, b) => a.instances.size - b.instances.size || a.waitsSinceMs - b.waitsSinceMs);
  }

  /** (LS5) */
  #makeRoom(pool: Pool): void {
    if (this.#nowMs < pool.roomNotBeforeMs) return;
    pool.roomNotBeforeMs = this.#nowMs + ROOM_RETRY_MS;
    let idlest: Instance | undefined;
    let richest: Pool | undefined;
    let oldest: Instance | undefined;
    for (const other of this.#pools.values()) {
      if (other === pool) continue;
      let size = 0;
      for (const instance of other.instances) {
        if (instance.state === 'draining') return; // there is room soon
        if (instance.state === 'starting') continue;
        size++;
        if (oldest === undefined || instance.startedAtMs < oldest.startedAtMs) oldest = instance;
        if (instance.state !== 'idle' || waiting(other) > 0) continue;
        if (pool.instances.size > 0 && other.instances.size <= RESERVE_INSTANCES) continue;
        if (idlest === undefined || instance.idleSinceMs < idlest.idleSinceMs) idlest = instance;
      }
      if (size >= pool.instances.size + 2 && size > (richest?.instances.size ?? 0)) richest = other;
    }
    const waited = this.#nowMs - pool.waitsSinceMs >= ROTATE_AFTER_MS;
    const given =
      idlest ??
      (richest !== undefined && (pool.instances.size === 0 || waited) ? firstOf(richest) : undefined) ??
      (pool.instances.size === 0 && waited ? oldest : undefined);
    if (given === undefined) return;
    given.state = 'draining';
    this.#effects.push({ type: 'retire', instance: given, why: `pool ${pool.name} had work and too few instances` });
  }

  #timePassed(): void {
    for (const pool of this.#inNeed()) {
      const dueMs = Math.max(pool.waitsSinceMs + START_AFTER_MS, pool.startNotBeforeMs);
      if (this.#nowMs < dueMs || !this.#mayStart(pool)) continue;
      if (this.#isFull) {
        this.#makeRoom(pool);
        continue;
      }
      const count = waiting(pool);
      this.#startInstance(pool, `${count} waited ${START_AFTER_MS} ms and no instance was free`);
      pool.waitsSinceMs = this.#nowMs;
    }
    for (const pool of this.#pools.values()) {
      if (pool.instances.size <= RESERVE_INSTANCES) continue;
      for (const instance of pool.instances) {
        if (pool.instances.size <= RESERVE_INSTANCES) break;
        if (instance.state !== 'idle' || this.#nowMs < instance.idleSinceMs + KEEP_ALIVE_MS) continue;
        instance.state = 'draining';
        this.#effects.push({ type: 'retire', instance, why: `idle for ${KEEP_ALIVE_MS / 1000} s` });
        break;
      }
    }
  }

  #startInstance(pool: Pool, whyStarted: string): void {
    if (this.#isFull) return;
    let slot = this.#bySlot.indexOf(undefined);
    if (slot < 0) slot = this.#bySlot.length;
    const instance: Instance = {
      slot,
      id: `i${this.#nextInstance++}`,
      pool: pool.name,
      startedAtMs: this.#nowMs,
      whyStarted,
      state: 'starting',
      running: 0,
      useCount: 0,
      busySinceMs: this.#nowMs,
      idleSinceMs: this.#nowMs,
    };
    this.#bySlot[slot] = instance;
    this.#instanceCount++;
    pool.instances.add(instance);
    this.#effects.push({ type: 'start-instance', instance });
  }

  #ready(slot: number): void {
    const instance = this.#bySlot[slot];
    if (instance === undefined || instance.state !== 'starting') return;
    instance.state = instance.running > 0 ? 'busy' : 'idle';
    instance.idleSinceMs = this.#nowMs;
    const pool = this.#pool(instance.pool);
    pool.startFailures = 0;
    pool.startNotBeforeMs = 0;
    this.#feed(pool);
  }

  #gone(slot: number, error: ErrorData | undefined): void {
    const instance = this.#bySlot[slot];
    if (instance === undefined) return;
    const pool = this.#pool(instance.pool);
    this.#bySlot[slot] = undefined;
    this.#instanceCount--;
    pool.instances.delete(instance);
    const failedToStart = instance.state === 'starting';
    instance.state = 'gone';
    if (failedToStart) {
      // (LS4)
      pool.startFailures++;
      const base = Math.min(START_BACKOFF_MAX_MS, START_BACKOFF_MIN_MS * 2 ** (pool.startFailures - 1));
      pool.startNotBeforeMs = this.#nowMs + base * (1 + BACKOFF_JITTER * this.#random.float());
      if (pool.startFailures >= START_FAILURES_MAX && pool.instances.size === 0) {
        this.#effects.push({
          type: 'pool-broken',
          pool: pool.name,
          error: error ?? { code: 'E_NODE_LOST', message: 'its instances end before they are ready' },
        });
      }
    }
    // Whoever has none comes before the pool that gave this one up.
    for (const other of this.#inNeed()) {
      if (this.#isFull || other.instances.size > 0) break;
      if (this.#nowMs >= other.startNotBeforeMs) this.#startInstance(other, 'first work of its pool');
    }
    this.#feed(pool);
  }

  #pool(name: string): Pool {
    const pool = this.#pools.get(name);
    assert(pool !== undefined, 'a function names a pool of this host');
    return pool;
  }
}

function idle(pool: Pool): boolean {
  for (const instance of pool.instances) if (instance.state === 'idle') return true;
  return false;
}

/** An instance that could be given up: one that runs nothing if there is one. */
function firstOf(pool: Pool): Instance | undefined {
  let found: Instance | undefined;
  for (const instance of pool.instances) {
    if (instance.state === 'idle') return instance;
    if (instance.state === 'busy') found ??= instance;
  }
  return found;
}

function starting(pool: Pool): number {
  let count = 0;
  for (const instance of pool.instances) if (instance.state === 'starting') count++;
  return count;
}

function waiting(pool: Pool): number {
  return pool.queue.size + pool.offered.size;
}
