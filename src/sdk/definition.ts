// What the builders make: plain frozen records that the executor runs and the deploy side turns into a manifest.
//
// They are told apart by registered symbols, not by class: a bundle can hold two copies of this package, and the executor
// always has a third.

import type { FunctionKind, RerunRule, SourceLocation, TriggerSpec } from '../protocol/index.ts';
import type { CustomTriggerClass } from './custom-trigger.ts';

export const APP = Symbol.for('antrail.app');
export const FUNCTION = Symbol.for('antrail.function');
export const BUCKET = Symbol.for('antrail.bucket');
export const TRIGGER = Symbol.for('antrail.trigger');

export type Options = Readonly<Record<string, unknown>>;
export type TriggerKind = TriggerSpec['kind'];

export interface FunctionDefinition {
  readonly [FUNCTION]: 1;
  readonly kind: FunctionKind;
  readonly handler: (ctx: any, inputs: any) => unknown;
  /** As given, with the `input` validator and `init` themselves. */
  readonly options: Options;
  readonly source?: SourceLocation;
}

export interface TriggerDefinition {
  readonly [TRIGGER]: 1;
  readonly kind: TriggerKind;
  /** As given; a RegExp is still one. */
  readonly options: Options;
  /** Of `custom` only. */
  readonly Class?: CustomTriggerClass;
  readonly source?: SourceLocation;
}

export interface BucketDefinition {
  readonly [BUCKET]: 1;
  readonly on: Readonly<Record<string, TriggerDefinition>>;
  readonly rerun: readonly RerunRule[];
  /** The Standard Schema validator itself. */
  readonly schema?: unknown;
  readonly source?: SourceLocation;
}

export interface AppDefinition {
  readonly [APP]: 1;
  readonly name: string;
  readonly entry: string;
  readonly functions: Readonly<Record<string, FunctionDefinition>>;
  readonly buckets: Readonly<Record<string, BucketDefinition>>;
  /** `state`, `env`, `secrets`, `routes`, `cron`, as given. */
  readonly options: Options;
  readonly source?: SourceLocation;
}

export function isApp(value: unknown): value is AppDefinition {
  return bears(value, APP);
}

export function isFunction(value: unknown): value is FunctionDefinition {
  return bears(value, FUNCTION);
}

export function isBucket(value: unknown): value is BucketDefinition {
  return bears(value, BUCKET);
}

export function isTrigger(value: unknown): value is TriggerDefinition {
  return bears(value, TRIGGER);
}

function bears(value: unknown, brand: symbol): boolean {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === 1;
}
