// For the executor and the deploy side, not for apps.

export {
  APP,
  type AppDefinition,
  BUCKET,
  type BucketDefinition,
  FUNCTION,
  type FunctionDefinition,
  isApp,
  isBucket,
  isFunction,
  isTrigger,
  TRIGGER,
  type TriggerDefinition,
  type TriggerKind,
} from './definition.ts';
export { framesOf, NO_LOCATIONS } from './location.ts';
export { manifestOf } from './manifest-of.ts';
