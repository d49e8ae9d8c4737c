import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { FunctionKind, RetryPolicy, Runtime } from '../protocol/index.ts';
import type { Ctx, DurableCtx, InitCtx } from './context.ts';
import { FUNCTION, type FunctionDefinition, type Options } from './definition.ts';
import type { Inputs } from './ephe-object.ts';
import { locate } from './location.ts';
import { describe, isRecord, takeOptions, usageError } from './usage.ts';

declare const types: unique symbol;

/** A function of an app, with the types of its first input and of its result. */
export interface Fn<I = any, O = any> extends FunctionDefinition {
  /** Never there: carries the types only. */
  readonly [types]?: { readonly in: I; readonly out: O };
}

/** What a function's first input holds. */
export type InOf<F> = F extends Fn<infer I, any> ? I : never;
/** What invoking a function gives. A function that returns nothing answers by `ctx.output`, of which no type is known. */
// biome-ignore lint/suspicious/noConfusingVoidType: what an async handler without a result infers.
export type OutOf<F> = F extends Fn<any, infer O> ? ([O] extends [void] ? any : O) : never;

export type Handler<I = any, O = unknown> = (ctx: Ctx, inputs: Inputs<I>) => O | Promise<O>;
export type DurableHandler<I = any, O = unknown> = (ctx: DurableCtx, inputs: Inputs<I>) => O | Promise<O>;

export interface FnOptions<I = any> {
  /** Any Standard Schema validator of the first input of an entry: what fails is refused at the door. */
  readonly input?: StandardSchemaV1<unknown, I> | undefined;
  /** Of one attempt. Default 60,000; none for `durable`. */
  readonly timeoutMs?: number | undefined;
  /** Of thrown errors and timeouts. Default 0; 10 with back-off for `durable`. */
  readonly retries?: number | RetryPolicy | undefined;
  /** Invocations that one instance runs at once. Default 1. */
  readonly concurrency?: number | undefined;
  /** Heap limit of its instances. */
  readonly memoryMb?: number | undefined;
  /** Functions that name the same pool share instances. */
  readonly pool?: string | undefined;
  /** `process`: a failure takes nothing else with it. Default `thread`. */
  readonly runtime?: Runtime | undefined;
  /** Higher goes first. Default 0. */
  readonly priority?: number | undefined;
  /** Runs once in each instance before its first invocation. */
  readonly init?: ((ctx: InitCtx) => unknown) | undefined;
  /** How long an idle instance is kept: plain data for the instance pool. */
  readonly keepAlive?: unknown;
}

const OPTION_NAMES = [
  'input',
  'timeoutMs',
  'retries',
  'concurrency',
  'memoryMb',
  'pool',
  'runtime',
  'priority',
  'init',
  'keepAlive',
];
const NUMBERS = ['timeoutMs', 'concurrency', 'memoryMb', 'priority'];

/**
 * An ephemeral function: no durable write on its path.
 * @throws TypeError at the caller's line when it is used wrongly; ranges are checked when the app is deployed.
 */
export function fn<I = any, O = void>(h: (ctx: Ctx, inputs: Inputs<I>) => O | Promise<O>, o?: FnOptions<I>): Fn<I, O> {
  return define(fn, 'fn', h, o ?? {});
}

/** A function whose invocation, effects and sends survive any crash, exactly once. */
export function durable<I = any, O = void>(
  h: (ctx: DurableCtx, inputs: Inputs<I>) => O | Promise<O>,
  o?: FnOptions<I>,
): Fn<I, O> {
  return define(durable, 'durable', h, o ?? {});
}

function define(builder: unknown, kind: FunctionKind, handler: unknown, given: unknown): FunctionDefinition {
  if (typeof handler !== 'function') {
    throw usageError(
      builder,
      `${kind}: the handler must be a function (ctx, inputs) => result, not ${describe(handler)}`,
    );
  }
  const options = takeOptions(builder, kind, given, OPTION_NAMES);
  const wrong = wrongOption(options);
  if (wrong !== undefined) throw usageError(builder, `${kind}: ${wrong}`);
  const source = locate(builder);
  return Object.freeze({
    [FUNCTION]: 1 as const,
    kind,
    handler: handler as FunctionDefinition['handler'],
    options,
    ...(source === undefined ? {} : { source }),
  });
}

function wrongOption(options: Options): string | undefined {
  for (const name of NUMBERS) {
    if (name in options && typeof options[name] !== 'number') {
      return `${name} must be a number, not ${describe(options[name])}`;
    }
  }
  const { input, init, retries, pool, runtime } = options;
  if (input !== undefined && !isValidator(input)) {
    return `input must be a Standard Schema validator (zod, valibot, arktype, …), not ${describe(input)}`;
  }
  if (init !== undefined && typeof init !== 'function') return `init must be a function, not ${describe(init)}`;
  if (retries !== undefined && typeof retries !== 'number' && !isRecord(retries)) {
    return `retries must be a number or { max, minMs, maxMs }, not ${describe(retries)}`;
  }
  if (pool !== undefined && typeof pool !== 'string') return `pool must be a name, not ${describe(pool)}`;
  if (runtime !== undefined && runtime !== 'thread' && runtime !== 'process') {
    return `runtime must be 'thread' or 'process', not ${describe(runtime)}`;
  }
  return undefined;
}

/** Some libraries' validators are functions with properties. */
export function isValidator(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard = (value as Record<string, unknown>)['~standard'];
  return isRecord(standard) && typeof standard.validate === 'function';
}
