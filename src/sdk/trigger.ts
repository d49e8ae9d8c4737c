import type { TriggerScope } from '../protocol/index.ts';
import type { CustomTriggerClass } from './custom-trigger.ts';
import { TRIGGER, type TriggerDefinition, type TriggerKind } from './definition.ts';
import { locate } from './location.ts';
import { describe, takeOptions, usageError } from './usage.ts';

declare const refs: unique symbol;

/** A function's name or a list of them. */
export type Run = string | readonly string[];

/** A trigger, with the names of the functions it refers to. */
export interface Trigger<R = any> extends TriggerDefinition {
  /** Never there: carries the names only. */
  readonly [refs]?: R;
}

/** The names of a `run` or of a list. */
export type NamesIn<R> = R extends readonly (infer E)[] ? E : R;
/** The names that a trigger refers to. */
export type RefsOfTrigger<T> = T extends Trigger<infer R> ? NamesIn<R> : never;

/** Fires once per object. */
export function immediate<const R extends Run>(o: { readonly run: R }): Trigger<R> {
  return define(immediate, 'immediate', o, ['run']);
}

/** Fires once per object of this name, or whose name begins with or matches `match`. */
export function byName<const R extends Run>(
  o: { readonly run: R } & (
    | { readonly name: string; readonly match?: never }
    | { readonly match: string | RegExp; readonly name?: never }
  ),
): Trigger<R> {
  return define(byName, 'byName', o, ['name', 'match', 'run']);
}

/** Fires when an object of each name is there, with the objects in this order. */
export function bySet<const R extends Run>(o: { readonly names: readonly string[]; readonly run: R }): Trigger<R> {
  return define(bySet, 'bySet', o, ['names', 'run']);
}

/** Fires with each `size` objects; with `maxWaitMs` also with fewer, once the oldest has waited so long. */
export function byBatchSize<const R extends Run>(o: {
  readonly size: number;
  readonly maxWaitMs?: number | undefined;
  /** Default `bucket`. */
  readonly scope?: TriggerScope | undefined;
  readonly run: R;
}): Trigger<R> {
  return define(byBatchSize, 'byBatchSize', o, ['size', 'maxWaitMs', 'scope', 'run']);
}

/** Fires with what has arrived in each window, or at the times of a cron expression. */
export function byTime<const R extends Run>(
  o: {
    /** Fire without objects too. Default false. */
    readonly fireEmpty?: boolean | undefined;
    /** Default `bucket`. */
    readonly scope?: TriggerScope | undefined;
    readonly run: R;
  } & ({ readonly windowMs: number; readonly cron?: never } | { readonly cron: string; readonly windowMs?: never }),
): Trigger<R> {
  return define(byTime, 'byTime', o, ['windowMs', 'cron', 'fireEmpty', 'scope', 'run']);
}

/** Fires at the k-th of n objects; later ones are dropped. */
export function redundant<const R extends Run, const S extends readonly string[] = readonly []>(o: {
  readonly k: number;
  readonly n: number;
  /** Functions that send into this bucket. */
  readonly sources?: S | undefined;
  /** Cancels the sources' invocations that have not sent. Needs `sources` and session scope. */
  readonly cancelLosers?: boolean | undefined;
  readonly scope?: TriggerScope | undefined;
  readonly run: R;
}): Trigger<R | S> {
  return define(redundant, 'redundant', o, ['k', 'n', 'sources', 'cancelLosers', 'scope', 'run']);
}

/** Fires when what `ctx.join` named is complete. */
export function dynamicJoin<const R extends Run>(o: { readonly run: R }): Trigger<R> {
  return define(dynamicJoin, 'dynamicJoin', o, ['run']);
}

/** Fires once per group with all its objects: when the producers have ended, or at `ctx.closeGroup`. */
export function dynamicGroup<const R extends Run, const P extends readonly string[] = readonly []>(o: {
  readonly producers?: P | undefined;
  readonly scope?: TriggerScope | undefined;
  readonly run: R;
}): Trigger<R | P> {
  return define(dynamicGroup, 'dynamicGroup', o, ['producers', 'scope', 'run']);
}

/**
 * Fires as a class of your own decides. `options`, plain data, is handed to its constructor.
 *
 * With `sources` (session scope only) the class hears of each start of those functions, in `onSourceStarted`.
 */
export function custom<const R extends Run, const S extends readonly string[] = readonly [], O = unknown>(
  Class: CustomTriggerClass<O>,
  o: {
    readonly run: R;
    readonly sources?: S | undefined;
    readonly scope?: TriggerScope | undefined;
    readonly options?: O | undefined;
  },
): Trigger<R | S> {
  const prototype = typeof Class === 'function' ? Class.prototype : undefined;
  const sources = (o as { readonly sources?: unknown } | undefined)?.sources !== undefined;
  for (const method of ['onObject', 'snapshot', 'restore', ...(sources ? ['onSourceStarted'] : [])]) {
    if (typeof prototype?.[method] !== 'function') {
      throw usageError(custom, `custom: the first argument must be a class with the method ${method}`);
    }
  }
  if (Class.name === '') throw usageError(custom, 'custom: the class must have a name, which its messages bear');
  return define(custom, 'custom', o, ['run', 'sources', 'scope', 'options'], Class);
}

function define(
  builder: unknown,
  kind: TriggerKind,
  given: unknown,
  known: readonly string[],
  Class?: CustomTriggerClass,
): TriggerDefinition {
  const options = takeOptions(builder, kind, given, known);
  if (!isRun(options.run)) {
    throw usageError(
      builder,
      `${kind}: run must be the name of a function or a list of names, not ${describe(options.run)}`,
    );
  }
  const source = locate(builder);
  return Object.freeze({
    [TRIGGER]: 1 as const,
    kind,
    options,
    ...(Class === undefined ? {} : { Class }),
    ...(source === undefined ? {} : { source }),
  });
}

function isRun(run: unknown): run is Run {
  if (typeof run === 'string') return run !== '';
  return Array.isArray(run) && run.length > 0 && run.every((name) => typeof name === 'string');
}
