import { NAME_PATTERN } from '../base/index.ts';
import { CONCURRENCY_MAX, MEMORY_MB_MAX, MEMORY_MB_MIN, PRIORITY_MAX, RETRIES_MAX, TIMEOUT_MS_MAX } from './limits.ts';
import { type Fields, isFields, isWhole, own, shown, suggestion } from './problems.ts';

/** The end of a sentence that begins with the option's name; undefined if nothing is wrong. */
type Check = (value: unknown) => string | undefined;

const OPTIONS: Readonly<Record<string, Check>> = {
  timeoutMs: whole(1, TIMEOUT_MS_MAX),
  retries: checkRetries,
  concurrency: whole(1, CONCURRENCY_MAX),
  memoryMb: whole(MEMORY_MB_MIN, MEMORY_MB_MAX),
  pool: checkPool,
  priority: whole(-PRIORITY_MAX, PRIORITY_MAX),
  keepAlive: () => undefined,
  input: checkFlag,
  init: checkFlag,
};

/** `kind`, `runtime` and `options` of one function. @param refuse takes the rest of a sentence about the function. */
export function checkFunctionFields(spec: Fields, refuse: (message: string) => void): void {
  const kind = own(spec, 'kind');
  if (kind !== 'fn' && kind !== 'durable') refuse(`kind must be 'fn' or 'durable'; got ${shown(kind)}.`);
  const runtime = own(spec, 'runtime');
  if (runtime !== undefined && runtime !== 'thread' && runtime !== 'process') {
    refuse(`runtime must be 'thread' or 'process'; got ${shown(runtime)}.`);
  }
  const options = own(spec, 'options');
  if (options === undefined) return;
  if (!isFields(options)) {
    refuse(`options must be an object; got ${shown(options)}.`);
    return;
  }
  for (const [name, value] of Object.entries(options)) {
    const check = Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : undefined;
    if (check === undefined) {
      const known = Object.keys(OPTIONS);
      const hint = name === 'runtime' ? ' runtime stands beside options.' : suggestion(name, known);
      refuse(`there is no option ${shown(name)}; the options are ${known.join(', ')}.${hint}`);
      continue;
    }
    const problem = value === undefined ? undefined : check(value);
    if (problem !== undefined) refuse(`${name} ${problem}`);
  }
}

function whole(min: number, max: number): Check {
  return (value) =>
    isWhole(value, min, max) ? undefined : `must be a whole number from ${min} to ${max}; got ${shown(value)}.`;
}

function checkRetries(value: unknown): string | undefined {
  if (typeof value === 'number') return whole(0, RETRIES_MAX)(value);
  if (!isFields(value)) return `must be a number or { max, minMs, maxMs }; got ${shown(value)}.`;
  for (const name of Object.keys(value)) {
    const known = ['max', 'minMs', 'maxMs'];
    if (!known.includes(name))
      return `has no field ${shown(name)}; it takes max, minMs, maxMs.${suggestion(name, known)}`;
  }
  const minMs = own(value, 'minMs');
  const maxMs = own(value, 'maxMs');
  const wrong = [
    ['max', whole(0, RETRIES_MAX)(own(value, 'max'))],
    ['minMs', whole(0, TIMEOUT_MS_MAX)(minMs)],
    ['maxMs', whole(0, TIMEOUT_MS_MAX)(maxMs)],
  ].find(([, problem]) => problem !== undefined);
  if (wrong !== undefined) return `is wrong: ${wrong[0]} ${wrong[1]}`;
  if ((minMs as number) > (maxMs as number)) return `has minMs ${minMs} above maxMs ${maxMs}; swap or change them.`;
  return undefined;
}

function checkPool(value: unknown): string | undefined {
  const fits = typeof value === 'string' && NAME_PATTERN.test(value) && !(value in Object.prototype);
  return fits
    ? undefined
    : `must be a name of letters, digits, "_", "$", "." and "-", 128 at most; got ${shown(value)}.`;
}

function checkFlag(value: unknown): string | undefined {
  if (typeof value === 'boolean') return undefined;
  return `must be true or absent in a manifest, for the code itself is in the bundle; got ${shown(value)}.`;
}
