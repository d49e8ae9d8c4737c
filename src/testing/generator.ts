// Random applications. Every function belongs to one trigger, so that whoever sees it run knows what fired.

import type { Prng } from '../base/index.ts';
import type { BucketSpec, FunctionOptionsSpec, TriggerSpec } from '../protocol/index.ts';
import type { AppScript, FunctionScript, Step } from './script.ts';

/** Functions send only to what lies deeper, so that every session comes to an end. */
const DEPTH_MAX = 3;
const FUNCTIONS_MAX = 10;
const RERUN_MS_MIN = 8;
/** Above what rides inside messages, so that the object store is used. */
const PADDING_BYTES = 3_000;

/** How an application misbehaves, as shares of its functions. */
export interface Mischief {
  readonly failing: number;
  readonly hanging: number;
  readonly exiting: number;
  readonly dragging: number;
}

export function generateApp(random: Prng, app: string, mischief: Mischief): AppScript {
  return new Generator(random, mischief).make(app);
}

class Generator {
  readonly #random: Prng;
  readonly #mischief: Mischief;
  readonly #functions: Record<string, FunctionScript> = {};
  readonly #buckets: Record<string, BucketSpec> = {};
  #functionCount = 0;

  constructor(random: Prng, mischief: Mischief) {
    this.#random = random;
    this.#mischief = mischief;
  }

