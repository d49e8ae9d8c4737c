export type { SourceLocation, TriggerScope } from '../protocol/index.ts';
export {
  type AnyApp,
  type App,
  type AppOptions,
  app,
  type BucketsOf,
  type FunctionsOf,
  type NameOf,
  type StateOptions,
  type StateProtocol,
} from './app.ts';
export { type Bucket, type BucketDef, bucket, type RefsOf } from './bucket.ts';
export type {
  Ctx,
  DurableCtx,
  DurableState,
  InitCtx,
  Log,
  LogFields,
  ReadableState,
  SendObjectOptions,
  SendOptions,
  StatePage,
  StateQuery,
  StateTransaction,
  StepCtx,
  StepOptions,
  TakeOptions,
} from './context.ts';
export type {
  CustomFiring,
  CustomReaction,
  CustomTrigger,
  CustomTriggerClass,
  TriggerObject,
} from './custom-trigger.ts';
export type {
  AppDefinition,
  BucketDefinition,
  FunctionDefinition,
  TriggerDefinition,
  TriggerKind,
} from './definition.ts';
export type { EpheObject, Inputs } from './ephe-object.ts';
export {
  type DurableHandler,
  durable,
  type Fn,
  type FnOptions,
  fn,
  type Handler,
  type InOf,
  type OutOf,
} from './function.ts';
export { TerminalError } from './terminal-error.ts';
export {
  byBatchSize,
  byName,
  bySet,
  byTime,
  custom,
  dynamicGroup,
  dynamicJoin,
  immediate,
  type NamesIn,
  type RefsOfTrigger,
  type Run,
  redundant,
  type Trigger,
} from './trigger.ts';
