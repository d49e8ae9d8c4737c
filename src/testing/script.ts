// Applications of the simulator: scripts as data, whose functions an interpreter runs inside the simulated instances.

import { PlatformError, toErrorData } from '../base/index.ts';
import type { AppBundle, BucketSpec, FunctionOptionsSpec, Manifest } from '../protocol/index.ts';
import { type AppDefinition, app, type Ctx, type Fn, fn, type Inputs, TerminalError } from '../sdk/index.ts';
import type { AppCode, HandlerPlace } from './app-process.ts';
import { type Execution, type History, keyOf, type Noted, type Sent } from './history.ts';
import { DEAD, type World } from './world.ts';

/** One thing that a function does. */
export type Step =
  | {
      readonly do: 'send';
      readonly bucket: string;
      readonly count: number;
      /** `own`: names that no other invocation chooses; a list: these, whoever chooses them too. Default: none chosen. */
      readonly names?: 'own' | readonly string[];
      /** Groups `g0` to `g<n - 1>`, in turn. */
      readonly groups?: number;
      readonly persist?: boolean;
      /** Bytes of the value beside what it says. */
      readonly padding?: number;
    }
  | { readonly do: 'output'; readonly count: number; readonly padding?: number }
  | { readonly do: 'call'; readonly function: string }
  | { readonly do: 'sleep'; readonly ms: number }
  /** Sleeps in the first so many attempts only. */
  | { readonly do: 'drag'; readonly ms: number; readonly attempts: number }
  | { readonly do: 'join'; readonly bucket: string; readonly names?: readonly string[]; readonly count?: number }
  | { readonly do: 'close'; readonly bucket: string }
  | { readonly do: 'get'; readonly bucket: string; readonly name: string }
  /** Goes wrong in the first so many attempts. */
  | { readonly do: 'throw' | 'throw-for-good' | 'hang' | 'spin' | 'exit'; readonly attempts: number };

export interface FunctionScript {
  readonly options: FunctionOptionsSpec;
  readonly steps: readonly Step[];
}

export interface AppScript {
  readonly app: string;
  readonly entry: string;
  readonly functions: Readonly<Record<string, FunctionScript>>;
  readonly buckets: Readonly<Record<string, BucketSpec>>;
}

export function bundleOf(script: AppScript): AppBundle {
  const manifest: Manifest = {
    entry: script.entry,
    functions: Object.fromEntries(
      Object.entries(script.functions).map(([name, { options }]) => [name, { kind: 'fn' as const, options }]),
    ),
    buckets: script.buckets,
  };
  return { manifest, main: 'main.js', files: { 'main.js': JSON.stringify(script) } };
}

export function codeOf(world: World, history: History): AppCode {
  return {
    load: (text, place): AppDefinition => {
      const script = JSON.parse(text) as AppScript;
      const functions: Record<string, Fn> = {};
      for (const [name, one] of Object.entries(script.functions)) {
        functions[name] = fn((ctx: Ctx, inputs: Inputs) => execute(world, history, place, name, one, ctx, inputs));
      }
      return app(script.app, { entry: script.entry as never, functions });
    },
  };
}

function execute(
  world: World,
  history: History,
  place: HandlerPlace,
  name: string,
  { steps, options }: FunctionScript,
  ctx: Ctx,
  inputs: Inputs,
): unknown {
  const execution: Execution = {
    session: ctx.session,
    invocation: ctx.invocation,
    attempt: ctx.attempt,
    function: name,
    incarnation: place.incarnation,
    thread: place.actor.name,
    beganMs: world.nowMs,
    timeoutMs: options.timeoutMs ?? Number.POSITIVE_INFINITY,
    inputs: inputs.map((one) => ({
      key: keyOf(one.session, one.bucket, one.name),
      session: one.session,
      bucket: one.bucket,
      name: one.name,
      group: one.group,
      value: one.contentType === 'application/json' ? one.json() : one.size,
    })),
    sends: [],
    notes: [],
    end: undefined,
  };
  history.executions.push(execution);
  world.note(`${place.actor.name} runs ${name} ${ctx.session} ${ctx.invocation} attempt ${ctx.attempt}`);
  return new Interpreter(world, place, ctx, execution, steps).run();
}

class Interpreter {
  readonly #world: World;
  readonly #place: HandlerPlace;
  readonly #ctx: Ctx;
  readonly #execution: Execution;
  readonly #steps: readonly Step[];
  #at = 0;
  /** As the context counts them: they name what is sent without a name. */
  #step = 0;

  constructor(world: World, place: HandlerPlace, ctx: Ctx, execution: Execution, steps: readonly Step[]) {
    this.#world = world;
    this.#place = place;
    this.#ctx = ctx;
    this.#execution = execution;
    this.#steps = steps;
  }

