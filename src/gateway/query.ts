// Query parameters: said once per route, read from here by the route, by OpenAPI and by the refusal that names them.

import { nearMiss, PlatformError } from '../base/index.ts';
import { TAG_CHARS_MAX, TAGS_MAX } from './limits.ts';

export type QueryParameter = { readonly about: string } & (
  | { readonly type: 'enum'; readonly values: readonly string[] }
  | { readonly type: 'integer'; readonly min: number; readonly max: number }
  | { readonly type: 'boolean' }
  | { readonly type: 'text'; readonly charsMax: number }
  /** Repeatable `key=value`. */
  | { readonly type: 'tags' }
);
export type QuerySpec = Readonly<Record<string, QueryParameter>>;

type ValueOf<P extends QueryParameter> = P extends { type: 'enum'; values: readonly (infer V)[] }
  ? V
  : P extends { type: 'integer' }
    ? number
    : P extends { type: 'boolean' }
      ? boolean
      : P extends { type: 'tags' }
        ? Readonly<Record<string, string>>
        : string;
export type QueryOf<Q extends QuerySpec> = { readonly [K in keyof Q]?: ValueOf<Q[K]> };

const NOTHING = Object.freeze({});

/** @throws E_REQUEST_INVALID with `parameter` and what it may be. */
export function readQuery<Q extends QuerySpec>(spec: Q, url: string): QueryOf<Q> {
  const mark = url.indexOf('?');
  if (mark < 0 || mark === url.length - 1) return NOTHING as QueryOf<Q>;
  const result: Record<string, unknown> = {};
  for (const [name, text] of new URLSearchParams(url.slice(mark + 1))) {
    const parameter = Object.hasOwn(spec, name) ? spec[name] : undefined;
    if (parameter === undefined) throw unknownParameter(name, Object.keys(spec));
    if (parameter.type === 'tags') {
      result[name] = addTag((result[name] ?? {}) as Record<string, string>, name, text);
      continue;
    }
    if (result[name] !== undefined) throw invalid(name, 'once', text);
    result[name] = readOne(name, parameter, text);
  }
  return result as QueryOf<Q>;
}

function readOne(name: string, parameter: Exclude<QueryParameter, { type: 'tags' }>, text: string): unknown {
  switch (parameter.type) {
    case 'enum':
      if (!parameter.values.includes(text)) throw invalid(name, parameter.values.join(' or '), text);
      return text;
    case 'boolean':
      if (text !== 'true' && text !== 'false') throw invalid(name, 'true or false', text);
      return text === 'true';
    case 'integer': {
      const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      if (!(value >= parameter.min && value <= parameter.max)) {
        throw invalid(name, `an integer from ${parameter.min} to ${parameter.max}`, text);
      }
      return value;
    }
    case 'text':
      if (text.length === 0 || text.length > parameter.charsMax) {
        throw invalid(name, `1 to ${parameter.charsMax} characters`, text);
      }
      return text;
  }
}

function addTag(tags: Record<string, string>, name: string, text: string): Record<string, string> {
  const equals = text.indexOf('=');
  const key = text.slice(0, Math.max(0, equals));
  const value = text.slice(equals + 1);
  if (key.length === 0 || key.length > TAG_CHARS_MAX || value.length > TAG_CHARS_MAX) {
    throw invalid(name, `key=value, each at most ${TAG_CHARS_MAX} characters`, text);
  }
  const all = { ...tags, [key]: value };
  if (Object.keys(all).length > TAGS_MAX) throw invalid(name, `given at most ${TAGS_MAX} times`, text);
  return all;
}

function invalid(parameter: string, allowed: string, given: string): PlatformError {
  const shown = JSON.stringify(given.length > 64 ? `${given.slice(0, 64)}…` : given);
  return new PlatformError(
    'E_REQUEST_INVALID',
    `Query parameter \`${parameter}\` must be ${allowed}; it is ${shown}.`,
    {
      details: { parameter, allowed },
    },
  );
}

function unknownParameter(name: string, known: readonly string[]): PlatformError {
  const shown = JSON.stringify(name.slice(0, 64));
  const didYouMean = nearMiss(name, known);
  const allowed = known.length === 0 ? 'this route takes none' : `this route takes ${known.join(', ')}`;
  return new PlatformError('E_REQUEST_INVALID', `There is no query parameter ${shown} here; ${allowed}.`, {
    details: { parameter: name.slice(0, 64), allowed: known, ...(didYouMean === undefined ? {} : { didYouMean }) },
  });
}
