// The app that suite `faults` deploys: two chains of four functions that sleep and sometimes crash. The buckets of the one have
// `rerun` rules, those of the other have none.

import { setTimeout } from 'node:timers/promises';
import { app, bucket, type Ctx, fn, type Inputs, immediate } from '../../sdk/index.ts';

export const STEPS = 4;
export const STEP_MS = 100;
export const RULE_MS = 200;

/** What a session is asked to do. */
export interface FaultOrder {
  readonly seed: number;
  readonly session: number;
  /** Which execution of it, 1 for the first: a session that is begun again crashes anew. */
  readonly run: number;
  /** Probability that one attempt of one function crashes, 0 to 1. */
  readonly crashes: number;
}

export interface FaultAnswer {
  readonly session: number;
  readonly steps: number;
}

/** The same for the same arguments; 0 to 1. */
export function chance(...parts: readonly number[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) {
    hash = Math.imul(hash ^ part, 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    hash ^= hash >>> 13;
  }
  return (hash >>> 0) / 2 ** 32;
}

const step = (n: number, next: string) =>
  fn(async (ctx: Ctx, [input]: Inputs<FaultOrder>) => {
    const order = input.json();
    const { seed, session, run, crashes } = order;
    const luck = chance(seed, session, run, n, ctx.attempt);
    // Half of the crashes end the instance, the others never return: nobody but a clock can tell.
    if (luck < crashes / 2) process.exit(1);
    if (luck < crashes) await new Promise(() => {});
    await setTimeout(STEP_MS);
    if (n < STEPS) ctx.send(next, order);
    else ctx.send(next, { session, steps: n } satisfies FaultAnswer, { output: true });
  });

const rerun = <S extends string>(source: S) => [{ source, expect: 'every-object' as const, timeoutMs: RULE_MS }];

export default app('bench-faults', {
  entry: 'ruled1',
  functions: {
    ruled1: step(1, 'ruledA'),
    ruled2: step(2, 'ruledB'),
    ruled3: step(3, 'ruledC'),
    ruled4: step(4, 'ruledD'),
    plain1: step(1, 'plainA'),
    plain2: step(2, 'plainB'),
    plain3: step(3, 'plainC'),
    plain4: step(4, 'plainD'),
  },
  buckets: {
    ruledA: bucket({ on: { next: immediate({ run: 'ruled2' }) }, rerun: rerun('ruled1') }),
    ruledB: bucket({ on: { next: immediate({ run: 'ruled3' }) }, rerun: rerun('ruled2') }),
    ruledC: bucket({ on: { next: immediate({ run: 'ruled4' }) }, rerun: rerun('ruled3') }),
    ruledD: bucket({ rerun: rerun('ruled4') }),
    plainA: bucket({ on: { next: immediate({ run: 'plain2' }) } }),
    plainB: bucket({ on: { next: immediate({ run: 'plain3' }) } }),
    plainC: bucket({ on: { next: immediate({ run: 'plain4' }) } }),
    plainD: bucket({}),
  },
});
