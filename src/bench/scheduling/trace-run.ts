// Runs pools over a trace in virtual time: the same machine that the product runs, thousands of times as fast.

import { Heap, Prng } from '../../base/index.ts';
import {
  type EvictionOrder,
  Pool,
  type PoolEffect,
  type Pooled,
  START_POLICIES,
  type StartPolicyName,
  type WarmPolicy,
} from '../../pool/index.ts';
import type { Trace, TraceFunction } from './trace.ts';

export interface TracePolicy {
  readonly name: string;
  readonly start: StartPolicyName;
  readonly warm: (one: TraceFunction) => WarmPolicy;
  readonly reserve: boolean;
  /** Memory of all instances together, MB, and whose goes; undefined: no limit. */
  readonly capacity?: { readonly memoryMb: number; readonly order: EvictionOrder };
}

export interface TraceResult {
  /** Share of invocations that waited for an instance which was started for want of one; mean over functions. */
  readonly coldPerFunction: number;
  /** The same over all invocations. */
  readonly cold: number;
  /** Response time over body time, 99th percentile over all invocations. */
  readonly slowdownP99: number;
  readonly idleSeconds: number;
  readonly idleGbSeconds: number;
  readonly starts: number;
  readonly startedAhead: number;
  readonly neverUsed: number;
  readonly memoryPeakMb: number;
}

type Event =
  | { readonly atMs: number; readonly type: 'ready' | 'ended'; readonly which: number; readonly instance: Pooled }
  | { readonly atMs: number; readonly type: 'timer'; readonly which: number };

const INSTANCES_MAX = 1_000;

