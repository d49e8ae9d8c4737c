// The options of one trigger, checked once at the edge (build and deploy). What passes is a TriggerSpec.

import { NAME_PATTERN, nearMiss } from '../base/index.ts';
import {
  CUSTOM_OPTIONS_CHARS_MAX,
  FUNCTIONS_MAX,
  HELD_OBJECTS_MAX,
  PATTERN_CHARS_MAX,
  REDUNDANT_SIZE_MAX,
  SET_NAMES_MAX,
  TIMER_DELAY_MS_MAX,
} from './limits.ts';
import type { TriggerKind } from './spec.ts';
import { parseCron } from './window-clock.ts';

/** What JavaScript takes for a name. */
const CLASS_PATTERN = /^[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]{0,254}$/u;

/** What is wrong with a value, as the end of a sentence that begins with the option's name; undefined if nothing. */
type Check = (value: unknown) => string | undefined;

const OPTIONS: Readonly<Record<TriggerKind, Readonly<Record<string, Check>>>> = {
  immediate: { run: checkRun },
  byName: { run: checkRun, name: checkObjectName, match: checkMatch },
  bySet: { run: checkRun, names: (value) => checkTexts(value, 'object names', SET_NAMES_MAX, isText) },
  byBatchSize: {
    run: checkRun,
    size: (value) => checkWhole(value, 1, HELD_OBJECTS_MAX),
    maxWaitMs: (value) => checkWhole(value, 1, TIMER_DELAY_MS_MAX),
    scope: checkScope,
  },
  byTime: {
    run: checkRun,
    windowMs: (value) => checkWhole(value, 1, TIMER_DELAY_MS_MAX),
    cron: checkCron,
    fireEmpty: checkFlag,
    scope: checkScope,
  },
  redundant: {
    run: checkRun,
    k: (value) => checkWhole(value, 1, REDUNDANT_SIZE_MAX),
    n: (value) => checkWhole(value, 1, REDUNDANT_SIZE_MAX),
    sources: checkFunctions,
    cancelLosers: checkFlag,
    scope: checkScope,
  },
  dynamicJoin: { run: checkRun },
  dynamicGroup: { run: checkRun, producers: checkFunctions, scope: checkScope },
  custom: { run: checkRun, class: checkClass, options: checkOptions, sources: checkFunctions, scope: checkScope },
};

const REQUIRED: Readonly<Partial<Record<TriggerKind, readonly string[]>>> = {
  bySet: ['names'],
  byBatchSize: ['size'],
  redundant: ['k', 'n'],
  custom: ['class'],
};

/**
 * Checks the options of one trigger; whether its functions exist is the manifest's matter.
 * @returns problems as sentences that say what to do; [] if it is a TriggerSpec. An option that is undefined is absent.
 */
export function checkTrigger(spec: unknown): string[] {
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) {
    return [
      `A trigger must be an object with a kind, for example { kind: 'immediate', run: 'f' }; got ${shown(spec)}.`,
    ];
  }
  const options = spec as Readonly<Record<string, unknown>>;
  const { kind } = options;
  if (typeof kind !== 'string' || !Object.hasOwn(OPTIONS, kind)) {
    const kinds = Object.keys(OPTIONS);
    return [`kind must be one of ${kinds.join(', ')}; got ${shown(kind)}.${suggestion(String(kind), kinds)}`];
  }
  const checks = OPTIONS[kind as TriggerKind];
  const problems: string[] = [];
  for (const [option, value] of Object.entries(options)) {
    if (option === 'kind' || value === undefined) continue;
    const known = Object.hasOwn(checks, option) ? checks[option] : undefined;
    if (known === undefined) problems.push(`${unknownOption(kind, option, Object.keys(checks))}`);
    else {
      const problem = known(value);
      if (problem !== undefined) problems.push(`${kind}: ${option} ${problem}`);
    }
  }
  for (const option of ['run', ...(REQUIRED[kind as TriggerKind] ?? [])]) {
    if (options[option] === undefined) problems.push(`${kind}: ${option} is missing; give it.`);
  }
  return problems.concat(checkTogether(kind as TriggerKind, options));
}

/** Rules between options. Those on values that are wrong by themselves stay silent. */
function checkTogether(kind: TriggerKind, options: Readonly<Record<string, unknown>>): string[] {
  const problems: string[] = [];
  const has = (option: string) => options[option] !== undefined;
  if (kind === 'byName') {
    if (has('name') && has('match')) problems.push('byName: name and match exclude each other; give one of them.');
    if (!has('name') && !has('match')) problems.push('byName: give name, or match (a prefix or a RegExp).');
  }
  if (kind === 'byTime') {
    if (has('windowMs') && has('cron'))
      problems.push('byTime: windowMs and cron exclude each other; give one of them.');
    if (!has('windowMs') && !has('cron')) problems.push('byTime: give windowMs or cron.');
    if (options.fireEmpty === true && options.scope === 'session') {
      problems.push(
        "byTime: fireEmpty needs scope 'bucket', because with scope 'session' no session would ever end; leave one out.",
      );
    }
  }
  if (kind === 'redundant') {
    const { k, n } = options;
    if (typeof k === 'number' && typeof n === 'number' && k > n) {
      problems.push(`redundant: k must be at most n, but ${k} of ${n} can never arrive; swap or change them.`);
    }
    if (options.cancelLosers === true) {
      if (!has('sources')) {
        problems.push('redundant: cancelLosers needs sources, the functions whose unfinished invocations it cancels.');
      }
      const both = listOf(options.sources ?? []).find((name) => listOf(options.run).includes(name));
      if (both !== undefined) {
        problems.push(
          `redundant: "${both}" is a source and runs with the first k; cancelLosers would cancel that, too.`,
        );
      }
      if (options.scope === 'bucket') {
        problems.push(
          "redundant: cancelLosers needs scope 'session', because it cancels within one session; leave one of them out.",
        );
      }
    }
  }
  if (kind === 'dynamicGroup' && has('producers') && options.scope === 'bucket') {
    problems.push(
      "dynamicGroup: producers needs scope 'session', because that they have all ended is known within one session only; " +
        "leave producers out and call ctx.closeGroup(bucket) when the groups are complete, or leave scope: 'bucket' out.",
    );
  }
  if (kind === 'custom' && has('sources') && options.scope === 'bucket') {
    problems.push(
      "custom: sources needs scope 'session', because starts are told within one session; leave one of them out, or let " +
        'the sources send an object when they start.',
    );
  }
  return problems;
}

