import { APP_NAME_PATTERN, NAME_PATTERN } from '../base/index.ts';
import type { Bucket } from './bucket.ts';
import { APP, type AppDefinition, isBucket, isFunction } from './definition.ts';
import type { Fn } from './function.ts';
import { locate } from './location.ts';
import { describe, isRecord, meant, quote, takeOptions, usageError } from './usage.ts';

/** An application, with its name and the types of its functions and buckets. */
export interface App<
  N extends string = string,
  F extends Record<string, Fn> = Record<string, Fn>,
  B extends Record<string, Bucket> = Record<string, Bucket>,
> extends AppDefinition {
  readonly name: N;
  readonly functions: Readonly<F>;
  readonly buckets: Readonly<B>;
}

export type AnyApp = App<string, any, any>;
export type NameOf<A> = A extends { readonly [APP]: 1; readonly name: infer N extends string } ? N : never;
export type FunctionsOf<A> = A extends { readonly [APP]: 1; readonly functions: infer F } ? F : never;
export type BucketsOf<A> = A extends { readonly [APP]: 1; readonly buckets: infer B } ? B : never;

export type StateProtocol = 'read-optimized' | 'write-optimized' | 'symmetric' | 'immutable' | 'unsafe' | 'auto';

export interface StateOptions {
  /** By key prefix; the longest that fits counts. Default `auto`. */
  readonly protocols?: Readonly<Record<string, StateProtocol>> | undefined;
  /** Keeps unlogged writes to different keys in order. */
  readonly strictOrder?: boolean | undefined;
  /** `output` (default): waits for the log only before something leaves the invocation; `each`: at every operation. */
  readonly commit?: 'output' | 'each' | undefined;
}

export interface AppOptions {
  readonly state?: StateOptions | undefined;
  /** The environment of its instances: a value, or null = must be given at deploy. */
  readonly env?: Readonly<Record<string, string | null>> | undefined;
  /** Names of the secrets it may read. */
  readonly secrets?: readonly string[] | undefined;
  readonly routes?: unknown;
  readonly cron?: unknown;
}

/**
 * An application: what a file exports as its default to be deployed.
 *
 * That triggers and rules name functions of the app is checked by its types, and again when it is deployed.
 *
 * @param name lower-case letters, digits and `-`, 63 at most.
 * @throws TypeError at the caller's line when it is used wrongly.
 */
export function app<
  const N extends string,
  F extends Record<string, Fn>,
  B extends Record<string, Bucket<keyof F & string>> = Record<never, never>,
>(
  name: N,
  o: {
    /** The function that a start without a function's name runs. */
    readonly entry: NoInfer<keyof F & string>;
    readonly functions: F;
    readonly buckets?: B;
  } & AppOptions,
): App<N, F, B> {
  if (typeof name !== 'string' || !APP_NAME_PATTERN.test(name)) {
    throw usageError(
      app,
      `app: the name must be lower-case letters, digits and "-", 63 at most, and begin with a letter or digit, not ${describe(name)}`,
    );
  }
  const what = `app ${quote(name)}`;
  const known = ['entry', 'functions', 'buckets', 'state', 'env', 'secrets', 'routes', 'cron'];
  const { entry, functions, buckets = {}, ...options } = takeOptions(app, what, o, known);
  checkMembers(what, 'functions', functions, isFunction, 'made by fn() or durable(); write for example', 'fn(handler)');
  checkMembers(what, 'buckets', buckets, isBucket, 'made by bucket(); write for example', 'bucket({})');
  if (typeof entry !== 'string' || !Object.hasOwn(functions as object, entry)) {
    const names = Object.keys(functions as object);
    throw usageError(
      app,
      `${what}: entry must name one of its functions (${names.join(', ')}), not ${describe(entry)}${typeof entry === 'string' ? meant(entry, names) : ''}`,
    );
  }
  const source = locate(app);
  return Object.freeze({
    [APP]: 1 as const,
    name,
    entry,
    functions: Object.freeze({ ...(functions as F) }),
    buckets: Object.freeze({ ...(buckets as B) }),
    options: Object.freeze(options),
    ...(source === undefined ? {} : { source }),
  });
}

function checkMembers(
  what: string,
  field: string,
  members: unknown,
  isMember: (value: unknown) => boolean,
  made: string,
  example: string,
): void {
  if (!isRecord(members)) throw usageError(app, `${what}: ${field} must be { name: … }, not ${describe(members)}`);
  for (const [name, member] of Object.entries(members)) {
    if (!NAME_PATTERN.test(name)) {
      throw usageError(app, `${what}: ${quote(name)} cannot be a name in ${field} (${NAME_PATTERN})`);
    }
    if (!isMember(member)) {
      throw usageError(app, `${what}: ${field}.${name} is ${describe(member)}, not ${made} ${name}: ${example}`);
    }
  }
}
