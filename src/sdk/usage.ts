// Mistakes in how the builders are used: thrown at once, with the author's own line as the first frame.

import { nearMiss } from '../base/index.ts';
import type { Options } from './definition.ts';

export function usageError(builder: unknown, message: string): TypeError {
  const error = new TypeError(message);
  (Error as { captureStackTrace?: (target: object, above: unknown) => void }).captureStackTrace?.(error, builder);
  return error;
}

/** @returns the options without those that are undefined, frozen. */
export function takeOptions(builder: unknown, what: string, options: unknown, known: readonly string[]): Options {
  if (!isRecord(options)) {
    throw usageError(builder, `${what}: options must be an object, not ${describe(options)}`);
  }
  const taken: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    if (!known.includes(name)) {
      throw usageError(
        builder,
        `${what}: unknown option ${quote(name)}${meant(name, known)}; it takes ${known.join(', ')}`,
      );
    }
    if (value !== undefined) taken[name] = value;
  }
  return Object.freeze(taken);
}

export function meant(name: string, known: Iterable<string>): string {
  const near = nearMiss(name, known);
  return near === undefined ? '' : `, did you mean ${quote(near)}?`;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function quote(text: string): string {
  return JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text);
}

export function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (typeof value === 'function') return 'a function';
  return typeof value === 'object' ? 'an object' : String(typeof value);
}