export function runTrace(trace: Trace, policy: TracePolicy, seed: number): TraceResult {
  const random = new Prng(seed);
  const order = policy.capacity?.order;
  const events = new Heap<Event>((a, b) => a.atMs < b.atMs);
  const count = trace.functions.length;
  const pools = trace.functions.map(
    (one) =>
      new Pool(
        {
          start: START_POLICIES[policy.start],
          warm: policy.warm(one),
          reserve: policy.reserve,
          instancesMin: 0,
          instancesMax: INSTANCES_MAX,
        },
        random,
      ),
  );
  const timerAtMs = new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  const waitingBodies: number[][] = trace.functions.map(() => []);
  const uses = new Uint32Array(count);
  const invocations = new Uint32Array(count);
  const colds = new Uint32Array(count);
  const slowdowns = new Float64Array(trace.atMs.length);
  let done = 0;
  let idleMs = 0;
  let idleMbMs = 0;
  let starts = 0;
  let startedAhead = 0;
  let neverUsed = 0;
  let memoryMb = 0;
  let memoryPeakMb = 0;
  /** Value of the latest eviction: who was used since stands above it. */
  let clock = 0;
  const clockOf = new WeakMap<Pooled, number>();
  const restedSince = new WeakMap<Pooled, number>();

  const left = (which: number, instance: Pooled, sinceMs: number, nowMs: number) => {
    const one = trace.functions[which] as TraceFunction;
    idleMs += nowMs - sinceMs;
    idleMbMs += (nowMs - sinceMs) * one.memoryMb;
    memoryMb -= one.memoryMb;
    if (instance.uses === 0) neverUsed++;
    if (pools[which]?.size === 0) uses[which] = 0;
  };
  const makeRoom = (nowMs: number) => {
    if (policy.capacity === undefined || order === undefined) return;
    while (memoryMb > policy.capacity.memoryMb) {
      let worst: { which: number; instance: Pooled; value: number } | undefined;
      for (let which = 0; which < count; which++) {
        const pool = pools[which] as Pool;
        if (pool.idle === 0) continue;
        const { memoryMb: size, startMs } = trace.functions[which] as TraceFunction;
        for (const instance of pool.instances()) {
          if (instance.state !== 'idle') continue;
          const value = order({
            uses: uses[which] as number,
            startMs,
            memoryMb: size,
            instances: pool.size,
            clock: clockOf.get(instance) ?? 0,
          });
          if (worst === undefined || value < worst.value) worst = { which, instance, value };
        }
      }
      if (worst === undefined) return;
      clock = Math.max(clock, worst.value);
      const { sinceMs } = worst.instance;
      pools[worst.which]?.evict(worst.instance, nowMs);
      left(worst.which, worst.instance, sinceMs, nowMs);
    }
  };
  const carryOut = (which: number, effects: readonly PoolEffect[], nowMs: number) => {
    const one = trace.functions[which] as TraceFunction;
    for (const effect of effects) {
      const { instance } = effect;
      if (effect.type === 'retire') {
        left(which, instance, restedSince.get(instance) ?? nowMs, nowMs);
        continue;
      }
      starts++;
      if (!instance.onDemand) startedAhead++;
      memoryMb += one.memoryMb;
      memoryPeakMb = Math.max(memoryPeakMb, memoryMb);
      const tookMs = one.startMs * (0.8 + 0.4 * random.float());
      events.push({ atMs: nowMs + tookMs, type: 'ready', which, instance });
      makeRoom(nowMs);
    }
  };
  const serve = (which: number, nowMs: number) => {
    const pool = pools[which] as Pool;
    while (pool.waiting > 0 && pool.idle > 0) {
      const begun = pool.begin(nowMs);
      if (begun === undefined) break;
      const { instance, waitedMs } = begun;
      const restMs = nowMs - (restedSince.get(instance) ?? nowMs);
      idleMs += restMs;
      idleMbMs += restMs * (trace.functions[which] as TraceFunction).memoryMb;
      const bodyMs = waitingBodies[which]?.shift() as number;
      if (instance.uses === 1 && instance.onDemand && waitedMs > 0) colds[which] = (colds[which] as number) + 1;
      uses[which] = (uses[which] as number) + 1;
      clockOf.set(instance, clock);
      slowdowns[done++] = (waitedMs + bodyMs + 1) / (bodyMs + 1);
      events.push({ atMs: nowMs + bodyMs, type: 'ended', which, instance });
    }
    const next = pool.nextTimerMs;
    if (next < (timerAtMs[which] as number)) {
      timerAtMs[which] = next;
      events.push({ atMs: Math.max(next, nowMs), type: 'timer', which });
    }
  };

  let at = 0;
  for (;;) {
    const first = events.peek();
    const arrivesMs = at < trace.atMs.length ? (trace.atMs[at] as number) : Number.POSITIVE_INFINITY;
    if (first === undefined && arrivesMs === Number.POSITIVE_INFINITY) break;
    if (first === undefined || arrivesMs <= first.atMs) {
      const which = trace.function[at] as number;
      waitingBodies[which]?.push(trace.bodyMs[at] as number);
      invocations[which] = (invocations[which] as number) + 1;
      at++;
      carryOut(which, (pools[which] as Pool).arrived(arrivesMs), arrivesMs);
      serve(which, arrivesMs);
      continue;
    }
    events.pop();
    if (first.atMs > trace.lengthMs && at >= trace.atMs.length && first.type === 'timer') continue;
    const { which, atMs: nowMs } = first;
    const pool = pools[which] as Pool;
    if (first.type === 'timer') {
      timerAtMs[which] = Number.POSITIVE_INFINITY;
      if (pool.nextTimerMs <= nowMs) carryOut(which, pool.timePassed(nowMs), nowMs);
    } else {
      restedSince.set(first.instance, nowMs);
      carryOut(
        which,
        first.type === 'ready' ? pool.ready(first.instance, nowMs) : pool.ended(first.instance, nowMs),
        nowMs,
      );
    }
    serve(which, nowMs);
    makeRoom(nowMs);
  }
  // What is there at the end has idled to the end.
  for (let which = 0; which < count; which++) {
    for (const instance of [...(pools[which] as Pool).instances()]) {
      const sinceMs = restedSince.get(instance);
      if (instance.state === 'idle' && sinceMs !== undefined && sinceMs < trace.lengthMs) {
        left(which, instance, sinceMs, trace.lengthMs);
      }
    }
  }
  let shares = 0;
  let cold = 0;
  for (let which = 0; which < count; which++) {
    const n = invocations[which] as number;
    if (n > 0) shares += (colds[which] as number) / n;
    cold += colds[which] as number;
  }
  slowdowns.sort();
  return {
    coldPerFunction: shares / count,
    cold: cold / trace.atMs.length,
    slowdownP99: slowdowns[Math.floor(slowdowns.length * 0.99)] as number,
    idleSeconds: idleMs / 1000,
    idleGbSeconds: idleMbMs / 1_024_000,
    starts,
    startedAhead,
    neverUsed,
    memoryPeakMb,
  };
}