  /** In one turn unless a step waits. */
  run(): unknown {
    try {
      while (this.#at < this.#steps.length) {
        const waits = this.#do(this.#steps[this.#at++] as Step);
        if (waits !== undefined) return waits.then(() => this.run());
      }
    } catch (error) {
      if (error !== DEAD) this.#end({ error: toErrorData(error) });
      throw error;
    }
    const value = { by: this.#execution.invocation, attempt: this.#execution.attempt };
    this.#end({ value });
    return value;
  }

  #do(step: Step): Promise<unknown> | undefined {
    const { attempt } = this.#execution;
    switch (step.do) {
      case 'send':
        for (let i = 0; i < step.count; i++) this.#send(step, i);
        return undefined;
      case 'output':
        for (let i = 0; i < step.count; i++) this.#output(step.padding ?? 0);
        return undefined;
      case 'call': {
        const sent = this.#willSend('$call', undefined, '', {});
        this.#ctx.call(step.function, sent.value);
        sent.told = true;
        return undefined;
      }
      case 'sleep':
        return this.#pause(step.ms);
      case 'drag':
        return attempt <= step.attempts ? this.#pause(step.ms) : undefined;
      case 'join': {
        const { names, count } = step;
        const join = names === undefined ? { count: count ?? 0 } : { names };
        const noted = this.#willNote(step.bucket, join);
        this.#ctx.join(step.bucket as never, names === undefined ? (count ?? 0) : [...names]);
        noted.told = true;
        return undefined;
      }
      case 'close': {
        const noted = this.#willNote(step.bucket, undefined);
        this.#ctx.closeGroup(step.bucket as never);
        noted.told = true;
        return undefined;
      }
      case 'get':
        return this.#ctx.getObject(step.bucket as never, step.name).then(
          () => {},
          (error: unknown) => {
            if (!(error instanceof PlatformError)) throw error;
          },
        );
      case 'throw':
        if (attempt <= step.attempts) throw new Error(`scripted, attempt ${attempt}`);
        return undefined;
      case 'throw-for-good':
        if (attempt <= step.attempts) throw new TerminalError(`scripted, attempt ${attempt}`);
        return undefined;
      case 'hang':
        return attempt <= step.attempts ? this.#hang() : undefined;
      case 'spin':
        if (attempt > step.attempts) return undefined;
        this.#place.actor.pausedUntilMs = Number.POSITIVE_INFINITY;
        return new Promise(() => {});
      case 'exit':
        if (attempt <= step.attempts) this.#place.exit(undefined);
        return undefined;
    }
  }

  #send(step: Step & { do: 'send' }, i: number): void {
    const { names } = step;
    const name = names === 'own' ? `${this.#execution.invocation}-${this.#at}-${i}` : names?.[i % names.length];
    const group = step.groups === undefined ? '' : `g${i % step.groups}`;
    const persist = step.persist === true;
    const sent = this.#willSend(step.bucket, name, group, { persist, padding: step.padding ?? 0 });
    this.#ctx.send(step.bucket as never, sent.value as never, {
      ...(name === undefined ? {} : { name }),
      ...(group === '' ? {} : { group }),
      ...(persist ? { persist } : {}),
    });
    sent.told = true;
  }

  #output(padding: number): void {
    const sent = this.#willSend('$output', undefined, '', { output: true, padding });
    this.#ctx.output(sent.value as never);
    sent.told = true;
  }

  #willSend(
    bucket: string,
    name: string | undefined,
    group: string,
    { output = false, persist = false, padding = 0 },
  ): Sent {
    const { session, invocation, attempt } = this.#execution;
    const called = name ?? `${invocation}.${this.#step}`;
    const value = {
      by: invocation,
      attempt,
      line: this.#line(),
      step: this.#step,
      ...(padding > 0 ? { pad: 'x'.repeat(padding) } : {}),
    };
    this.#step++;
    const sent: Sent = {
      key: keyOf(session, bucket, called),
      bucket,
      name: called,
      group,
      output,
      persist,
      value,
      atMs: this.#world.nowMs,
      told: false,
    };
    this.#execution.sends.push(sent);
    return sent;
  }

  /** Which attempt of whom led to this, from the entry on. */
  #line(): readonly number[] {
    const { inputs, attempt } = this.#execution;
    const before = inputs.map(({ value }) => (value as { line?: readonly number[] } | null)?.line ?? []);
    return [...(before[0] ?? []), attempt];
  }

  #willNote(bucket: string, join: Noted['join']): Noted {
    const noted: Noted = { bucket, join, told: false };
    this.#execution.notes.push(noted);
    return noted;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.at(this.#place.actor, this.#world.nowMs + ms, '', resolve);
    });
  }

  /** A handler that waits for something that never comes, but listens to its signal. */
  #hang(): Promise<never> {
    const { signal } = this.#ctx;
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  }

  #end(end: { value?: unknown; error?: ReturnType<typeof toErrorData> }): void {
    this.#execution.end = { atMs: this.#world.nowMs, ...end };
  }
}
