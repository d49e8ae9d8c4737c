import { nearMiss } from '../base/index.ts';
import type { AppProblem, SourceLocation } from '../protocol/index.ts';
import { PROBLEMS_MAX, SOURCE_FILE_CHARS_MAX } from './limits.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** What was found so far, in order; bounded, for what is checked comes from outside. */
export class Problems {
  readonly #listed: AppProblem[] = [];
  #unlisted = 0;

  /** @param message a sentence that says what to do. */
  add(message: string, source?: SourceLocation): void {
    if (this.#listed.length >= PROBLEMS_MAX) this.#unlisted++;
    else this.#listed.push({ message, ...(source === undefined ? {} : { file: source.file, line: source.line }) });
  }

  get found(): boolean {
    return this.#listed.length > 0;
  }

  list(): AppProblem[] {
    if (this.#unlisted === 0) return [...this.#listed];
    return [...this.#listed, { message: `There are ${this.#unlisted} more problems; mend these first.` }];
  }
}

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Own properties only: a manifest may hold `constructor` or `__proto__`. Undefined counts as absent. */
export function own(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

/** A `source` that is one; anything else has no location. */
export function sourceOf(value: unknown): SourceLocation | undefined {
  const source = isFields(value) ? own(value, 'source') : undefined;
  if (!isFields(source)) return undefined;
  const file = own(source, 'file');
  const line = own(source, 'line');
  if (typeof file !== 'string' || file === '' || file.length > SOURCE_FILE_CHARS_MAX) return undefined;
  return isWhole(line, 1, Number.MAX_SAFE_INTEGER) ? { file, line } : undefined;
}

export function isWhole(value: unknown, min: number, max: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
}

export function suggestion(name: string, known: Iterable<string>): string {
  const near = nearMiss(name, known);
  return near === undefined || near === name ? '' : ` Did you mean ${quoted(near)}?`;
}

export function quoted(name: string): string {
  return JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
}

/** A value in a message: short, and never throws. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return String(value);
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