  make(app: string): AppScript {
    const entry = this.#function(0);
    // One that clients start, and that triggers of run time run.
    this.#functions.extra = { options: { timeoutMs: 1_000 }, steps: [{ do: 'output', count: 1 }] };
    return { app, entry, functions: this.#functions, buckets: this.#buckets };
  }

  /** @returns its name. */
  #function(depth: number): string {
    const name = `f${this.#functionCount++}`;
    const steps: Step[] = [];
    const parts = depth === 0 ? 1 + this.#random.int(3) : this.#random.int(3);
    for (let i = 0; i < parts; i++) {
      if (this.#chance(0.3)) steps.push({ do: 'sleep', ms: this.#random.int(20) });
      if (depth < DEPTH_MAX && this.#functionCount < FUNCTIONS_MAX) steps.push(...this.#bucket(name, depth));
      else steps.push(this.#chance(0.5) ? { do: 'output', count: 1 } : { do: 'sleep', ms: this.#random.int(5) });
    }
    if (depth > 0 && this.#chance(0.2)) steps.push({ do: 'output', count: 1, padding: this.#padding() });
    const options = this.#options();
    const failure = this.#failure(options.timeoutMs ?? 0);
    if (failure !== undefined) steps.splice(this.#random.int(steps.length + 1), 0, failure);
    this.#functions[name] = { options, steps };
    return name;
  }

  #options(): FunctionOptionsSpec {
    return {
      timeoutMs: 40 + this.#random.int(200),
      ...(this.#chance(0.6)
        ? { retries: { max: this.#random.int(4), minMs: 1, maxMs: 1 + this.#random.int(30) } }
        : {}),
      ...(this.#chance(0.2) ? { concurrency: 1 + this.#random.int(4) } : {}),
      ...(this.#chance(0.15) ? { pool: 'other' } : {}),
    };
  }

  #failure(timeoutMs: number): Step | undefined {
    const { failing, hanging, exiting, dragging } = this.#mischief;
    const attempts = 1 + this.#random.int(3);
    if (this.#chance(failing)) return { do: this.#chance(0.2) ? 'throw-for-good' : 'throw', attempts };
    if (this.#chance(hanging)) return { do: this.#chance(0.3) ? 'spin' : 'hang', attempts: 1 };
    // Late by a hair, so that it goes on while it is being overtaken.
    const ms = this.#chance(0.5) ? timeoutMs - 2 + this.#random.int(5) : RERUN_MS_MIN + this.#random.int(40);
    if (this.#chance(dragging)) return { do: 'drag', attempts: 1 + this.#random.int(2), ms };
    if (this.#chance(exiting)) return { do: 'exit', attempts };
    return undefined;
  }

  /** A bucket with a trigger or two; @returns what its producer does with it. */
  #bucket(producer: string, depth: number): Step[] {
    if (this.#chance(0.15)) return [{ do: 'call', function: this.#function(depth + 1) }];
    const bucket = `b${Object.keys(this.#buckets).length}`;
    this.#buckets[bucket] = {};
    const count = 1 + this.#random.int(4);
    const names = Array.from({ length: 3 }, (_, i) => `n${i}`);
    const run = () =>
      this.#chance(0.15) ? [this.#function(depth + 1), this.#function(depth + 1)] : this.#function(depth + 1);
    const leaf = () => this.#function(DEPTH_MAX);
    const padding = this.#padding();
    const send: Step = { do: 'send', bucket, count, ...(padding > 0 ? { padding } : {}) };
    const kind = this.#random.int(13);
    let trigger: TriggerSpec;
    let steps: Step[] = [send];
    switch (kind) {
      case 0:
      case 1:
        trigger = { kind: 'immediate', run: run() };
        if (this.#chance(0.4)) steps = [{ ...send, names: 'own' }];
        break;
      case 2:
        trigger = { kind: 'byName', ...(this.#chance(0.5) ? { name: 'n1' } : { match: 'n' }), run: run() };
        steps = [{ ...send, count: Math.min(count, 3), names }];
        break;
      case 3:
        trigger = { kind: 'bySet', names: names.slice(0, 1 + this.#random.int(3)), run: run() };
        steps = [{ ...send, count: Math.min(count, 3), names }];
        break;
      case 4:
        trigger = {
          kind: 'byBatchSize',
          size: 1 + this.#random.int(3),
          scope: 'session',
          ...this.#maxWait(),
          run: run(),
        };
        break;
      case 5:
        trigger = { kind: 'byTime', windowMs: 5 + this.#random.int(60), scope: 'session', run: run() };
        break;
      case 6: {
        const n = 1 + this.#random.int(4);
        trigger = { kind: 'redundant', n, k: 1 + this.#random.int(n), run: run() };
        steps = [{ ...send, count: n }];
        break;
      }
      case 7: {
        trigger = { kind: 'dynamicJoin', run: run() };
        const byName = this.#chance(0.5);
        const width = Math.max(0, Math.min(count, 3) - this.#random.int(2));
        const join: Step = byName
          ? { do: 'join', bucket, names: names.slice(0, width) }
          : { do: 'join', bucket, count: width };
        const named: Step = { ...send, count: Math.min(count, 3), names };
        steps = this.#chance(0.5) ? [join, named] : [named, join];
        break;
      }
      case 8:
        trigger = { kind: 'dynamicGroup', run: run() };
        steps = [
          { ...send, groups: 1 + this.#random.int(3) },
          { do: 'close', bucket },
        ];
        break;
      case 9:
        trigger = { kind: 'dynamicGroup', producers: [producer], run: run() };
        steps = [{ ...send, groups: 1 + this.#random.int(3) }];
        break;
      case 10:
        trigger = { kind: 'byBatchSize', size: 1 + this.#random.int(4), ...this.#maxWait(), run: leaf() };
        break;
      case 11:
        trigger = { kind: 'byTime', windowMs: 10 + this.#random.int(100), run: leaf() };
        break;
      default: {
        const n = 2 + this.#random.int(3);
        trigger = { kind: 'redundant', n, k: 1 + this.#random.int(n), scope: 'bucket', run: leaf() };
        steps = [{ ...send, groups: 1 + this.#random.int(2) }];
        break;
      }
    }
    const on: Record<string, TriggerSpec> = { t0: trigger };
    if (this.#chance(0.15)) on.t1 = { kind: 'immediate', run: this.#function(DEPTH_MAX) };
    const rerun = this.#chance(0.15)
      ? [{ source: producer, expect: 'every-object' as const, timeoutMs: RERUN_MS_MIN + this.#random.int(60) }]
      : undefined;
    this.#buckets[bucket] = { on, ...(rerun === undefined ? {} : { rerun }) };
    return steps;
  }

  #maxWait(): { maxWaitMs?: number } {
    return this.#chance(0.5) ? { maxWaitMs: 5 + this.#random.int(50) } : {};
  }

  #padding(): number {
    return this.#chance(0.3) ? PADDING_BYTES : 0;
  }

  #chance(share: number): boolean {
    return this.#random.float() < share;
  }
}
