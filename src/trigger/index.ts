export { checkTrigger } from './check.ts';
export { createTrigger, restoreTrigger } from './create.ts';
export { HELD_OBJECTS_MAX, REDUNDANT_GROUPS_MAX, SET_NAMES_MAX, TAKEN_KEYS_MAX } from './limits.ts';
export type { Firing, Join, Now, TriggerMachine, TriggerObject } from './machine.ts';
export { functionsOf, isStateless, matchesName, type SpecOf, scopeOf, type TriggerSpec } from './spec.ts';
