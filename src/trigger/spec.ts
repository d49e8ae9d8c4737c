// What can be read off a trigger, as it stands in a manifest, without any state.

import type { RegExpSpec, TriggerScope, TriggerSpec } from '../protocol/index.ts';

export type { RegExpSpec, TriggerScope, TriggerSpec };
export type TriggerKind = TriggerSpec['kind'];
export type SpecOf<K extends TriggerKind> = Extract<TriggerSpec, { kind: K }>;

/** The scope with the default of its kind applied. */
export function scopeOf(spec: TriggerSpec): TriggerScope {
  switch (spec.kind) {
    case 'byBatchSize':
    case 'byTime':
      return spec.scope ?? 'bucket';
    case 'redundant':
    case 'dynamicGroup':
    case 'custom':
      return spec.scope ?? 'session';
    default:
      return 'session';
  }
}

/** `run` as a list. */
export function functionsOf(spec: TriggerSpec): readonly string[] {
  return typeof spec.run === 'string' ? [spec.run] : spec.run;
}

/** Whether it can be evaluated where an object is sent, from the object's name alone: see `matchesName`. */
export function isStateless(spec: TriggerSpec): boolean {
  return spec.kind === 'immediate' || spec.kind === 'byName';
}

/**
 * For stateless kinds: whether it fires for an object of this name. Always false for the others.
 * Cost: one comparison, or one match of an expression that is compiled once per spec.
 */
export function matchesName(spec: TriggerSpec, name: string): boolean {
  if (spec.kind === 'immediate') return true;
  if (spec.kind !== 'byName') return false;
  if (spec.name !== undefined) return name === spec.name;
  if (typeof spec.match === 'string') return name.startsWith(spec.match);
  if (spec.match === undefined) return false;
  const expression = compiled(spec.match);
  expression.lastIndex = 0; // flags g and y make `test` remember where it stopped
  return expression.test(name);
}

const expressions = new WeakMap<RegExpSpec, RegExp>();

function compiled(match: RegExpSpec): RegExp {
  let expression = expressions.get(match);
  if (expression === undefined) {
    expression = new RegExp(match.regexp, match.flags);
    expressions.set(match, expression);
  }
  return expression;
}
