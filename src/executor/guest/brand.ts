// The SDK's marks, by their registered names: a bundle brings its own copy of the SDK, so classes and constants differ.

import type { AppDefinition } from '../../sdk/index.ts';

const APP = Symbol.for('antrail.app');

/** Set on globalThis before a bundle is loaded: builders do not look up where they were called. */
export const NO_LOCATIONS = Symbol.for('antrail.noLocations');

export function isApp(value: unknown): value is AppDefinition {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[APP] === 1;
}
