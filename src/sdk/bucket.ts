import type { StandardSchemaV1 } from '@standard-schema/spec';
import { NAME_PATTERN } from '../base/index.ts';
import type { RerunRule } from '../protocol/index.ts';
import { BUCKET, type BucketDefinition, isTrigger, type TriggerDefinition } from './definition.ts';
import { isValidator } from './function.ts';
import { locate } from './location.ts';
import type { RefsOfTrigger } from './trigger.ts';
import { describe, isRecord, quote, takeOptions, usageError } from './usage.ts';

declare const refs: unique symbol;

/** A bucket, with the names of the functions that its triggers and rules refer to. */
export interface Bucket<R extends string = any> extends BucketDefinition {
  /** Never there: carries the names only. */
  readonly [refs]?: R;
}

export interface BucketDef {
  /** Triggers by name. */
  // Not Record<string, Trigger>: its names would flow back into the type of `redundant({ … })` written in place.
  readonly on?: Readonly<Record<string, TriggerDefinition>>;
  /** Who must have sent what within which time, else is run again. */
  readonly rerun?: readonly RerunRule[];
  /** Any Standard Schema validator that answers at once: an object that fails is refused at its sender. */
  readonly schema?: StandardSchemaV1;
}

type TriggerRefs<D> = D extends { readonly on?: infer T } ? RefsOfTrigger<NonNullable<T>[keyof NonNullable<T>]> : never;
type RuleRefs<D> = D extends { readonly rerun?: infer L }
  ? NonNullable<L> extends readonly (infer Rule)[]
    ? Rule extends { readonly source: infer S }
      ? S
      : never
    : never
  : never;

/** The names of all functions that a bucket refers to. */
export type RefsOf<D> = (TriggerRefs<D> | RuleRefs<D>) & string;

/** @throws TypeError at the caller's line when it is used wrongly. */
export function bucket<const D extends BucketDef>(d: D): Bucket<RefsOf<D>> {
  const { on = {}, rerun = [], schema } = takeOptions(bucket, 'bucket', d ?? {}, ['on', 'rerun', 'schema']);
  if (!isRecord(on)) throw usageError(bucket, `bucket: on must be { name: trigger }, not ${describe(on)}`);
  for (const [name, trigger] of Object.entries(on)) {
    if (!NAME_PATTERN.test(name))
      throw usageError(bucket, `bucket: ${quote(name)} cannot name a trigger (${NAME_PATTERN})`);
    if (!isTrigger(trigger)) {
      throw usageError(
        bucket,
        `bucket: on.${name} is ${describe(trigger)}, not a trigger; write for example ${name}: immediate({ run: 'f' })`,
      );
    }
  }
  if (!Array.isArray(rerun)) throw usageError(bucket, `bucket: rerun must be a list of rules, not ${describe(rerun)}`);
  for (const rule of rerun) {
    takeOptions(bucket, 'a rule of rerun', rule, ['source', 'expect', 'timeoutMs']);
  }
  if (schema !== undefined && !isValidator(schema)) {
    throw usageError(
      bucket,
      `bucket: schema must be a Standard Schema validator (zod, valibot, arktype, …), not ${describe(schema)}`,
    );
  }
  const source = locate(bucket);
  return Object.freeze({
    [BUCKET]: 1 as const,
    on: Object.freeze({ ...(on as Record<string, TriggerDefinition>) }),
    rerun: Object.freeze(rerun.map((rule) => Object.freeze({ ...(rule as RerunRule) }))),
    ...(schema === undefined ? {} : { schema }),
    ...(source === undefined ? {} : { source }),
  });
}
