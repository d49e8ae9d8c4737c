export { checkTrigger } from './check.ts';
export { createTrigger, restoreTrigger } from './create.ts';
export { CustomMachine, type EvaluationPlan, evaluationOf, type Outcome, type Source } from './custom.ts';
export { type AskedClass, evaluateCustom, whyNotAsked } from './custom-evaluation.ts';
export {
  CUSTOM_STATE_CHARS_MAX,
  EVALUATION_QUEUE_MAX,
  EVALUATION_TRIES_MAX,
  HELD_OBJECTS_MAX,
  REDUNDANT_GROUPS_MAX,
  SET_NAMES_MAX,
  TAKEN_KEYS_MAX,
} from './limits.ts';
export type { Firing, Join, Now, TriggerMachine, TriggerObject } from './machine.ts';
export { functionsOf, isStateless, matchesName, type SpecOf, scopeOf, type TriggerSpec } from './spec.ts';
