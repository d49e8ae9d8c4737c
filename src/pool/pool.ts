// Instances of one pool: when they start, how long they stay, and why.
//
// Owns: the life of each instance, how many invocations wait for one, what was learnt of bodies, starts and gaps.
// Does not own: which invocation runs where (late binding: whatever is free takes the oldest), threads, limits of the node.
//
// PO1. An instance is in exactly one state; it runs at most one invocation (the caller counts more as more levels).
// PO2. Nothing waits while an instance is idle: the caller gives the oldest away at once.
// PO3. What waits has an end: the start policy states a bound, and `nextTimerMs` makes it look again.
// PO4. Instances that die while they start are counted, and started again after a pause that grows.

import { assert, type Prng } from '../base/index.ts';
import { Estimate } from './estimate.ts';
import {
  LOOK_MS_MIN,
  RESERVE_GROWTH_MAX,
  RESERVE_WAIT_BODIES,
  START_BACKOFF_MAX_MS,
  START_BACKOFF_MIN_MS,
} from './limits.ts';
import type { StartPolicy } from './start-policy.ts';
import type { WarmPolicy } from './warm-policy.ts';

export type PooledState = 'starting' | 'idle' | 'busy' | 'gone';

export interface Pooled {
  readonly id: number;
  readonly startedAtMs: number;
  readonly whyStarted: string;
  /** Somebody waited for it; else it was started ahead. */
  readonly onDemand: boolean;
  state: PooledState;
  /** Since when it is in this state, ms. */
  sinceMs: number;
  uses: number;
}

export type PoolEffect =
  | { readonly type: 'start'; readonly instance: Pooled }
  | { readonly type: 'retire'; readonly instance: Pooled; readonly why: string };

export interface PoolOptions {
  readonly start: StartPolicy;
  readonly warm: WarmPolicy;
  /** Whether a burst that had to queue leaves a larger reserve behind. */
  readonly reserve: boolean;
  /** Never fewer than so many. */
  readonly instancesMin: number;
  readonly instancesMax: number;
}

export class Pool {
  readonly options: PoolOptions;
  readonly body = new Estimate();
  readonly startTime = new Estimate();
  readonly #random: Prng;
  readonly #starting = new Set<Pooled>();
  readonly #busy = new Set<Pooled>();
  /** The one used last is at the end, and goes first. */
  readonly #idle: Pooled[] = [];
  /** When each waiting invocation came, oldest first; those served are behind `#served`. */
  readonly #waitingSinceMs: number[] = [];
  #served = 0;
  /** When each level was last in use, ms; index = level - 1. */
  readonly #fellAtMs: number[] = [];
  #nextId = 1;
  #effects: PoolEffect[] = [];
  #lookAtMs = Number.POSITIVE_INFINITY;
  #failures = 0;
  #notBeforeMs = 0;
  /** Most that ran and waited at once since the pool was last quiet, and instances there were at its beginning. */
  #peak = 0;
  #peakInstances = 0;

  constructor(options: PoolOptions, random: Prng) {
    this.options = options;
    this.#random = random;
  }

  get waiting(): number {
    return this.#waitingSinceMs.length - this.#served;
  }

  get idle(): number {
    return this.#idle.length;
  }

  get busy(): number {
    return this.#busy.size;
  }

  get size(): number {
    return this.#idle.length + this.#busy.size + this.#starting.size;
  }

  *instances(): Generator<Pooled> {
    yield* this.#starting;
    yield* this.#busy;
    yield* this.#idle;
  }

  /** Monotonic ms; Infinity when nothing is timed. */
  get nextTimerMs(): number {
    return this.#lookAtMs;
  }