function checkClass(value: unknown): string | undefined {
  const fits = typeof value === 'string' && CLASS_PATTERN.test(value);
  return fits ? undefined : `must be the name of a class in the bundle; got ${shown(value)}.`;
}

function checkOptions(value: unknown): string | undefined {
  const text = safeJson(value);
  if (text === undefined) return 'must be plain data, which JSON can carry.';
  if (text.length <= CUSTOM_OPTIONS_CHARS_MAX) return undefined;
  return `must have at most ${CUSTOM_OPTIONS_CHARS_MAX} characters as JSON, not ${text.length}.`;
}

function checkRun(value: unknown): string | undefined {
  if (typeof value === 'string') return checkFunctions([value]);
  return Array.isArray(value)
    ? checkFunctions(value)
    : `must be a function's name or a list of them; got ${shown(value)}.`;
}

function checkFunctions(value: unknown): string | undefined {
  return checkTexts(
    value,
    'function names',
    FUNCTIONS_MAX,
    (item) => typeof item === 'string' && NAME_PATTERN.test(item),
  );
}

function checkTexts(value: unknown, what: string, max: number, fits: (item: unknown) => boolean): string | undefined {
  if (!Array.isArray(value)) return `must be a list of ${what}; got ${shown(value)}.`;
  if (value.length === 0) return `must not be empty; list ${what}.`;
  if (value.length > max) return `must have at most ${max} entries, not ${value.length}.`;
  const seen = new Set<unknown>();
  for (const item of value) {
    if (!fits(item)) return `must be a list of ${what}, but has ${shown(item)}.`;
    if (seen.has(item)) return `has ${shown(item)} twice; list it once.`;
    seen.add(item);
  }
  return undefined;
}

function checkObjectName(value: unknown): string | undefined {
  return isText(value) ? undefined : `must be an object's name; got ${shown(value)}.`;
}

function checkMatch(value: unknown): string | undefined {
  if (typeof value === 'string') {
    if (value === '') return 'must not be empty; to match every name, use immediate.';
    return value.length <= PATTERN_CHARS_MAX ? undefined : `must have at most ${PATTERN_CHARS_MAX} characters.`;
  }
  const { regexp, flags, ...others } = Object(value) as Record<string, unknown>;
  if (typeof regexp !== 'string' || typeof flags !== 'string' || Object.keys(others).length > 0) {
    return `must be a prefix or { regexp, flags }; got ${shown(value)}.`;
  }
  if (regexp.length > PATTERN_CHARS_MAX) return `must have at most ${PATTERN_CHARS_MAX} characters.`;
  return complaintOf(() => new RegExp(regexp, flags), 'is not a regular expression');
}

function checkCron(value: unknown): string | undefined {
  const help = "must be a cron expression of five fields, or six with seconds in front, such as '*/5 * * * *'";
  if (typeof value !== 'string' || value.length > PATTERN_CHARS_MAX) return `${help}; got ${shown(value)}.`;
  const fields = value.trim().split(/\s+/).length;
  if (fields !== 5 && fields !== 6) return `${help}; got ${shown(value)}.`;
  const complaint = complaintOf(() => parseCron(value), help);
  if (complaint !== undefined) return complaint;
  // Fields without a year repeat: what does not run from 2000 on never runs.
  const runs = parseCron(value).nextRun(new Date(Date.UTC(2000, 0, 1))) !== null;
  return runs ? undefined : `never runs: no date fits ${shown(value)}; change day or month.`;
}

function checkWhole(value: unknown, min: number, max: number): string | undefined {
  const fits = typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
  return fits ? undefined : `must be a whole number from ${min} to ${max}; got ${shown(value)}.`;
}

function checkScope(value: unknown): string | undefined {
  return value === 'session' || value === 'bucket' ? undefined : `must be 'session' or 'bucket'; got ${shown(value)}.`;
}

function checkFlag(value: unknown): string | undefined {
  return typeof value === 'boolean' ? undefined : `must be true or false; got ${shown(value)}.`;
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '';
}

function unknownOption(kind: string, option: string, known: string[]): string {
  return `${kind}: there is no option ${option}; the options are ${known.join(', ')}.${suggestion(option, known)}`;
}

function suggestion(name: string, known: string[]): string {
  const near = nearMiss(name, known);
  return near === undefined || near === name ? '' : ` Did you mean ${near}?`;
}

function complaintOf(attempt: () => unknown, complaint: string): string | undefined {
  try {
    attempt();
    return undefined;
  } catch (error) {
    return `${complaint}: ${error instanceof Error ? error.message.replace(/\.?$/, '.') : String(error)}`;
  }
}

const SHOWN_CHARS_MAX = 60;

function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  const text = typeof value === 'function' ? 'a function' : (safeJson(value) ?? String(value));
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
}

function safeJson(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value); // NaN and Infinity, which JSON shows as null
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** The names of a `run` or of a list; what is neither has a problem of its own. */
function listOf(names: unknown): readonly unknown[] {
  return Array.isArray(names) ? names : [names];
}
