// Names as small integers: host and instances build the same table from the same manifest, so records carry indexes.

import { CALL_BUCKET, INPUT_BUCKET, type Manifest, OUTPUT_BUCKET, type TriggerSpec } from '../protocol/index.ts';

export interface FunctionRow {
  readonly index: number;
  readonly name: string;
  readonly concurrency: number;
  /** 0: none. */
  readonly timeoutMs: number;
  readonly retries: { readonly max: number; readonly minMs: number; readonly maxMs: number };
  readonly pool: string;
  readonly memoryMb: number;
  readonly priority: number;
  readonly validates: boolean;
  /** What is expected of it, else it is executed again. */
  readonly reruns: readonly RerunRow[];
  /** Custom triggers that hear of its starts. */
  readonly watchedBy: readonly { readonly bucket: number; readonly trigger: number }[];
}

export interface RerunRow {
  /** Index of the bucket. */
  readonly bucket: number;
  /** Undefined: at least one object of each invocation. */
  readonly names: readonly string[] | undefined;
  readonly timeoutMs: number;
}

export interface TriggerRow {
  readonly index: number;
  readonly name: string;
  readonly spec: TriggerSpec;
  /** Indexes into `functions`. */
  readonly run: readonly number[];
}

export interface BucketRow {
  readonly index: number;
  readonly name: string;
  readonly triggers: readonly TriggerRow[];
  /** Every trigger is an unconditional `immediate` of session scope: can be evaluated where the object is sent. */
  readonly inline: boolean;
  readonly validates: boolean;
}

export interface AppTables {
  readonly functions: readonly FunctionRow[];
  readonly functionByName: ReadonlyMap<string, FunctionRow>;
  readonly buckets: readonly BucketRow[];
  readonly bucketByName: ReadonlyMap<string, BucketRow>;
  /** Counts up with each change of triggers at run time. */
  readonly version: number;
}

export const TIMEOUT_MS_DEFAULT = 60_000;
export const MEMORY_MB_DEFAULT = 256;
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 30_000;
/** Of `durable` functions that throw. */
const DURABLE_RETRIES = 10;

export type TriggersByBucket = Readonly<Record<string, Readonly<Record<string, TriggerSpec>>>>;

/** @param changed triggers of buckets that were changed at run time; they replace the manifest's. */
export function buildTables(manifest: Manifest, changed: TriggersByBucket = {}, version = 0): AppTables {
  const names = [INPUT_BUCKET, CALL_BUCKET, OUTPUT_BUCKET, ...Object.keys(manifest.buckets)];
  const triggersOf = (bucket: string): Readonly<Record<string, TriggerSpec>> => {
    if (Object.hasOwn(changed, bucket)) return changed[bucket] ?? {};
    return (Object.hasOwn(manifest.buckets, bucket) ? manifest.buckets[bucket]?.on : undefined) ?? {};
  };
  const functions: FunctionRow[] = Object.entries(manifest.functions).map(([name, spec], index) => {
    const options = spec.options ?? {};
    const durable = spec.kind === 'durable';
    const retries = options.retries ?? (durable ? DURABLE_RETRIES : 0);
    const memoryMb = options.memoryMb ?? MEMORY_MB_DEFAULT;
    return {
      index,
      name,
      concurrency: options.concurrency ?? 1,
      timeoutMs: options.timeoutMs ?? (durable ? 0 : TIMEOUT_MS_DEFAULT),
      retries: typeof retries === 'number' ? { max: retries, minMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS } : retries,
      pool: `${options.pool ?? 'default'}/${memoryMb}`,
      memoryMb,
      priority: options.priority ?? 0,
      validates: options.input === true,
      watchedBy: names.flatMap((bucket, at) =>
        Object.values(triggersOf(bucket)).flatMap((trigger, index) =>
          trigger.kind === 'custom' && trigger.sources?.includes(name) === true ? [{ bucket: at, trigger: index }] : [],
        ),
      ),
      reruns: names.flatMap((bucket, at) =>
        (Object.hasOwn(manifest.buckets, bucket) ? (manifest.buckets[bucket]?.rerun ?? []) : [])
          .filter((rule) => rule.source === name)
          .map((rule) => ({
            bucket: at,
            names: rule.expect === 'every-object' ? undefined : rule.expect,
            timeoutMs: rule.timeoutMs,
          })),
      ),
    };
  });
  const functionByName = new Map(functions.map((row) => [row.name, row]));
  const buckets = names.map((name, index): BucketRow => {
    const declared = Object.hasOwn(manifest.buckets, name) ? manifest.buckets[name] : undefined;
    const triggers = Object.entries(triggersOf(name)).map(([trigger, spec], at): TriggerRow => {
      const run = typeof spec.run === 'string' ? [spec.run] : spec.run;
      return {
        index: at,
        name: trigger,
        spec,
        run: run.map((target) => functionByName.get(target)?.index ?? -1).filter((target) => target >= 0),
      };
    });
    return {
      index,
      name,
      triggers,
      inline: triggers.every((row) => row.spec.kind === 'immediate'),
      validates: declared?.schema === true,
    };
  });
  return { functions, functionByName, buckets, bucketByName: new Map(buckets.map((row) => [row.name, row])), version };
}

/** Positions of the buckets that every app has. */
export const INPUT_BUCKET_INDEX = 0;
export const CALL_BUCKET_INDEX = 1;
export const OUTPUT_BUCKET_INDEX = 2;