  /** An invocation waits; if an instance is idle, `begin` follows. */
  arrived(nowMs: number): PoolEffect[] {
    this.#effects = [];
    this.#waitingSinceMs.push(nowMs);
    if (this.#idle.length === 0) {
      if (this.#peak === 0) this.#peakInstances = this.size;
      this.#startForWaiting(nowMs);
    }
    this.#peak = Math.max(this.#peak, this.waiting + this.#busy.size);
    return this.#effects;
  }

  /** The oldest that waits begins on the idle instance that was used last. @returns the instance, and how long it waited. */
  begin(nowMs: number): { readonly instance: Pooled; readonly waitedMs: number } | undefined {
    if (this.waiting === 0) return undefined;
    const instance = this.#idle.pop();
    if (instance === undefined) return undefined;
    const waitedMs = nowMs - (this.#waitingSinceMs[this.#served++] as number);
    if (this.#served > 64 && this.#served * 2 > this.#waitingSinceMs.length) {
      this.#waitingSinceMs.splice(0, this.#served);
      this.#served = 0;
    }
    move(instance, 'busy', nowMs);
    instance.uses++;
    this.#busy.add(instance);
    const level = this.#busy.size;
    const fellAtMs = this.#fellAtMs[level - 1];
    this.options.warm.rose(level, fellAtMs === undefined ? undefined : nowMs - fellAtMs, nowMs);
    return { instance, waitedMs };
  }

  /** What ran on it is over. */
  ended(instance: Pooled, nowMs: number): PoolEffect[] {
    this.#effects = [];
    this.body.add(nowMs - instance.sinceMs);
    this.options.warm.bodyTook(nowMs - instance.sinceMs);
    this.#fellAtMs[this.#busy.size - 1] = nowMs;
    this.#busy.delete(instance);
    this.#rest(instance, nowMs);
    return this.#effects;
  }

  ready(instance: Pooled, nowMs: number): PoolEffect[] {
    this.#effects = [];
    this.#failures = 0;
    this.startTime.add(nowMs - instance.startedAtMs);
    this.options.warm.startTook(nowMs - instance.startedAtMs);
    this.#starting.delete(instance);
    this.#rest(instance, nowMs);
    return this.#effects;
  }

  /** It has died, or was taken away. */
  gone(instance: Pooled, nowMs: number): PoolEffect[] {
    this.#effects = [];
    if (instance.state === 'starting') {
      // (PO4)
      this.#failures++;
      const pauseMs = Math.min(START_BACKOFF_MAX_MS, START_BACKOFF_MIN_MS * 2 ** (this.#failures - 1));
      this.#notBeforeMs = nowMs + pauseMs * (1 + this.#random.float() / 2);
    }
    if (instance.state === 'busy') this.#fellAtMs[this.#busy.size - 1] = nowMs;
    this.#take(instance, nowMs);
    this.#startForWaiting(nowMs);
    // Its level is unused from now on, and those that are left may be more than are wanted.
    if (this.waiting === 0) this.#lookSoon(nowMs);
    return this.#effects;
  }

  /** Its room is needed elsewhere. */
  evict(instance: Pooled, nowMs: number): void {
    assert(instance.state === 'idle', 'only an idle instance is evicted');
    this.#take(instance, nowMs);
  }

  timePassed(nowMs: number): PoolEffect[] {
    this.#effects = [];
    this.#lookAtMs = Number.POSITIVE_INFINITY;
    this.#startForWaiting(nowMs);
    if (this.waiting === 0) this.#settle(nowMs);
    return this.#effects;
  }

  checkInvariants(): void {
    for (const instance of this.#starting) assert(instance.state === 'starting', 'it is starting (PO1)');
    for (const instance of this.#busy) assert(instance.state === 'busy', 'it is busy (PO1)');
    for (const instance of this.#idle) assert(instance.state === 'idle', 'it is idle (PO1)');
    assert(this.size <= this.options.instancesMax, 'instances are within the limit');
    if (this.waiting > 0)
      assert(this.#lookAtMs < Number.POSITIVE_INFINITY || this.size > 0, 'what waits has an end (PO3)');
  }

  #rest(instance: Pooled, nowMs: number): void {
    move(instance, 'idle', nowMs);
    this.#idle.push(instance);
    if (this.waiting > 0) return;
    this.#lookSoon(nowMs);
  }

  #lookSoon(nowMs: number): void {
    // What is unused now is looked at when its policy changes its mind.
    const level = this.#busy.size + 1;
    const fellAtMs = this.#fellAtMs[level - 1] ?? nowMs;
    const { untilAgeMs, wanted } = this.options.warm.wish(level, nowMs - fellAtMs);
    this.#lookBy(wanted ? fellAtMs + untilAgeMs : nowMs, nowMs);
    if (this.options.reserve && this.#busy.size === 0 && this.#peak > 0) this.#lookBy(nowMs + this.#quietMs(), nowMs);
  }

  /** In steps of LOOK_MS_MIN at least: a wish that changes now is looked at a moment later, not again and again. */
  #lookBy(atMs: number, nowMs: number): void {
    const at = Math.max(atMs, nowMs + LOOK_MS_MIN);
    if (at < this.#lookAtMs) this.#lookAtMs = at;
  }

  #startForWaiting(nowMs: number): void {
    const { waiting } = this;
    if (waiting <= this.#idle.length) return;
    if (nowMs < this.#notBeforeMs) {
      this.#lookBy(this.#notBeforeMs, nowMs);
      return;
    }
    const { count, why, againInMs } = this.options.start({
      waiting,
      oldestWaitMs: nowMs - (this.#waitingSinceMs[this.#served] as number),
      waitedFor: (ms) => this.#waitedFor(ms, nowMs),
      busyForMs: Array.from(this.#busy, (one) => nowMs - one.sinceMs),
      idle: this.#idle.length,
      startingForMs: Array.from(this.#starting, (one) => nowMs - one.startedAtMs),
      body: this.body,
      start: this.startTime,
    });
    for (let i = 0; i < count; i++) this.#start(why, true, nowMs);
    if (againInMs !== undefined) this.#lookBy(nowMs + againInMs, nowMs);
  }

  #waitedFor(ms: number, nowMs: number): number {
    let count = 0;
    for (let at = this.#served; at < this.#waitingSinceMs.length; at++) {
      if (nowMs - (this.#waitingSinceMs[at] as number) < ms) break;
      count++;
    }
    return count;
  }

  /** Nothing waits: as many stay, or are started ahead, as the policy wants. */
  #settle(nowMs: number): void {
    const running = this.#busy.size;
    const there = this.size;
    const levels = Math.max(this.#fellAtMs.length, there);
    let wanted = running;
    let why = '';
    let whyNot = 'it is one more than there is use for';
    for (let level = running + 1; level <= levels; level++) {
      const fellAtMs = this.#fellAtMs[level - 1];
      if (fellAtMs === undefined) continue;
      const wish = this.options.warm.wish(level, nowMs - fellAtMs);
      if (wish.wanted && (wish.ahead || level <= there)) {
        wanted++;
        why = wish.why;
      } else if (!wish.wanted) whyNot = wish.why;
      this.#lookBy(fellAtMs + wish.untilAgeMs, nowMs);
    }
    const reserve = this.#reserve(nowMs);
    if (reserve > wanted) {
      wanted = reserve;
      why = `a burst of ${this.#peak} had to wait`;
    }
    wanted = Math.max(wanted, this.options.instancesMin);
    for (let spare = this.size - wanted; spare > 0 && this.#idle.length > 0; spare--) {
      const instance = this.#idle[0] as Pooled;
      this.#take(instance, nowMs);
      this.#effects.push({ type: 'retire', instance, why: whyNot });
    }
    while (this.size < wanted && this.size < this.options.instancesMax) this.#start(why, false, nowMs);
  }

  /** After a burst that had to queue, once it is quiet: how many shall be there for one twice as large. */
  #reserve(nowMs: number): number {
    if (!this.options.reserve || this.#peak === 0) return 0;
    if (this.#busy.size > 0) return this.size;
    const restedMs = nowMs - Math.max(...this.#idle.map((one) => one.sinceMs), 0);
    if (restedMs < this.#quietMs()) {
      this.#lookBy(nowMs + this.#quietMs() - restedMs, nowMs);
      return this.size;
    }
    const peak = this.#peak;
    const before = Math.max(1, this.#peakInstances);
    this.#peak = 0;
    if (peak <= before) return 0;
    const reserve = Math.min(Math.ceil((2 * peak) / RESERVE_WAIT_BODIES), before * RESERVE_GROWTH_MAX);
    // They count as used by the burst: from now on the policy decides how long they stay.
    for (let level = 1; level <= reserve; level++) this.#fellAtMs[level - 1] ??= nowMs;
    return reserve;
  }

  /** A pool is quiet when nothing ran for as long as a body takes. */
  #quietMs(): number {
    return Math.max(1, this.body.mean);
  }

  #start(whyStarted: string, onDemand: boolean, nowMs: number): void {
    if (this.size >= this.options.instancesMax) return;
    const instance: Pooled = {
      id: this.#nextId++,
      startedAtMs: nowMs,
      whyStarted,
      onDemand,
      state: 'starting',
      sinceMs: nowMs,
      uses: 0,
    };
    this.#starting.add(instance);
    this.#effects.push({ type: 'start', instance });
  }

  #take(instance: Pooled, nowMs: number): void {
    this.#starting.delete(instance);
    this.#busy.delete(instance);
    const at = this.#idle.indexOf(instance);
    if (at >= 0) this.#idle.splice(at, 1);
    move(instance, 'gone', nowMs);
  }
}

const MOVES: Readonly<Record<PooledState, readonly PooledState[]>> = {
  starting: ['idle', 'gone'],
  idle: ['busy', 'gone'],
  busy: ['idle', 'gone'],
  gone: [],
};

function move(instance: Pooled, to: PooledState, nowMs: number): void {
  assert(MOVES[instance.state].includes(to), 'an instance makes legal moves only (PO1)');
  instance.state = to;
  instance.sinceMs = nowMs;
}
