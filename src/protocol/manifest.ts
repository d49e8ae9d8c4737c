// What a deployed application is, as data. The body of `PUT /v1/apps/{app}` and what the SDK makes of `app(...)`.

export type FunctionKind = 'fn' | 'durable';
export type Runtime = 'thread' | 'process';
/** Where a trigger's state lives: one per session, or one per bucket across sessions. */
export type TriggerScope = 'session' | 'bucket';

/** Where something was declared, for error messages: a path as the author knows it, 1-based line. */
export interface SourceLocation {
  readonly file: string;
  readonly line: number;
}

export interface RetryPolicy {
  /** Further attempts after the first, 0 to RETRIES_MAX. */
  readonly max: number;
  readonly minMs: number;
  readonly maxMs: number;
}

export interface FunctionOptionsSpec {
  readonly timeoutMs?: number;
  readonly retries?: number | RetryPolicy;
  readonly concurrency?: number;
  readonly memoryMb?: number;
  readonly pool?: string;
  readonly priority?: number;
  readonly keepAlive?: unknown;
  /** True when the function has an `input` validator in its bundle. */
  readonly input?: boolean;
  /** True when it has an `init` in its bundle. */
  readonly init?: boolean;
}

export interface FunctionSpec {
  readonly kind: FunctionKind;
  readonly runtime?: Runtime;
  readonly options?: FunctionOptionsSpec;
  readonly source?: SourceLocation;
}

/** The functions that a firing invokes, once each. */
type Run = string | readonly string[];
/** Wire form of a RegExp. */
export interface RegExpSpec {
  readonly regexp: string;
  readonly flags: string;
}

/** Options of each primitive; checked by `checkTrigger`. */
export type TriggerSpec = { readonly source?: SourceLocation } & (
  | { readonly kind: 'immediate'; readonly run: Run }
  | {
      readonly kind: 'byName';
      readonly name?: string;
      /** A prefix, or a regular expression. */
      readonly match?: string | RegExpSpec;
      readonly run: Run;
    }
  | { readonly kind: 'bySet'; readonly names: readonly string[]; readonly run: Run }
  | {
      readonly kind: 'byBatchSize';
      readonly size: number;
      readonly maxWaitMs?: number;
      readonly scope?: TriggerScope;
      readonly run: Run;
    }
  | {
      readonly kind: 'byTime';
      readonly windowMs?: number;
      /** Five fields, or six with seconds in front; in UTC. */
      readonly cron?: string;
      readonly fireEmpty?: boolean;
      readonly scope?: TriggerScope;
      readonly run: Run;
    }
  | {
      readonly kind: 'redundant';
      readonly k: number;
      readonly n: number;
      readonly sources?: readonly string[];
      readonly cancelLosers?: boolean;
      readonly scope?: TriggerScope;
      readonly run: Run;
    }
  | { readonly kind: 'dynamicJoin'; readonly run: Run }
  | {
      readonly kind: 'dynamicGroup';
      readonly producers?: readonly string[];
      readonly scope?: TriggerScope;
      readonly run: Run;
    }
  | {
      readonly kind: 'custom';
      /** Name of a class that the bundle hands to `custom`. */
      readonly class: string;
      /** Handed to its constructor. */
      readonly options?: unknown;
      /** Functions of whose starts it hears. */
      readonly sources?: readonly string[];
      readonly scope?: TriggerScope;
      readonly run: Run;
    }
);

export interface RerunRule {
  readonly source: string;
  /** Every invocation of the source sends at least one object, or these names appear. */
  readonly expect: 'every-object' | readonly string[];
  /** From the attempt's start. */
  readonly timeoutMs: number;
}

export interface BucketSpec {
  readonly on?: Readonly<Record<string, TriggerSpec>>;
  readonly rerun?: readonly RerunRule[];
  /** True when the bucket has a `schema` validator in the bundle. */
  readonly schema?: boolean;
  readonly source?: SourceLocation;
}

export interface Manifest {
  readonly entry: string;
  readonly functions: Readonly<Record<string, FunctionSpec>>;
  readonly buckets: Readonly<Record<string, BucketSpec>>;
  readonly state?: unknown;
  /** Environment of its instances: a value, or null = must be given at deploy. */
  readonly env?: Readonly<Record<string, string | null>>;
  readonly secrets?: readonly string[];
  readonly routes?: unknown;
  readonly cron?: unknown;
  readonly source?: SourceLocation;
}

/** A file of a bundle: text, or bytes in base64. */
export type BundleFile = string | { readonly base64: string };

/** Body of `PUT /v1/apps/{app}`. `main` names the ES module in `files` whose default export is the app. */
export interface AppBundle {
  readonly manifest: Manifest;
  readonly main: string;
  readonly files: Readonly<Record<string, BundleFile>>;
}

/** Bucket of an external request's input. */
export const INPUT_BUCKET = '$input';
/** Bucket of `ctx.call`. */
export const CALL_BUCKET = '$call';
/** Bucket of `ctx.output` without a declared bucket. */
export const OUTPUT_BUCKET = '$output';
