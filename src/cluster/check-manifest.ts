// A manifest from outside, checked to the last field before anything is made of it.
//
// Owns: names, references between functions, triggers and rules, ranges of options, sizes.
// Does not own: options of a trigger (`checkTrigger` of src/trigger, handed in), files of the bundle (check-bundle.ts).
//
// CM1. Whatever is passed in, it returns; it never throws and its cost is bounded by MANIFEST_NODES_MAX.
// CM2. What it finds nothing wrong with is a Manifest: no field has another type than there, unknown fields included.
// CM3. No accepted name is one that every JavaScript object has, so a lookup in a record cannot hit a prototype.

import { APP_NAME_PATTERN, NAME_PATTERN } from '../base/index.ts';
import type { AppProblem, Manifest, SourceLocation, TriggerSpec } from '../protocol/index.ts';
import { checkFunctionFields } from './check-function.ts';
import {
  BUCKETS_MAX,
  ENV_VALUE_CHARS_MAX,
  ENV_VARIABLES_MAX,
  FUNCTIONS_MAX,
  MANIFEST_DEPTH_MAX,
  MANIFEST_NODES_MAX,
  RERUN_NAMES_MAX,
  RERUN_RULES_PER_BUCKET_MAX,
  SECRETS_MAX,
  STATE_PREFIX_CHARS_MAX,
  STATE_PROTOCOLS_MAX,
  TIMEOUT_MS_MAX,
  TRIGGERS_PER_BUCKET_MAX,
} from './limits.ts';
import { type Fields, isFields, isWhole, own, Problems, quoted, shown, sourceOf, suggestion } from './problems.ts';

/** What src/trigger knows; it is of the same layer, so whoever composes hands it in. */
export interface TriggerChecks {
  /** Problems of a trigger's options as sentences; [] if it is a TriggerSpec. Is never given its `source`. */
  readonly checkTrigger: (spec: unknown) => readonly string[];
  /** The functions that it runs. Asked only about what `checkTrigger` accepts. */
  readonly functionsOf: (spec: TriggerSpec) => readonly string[];
}

const MANIFEST_FIELDS = ['entry', 'functions', 'buckets', 'state', 'env', 'secrets', 'routes', 'cron', 'source'];
const BUCKET_FIELDS = ['on', 'rerun', 'schema', 'source'];
const RULE_FIELDS = ['source', 'expect', 'timeoutMs'];
const STATE_FIELDS = ['protocols', 'strictOrder', 'commit'];
const STATE_PROTOCOLS = ['read-optimized', 'write-optimized', 'symmetric', 'immutable', 'unsafe', 'auto'];
const ENV_NAME_PATTERN = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/** @returns problems as sentences that say what to do; [] if it is a Manifest. */
export function checkManifest(manifest: unknown, checks: TriggerChecks): AppProblem[] {
  const problems = new Problems();
  if (!isFields(manifest)) {
    problems.add(`The manifest must be an object with entry, functions and buckets; got ${shown(manifest)}.`);
    return problems.list();
  }
  const tooLarge = sizeProblem(manifest);
  if (tooLarge !== undefined) {
    problems.add(tooLarge);
    return problems.list();
  }
  const source = sourceOf(manifest);
  checkKnown(manifest, MANIFEST_FIELDS, 'The manifest', source, problems);
  checkSource(manifest, 'The manifest', problems);
  const functions = checkFunctions(manifest, source, problems);
  checkEntry(own(manifest, 'entry'), functions, source, problems);
  checkBuckets(manifest, functions, checks, source, problems);
  checkState(own(manifest, 'state'), source, problems);
  checkEnv(own(manifest, 'env'), source, problems);
  checkSecrets(own(manifest, 'secrets'), source, problems);
  return problems.list();
}

/** A trigger that is added to a running app. The manifest is its bundle's. */
export function checkTriggerPlacement(
  placement: { readonly bucket: string; readonly trigger: string; readonly spec: unknown },
  { functions, buckets }: Pick<Manifest, 'functions' | 'buckets'>,
  checks: TriggerChecks,
): AppProblem[] {
  const problems = new Problems();
  const { bucket, trigger, spec } = placement;
  const place = `Trigger ${quoted(trigger)} of bucket ${quoted(bucket)}`;
  const tooLarge = sizeProblem(spec);
  if (tooLarge !== undefined) problems.add(tooLarge);
  else if (checkName('bucket', bucket, undefined, problems) && checkName('trigger', trigger, undefined, problems)) {
    checkTriggerSpec(place, spec, new Set(Object.keys(functions)), checks, undefined, problems);
    const name = isFields(spec) && spec.kind === 'custom' ? spec.class : undefined;
    const classes = classesOf(buckets);
    if (typeof name === 'string' && !classes.has(name)) {
      const known = classes.size === 0 ? 'it hands none to custom' : `it has ${[...classes].join(', ')}`;
      problems.add(`${place}: the bundle has no trigger class ${quoted(name)}; ${known}.${suggestion(name, classes)}`);
    }
  }
  return problems.list();
}

/** Those that a bundle hands to `custom`: only they can be found in it by name. */
function classesOf(buckets: Manifest['buckets']): Set<string> {
  const classes = new Set<string>();
  for (const { on = {} } of Object.values(buckets)) {
    for (const spec of Object.values(on)) if (spec.kind === 'custom') classes.add(spec.class);
  }
  return classes;
}

export function checkAppName(name: unknown): AppProblem[] {
  if (typeof name === 'string' && APP_NAME_PATTERN.test(name) && !isTaken(name)) return [];
  const message = `${shown(name)} cannot name an app: use lower-case letters, digits and "-", 63 at most, and begin with a letter or digit.`;
  return [{ message }];
}

function checkFunctions(manifest: Fields, source: SourceLocation | undefined, problems: Problems): Set<string> {
  const functions = own(manifest, 'functions');
  const names = new Set<string>();
  if (!isFields(functions)) {
    problems.add(`functions must be { name: { kind: 'fn' | 'durable' } }; got ${shown(functions)}.`, source);
    return names;
  }
  const entries = Object.entries(functions);
  if (entries.length === 0) problems.add('The app has no functions; give it at least one.', source);
  if (entries.length > FUNCTIONS_MAX) {
    problems.add(`The app has ${entries.length} functions; at most ${FUNCTIONS_MAX} are possible: split it.`, source);
    return names;
  }
  for (const [name, spec] of entries) {
    const at = sourceOf(spec) ?? source;
    if (checkName('function', name, at, problems)) names.add(name);
    const what = `Function ${quoted(name)}`;
    if (!isFields(spec)) {
      problems.add(`${what} must be an object with kind 'fn' or 'durable'; got ${shown(spec)}.`, at);
      continue;
    }
    checkKnown(spec, ['kind', 'runtime', 'options', 'source'], what, at, problems);
    checkSource(spec, what, problems);
    checkFunctionFields(spec, (message) => problems.add(`${what}: ${message}`, at));
  }
  return names;
}

function checkEntry(
  entry: unknown,
  functions: ReadonlySet<string>,
  source: SourceLocation | undefined,
  problems: Problems,
): void {
  if (typeof entry !== 'string') problems.add(`entry must be the name of a function; got ${shown(entry)}.`, source);
  else if (!functions.has(entry)) problems.add(unknownFunction('entry', entry, functions), source);
}

function checkBuckets(
  manifest: Fields,
  functions: ReadonlySet<string>,
  checks: TriggerChecks,
  source: SourceLocation | undefined,
  problems: Problems,
): void {
  const buckets = own(manifest, 'buckets');
  if (!isFields(buckets)) {
    problems.add(`buckets must be { name: { on, rerun } }, {} if there are none; got ${shown(buckets)}.`, source);
    return;
  }
  const entries = Object.entries(buckets);
  if (entries.length > BUCKETS_MAX) {
    problems.add(`The app has ${entries.length} buckets; at most ${BUCKETS_MAX} are possible: split it.`, source);
    return;
  }
  for (const [name, spec] of entries) {
    const at = sourceOf(spec) ?? source;
    const what = `Bucket ${quoted(name)}`;
    if (checkName('bucket', name, at, problems) && name.startsWith('$')) {
      problems.add(`${what} cannot be declared: names that begin with $ are the platform's own; rename it.`, at);
    }
    if (!isFields(spec)) {
      problems.add(`${what} must be an object, {} at least; got ${shown(spec)}.`, at);
      continue;
    }
    checkKnown(spec, BUCKET_FIELDS, what, at, problems);
    checkSource(spec, what, problems);
    const schema = own(spec, 'schema');
    if (schema !== undefined && typeof schema !== 'boolean') {
      problems.add(`${what}: schema must be true or absent in a manifest; the validator itself is in the bundle.`, at);
    }
    checkTriggers(name, spec, functions, checks, at, problems);
    checkRerun(what, own(spec, 'rerun'), functions, at, problems);
  }
}

function checkTriggers(
  bucket: string,
  spec: Fields,
  functions: ReadonlySet<string>,
  checks: TriggerChecks,
  source: SourceLocation | undefined,
  problems: Problems,
): void {
  const on = own(spec, 'on');
  if (on === undefined) return;
  if (!isFields(on)) {
    problems.add(`Bucket ${quoted(bucket)}: on must be { trigger: { kind, … } }; got ${shown(on)}.`, source);
    return;
  }
  const entries = Object.entries(on);
  if (entries.length > TRIGGERS_PER_BUCKET_MAX) {
    const count = `has ${entries.length} triggers; at most ${TRIGGERS_PER_BUCKET_MAX} are possible`;
    problems.add(`Bucket ${quoted(bucket)} ${count}: split the bucket.`, source);
    return;
  }
  for (const [name, trigger] of entries) {
    const at = sourceOf(trigger) ?? source;
    checkName('trigger', name, at, problems);
    const place = `Trigger ${quoted(name)} of bucket ${quoted(bucket)}`;
    checkTriggerSpec(place, trigger, functions, checks, at, problems);
  }
}

function checkTriggerSpec(
  place: string,
  trigger: unknown,
  functions: ReadonlySet<string>,
  checks: TriggerChecks,
  at: SourceLocation | undefined,
  problems: Problems,
): void {
  if (!isFields(trigger)) {
    problems.add(`${place} must be an object with a kind and its options; got ${shown(trigger)}.`, at);
    return;
  }
  checkSource(trigger, place, problems);
  const { source: _, ...spec } = trigger;
  const complaints = checks.checkTrigger(spec);
  for (const complaint of complaints) problems.add(`${place}: ${complaint}`, at);
  if (complaints.length > 0) return;
  const lists = { run: checks.functionsOf(spec as TriggerSpec), sources: spec.sources, producers: spec.producers };
  for (const [option, names] of Object.entries(lists)) {
    if (Array.isArray(names)) checkReferences(`${place}: ${option}`, names, functions, at, problems);
  }
}

function checkRerun(
  what: string,
  rerun: unknown,
  functions: ReadonlySet<string>,
  source: SourceLocation | undefined,
  problems: Problems,
): void {
  if (rerun === undefined) return;
  if (!Array.isArray(rerun) || rerun.length > RERUN_RULES_PER_BUCKET_MAX) {
    problems.add(
      `${what}: rerun must be a list of at most ${RERUN_RULES_PER_BUCKET_MAX} rules; got ${shown(rerun)}.`,
      source,
    );
    return;
  }
  // Not forEach, which leaves out the holes of a list.
  for (const [i, rule] of rerun.entries()) {
    const place = `${what}: rerun[${i}]`;
    if (!isFields(rule)) {
      problems.add(`${place} must be { source, expect, timeoutMs }; got ${shown(rule)}.`, source);
      continue;
    }
    checkKnown(rule, RULE_FIELDS, place, source, problems);
    const from = own(rule, 'source');
    if (typeof from !== 'string')
      problems.add(`${place}.source must be the name of a function; got ${shown(from)}.`, source);
    else if (!functions.has(from)) problems.add(unknownFunction(`${place}.source`, from, functions), source);
    const expect = own(rule, 'expect');
    if (expect !== 'every-object')
      checkNames(`${place}.expect`, expect, "'every-object' or a list of object names", source, problems);
    const timeoutMs = own(rule, 'timeoutMs');
    if (!isWhole(timeoutMs, 1, TIMEOUT_MS_MAX)) {
      problems.add(
        `${place}.timeoutMs must be a whole number from 1 to ${TIMEOUT_MS_MAX}; got ${shown(timeoutMs)}.`,
        source,
      );
    }
  }
}

function checkNames(
  what: string,
  names: unknown,
  wanted: string,
  source: SourceLocation | undefined,
  problems: Problems,
): void {
  const isList = Array.isArray(names) && names.length > 0 && names.length <= RERUN_NAMES_MAX;
  if (!isList || !allOf(names, (name) => typeof name === 'string' && name !== '')) {
    problems.add(`${what} must be ${wanted}, 1 to ${RERUN_NAMES_MAX}; got ${shown(names)}.`, source);
  } else if (new Set(names).size < names.length) {
    problems.add(`${what} has a name twice; list it once.`, source);
  }
}

function checkState(state: unknown, source: SourceLocation | undefined, problems: Problems): void {
  if (state === undefined) return;
  if (!isFields(state)) {
    problems.add(`state must be { protocols, strictOrder, commit }; got ${shown(state)}.`, source);
    return;
  }
  checkKnown(state, STATE_FIELDS, 'state', source, problems);
  const strictOrder = own(state, 'strictOrder');
  if (strictOrder !== undefined && typeof strictOrder !== 'boolean') {
    problems.add(`state.strictOrder must be true or false; got ${shown(strictOrder)}.`, source);
  }
  const commit = own(state, 'commit');
  if (commit !== undefined && commit !== 'output' && commit !== 'each') {
    problems.add(`state.commit must be 'output' or 'each'; got ${shown(commit)}.`, source);
  }
  const protocols = own(state, 'protocols');
  if (protocols === undefined) return;
  if (!isFields(protocols) || Object.keys(protocols).length > STATE_PROTOCOLS_MAX) {
    problems.add(
      `state.protocols must be at most ${STATE_PROTOCOLS_MAX} key prefixes with a protocol each; got ${shown(protocols)}.`,
      source,
    );
    return;
  }
  for (const [prefix, protocol] of Object.entries(protocols)) {
    if (prefix.length > STATE_PREFIX_CHARS_MAX || isTaken(prefix)) {
      problems.add(`state.protocols: ${quoted(prefix)} cannot be a key prefix; shorten or rename it.`, source);
    }
    if (typeof protocol !== 'string' || !STATE_PROTOCOLS.includes(protocol)) {
      const hint = typeof protocol === 'string' ? suggestion(protocol, STATE_PROTOCOLS) : '';
      problems.add(
        `state.protocols[${quoted(prefix)}] must be one of ${STATE_PROTOCOLS.join(', ')}; got ${shown(protocol)}.${hint}`,
        source,
      );
    }
  }
}

function checkEnv(env: unknown, source: SourceLocation | undefined, problems: Problems): void {
  if (env === undefined) return;
  if (!isFields(env) || Object.keys(env).length > ENV_VARIABLES_MAX) {
    problems.add(`env must be { NAME: value or null }, ${ENV_VARIABLES_MAX} at most; got ${shown(env)}.`, source);
    return;
  }
  for (const [name, value] of Object.entries(env)) {
    checkEnvName('env', name, source, problems);
    const fits = value === null || (typeof value === 'string' && value.length <= ENV_VALUE_CHARS_MAX);
    if (!fits || (typeof value === 'string' && value.includes('\0'))) {
      // Never the value itself: it may be a secret.
      const wanted = `a text of at most ${ENV_VALUE_CHARS_MAX} characters without NUL, or null for one that is given at deploy`;
      problems.add(`env.${quoted(name)} must be ${wanted}.`, source);
    }
  }
}

function checkSecrets(secrets: unknown, source: SourceLocation | undefined, problems: Problems): void {
  if (secrets === undefined) return;
  if (!Array.isArray(secrets) || secrets.length > SECRETS_MAX) {
    problems.add(`secrets must be a list of at most ${SECRETS_MAX} names; got ${shown(secrets)}.`, source);
    return;
  }
  for (const name of secrets) checkEnvName('secrets', name, source, problems);
  if (new Set(secrets).size < secrets.length) problems.add('secrets has a name twice; list it once.', source);
}

function checkEnvName(what: string, name: unknown, source: SourceLocation | undefined, problems: Problems): void {
  if (typeof name === 'string' && ENV_NAME_PATTERN.test(name) && !isTaken(name)) return;
  problems.add(
    `${what}: ${shown(name)} cannot be a name here; use letters, digits and "_", and no digit in front.`,
    source,
  );
}

/** @returns whether it may be used. */
function checkName(
  what: 'function' | 'bucket' | 'trigger',
  name: string,
  source: SourceLocation | undefined,
  problems: Problems,
): boolean {
  if (!NAME_PATTERN.test(name)) {
    const rule = 'use letters, digits, "_", "$", "." and "-", 128 at most, and begin with a letter, "$" or "_"';
    problems.add(`${quoted(name)} cannot name a ${what}: ${rule}.`, source);
    return false;
  }
  if (isTaken(name)) {
    problems.add(
      `${quoted(name)} cannot name a ${what}: every JavaScript object has a property of that name; rename it.`,
      source,
    );
    return false;
  }
  return true;
}

/** (CM3) */
function isTaken(name: string): boolean {
  return name in Object.prototype;
}

function checkReferences(
  what: string,
  names: readonly unknown[],
  functions: ReadonlySet<string>,
  source: SourceLocation | undefined,
  problems: Problems,
): void {
  const seen = new Set<unknown>();
  for (const name of names) {
    if (seen.has(name)) problems.add(`${what} has ${shown(name)} twice; list it once.`, source);
    else if (typeof name !== 'string')
      problems.add(`${what} must hold names of functions; got ${shown(name)}.`, source);
    else if (!functions.has(name)) problems.add(unknownFunction(what, name, functions), source);
    seen.add(name);
  }
}

function unknownFunction(what: string, name: string, functions: ReadonlySet<string>): string {
  const hint = suggestion(name, functions);
  if (hint !== '') return `${what}: there is no function ${quoted(name)}.${hint}`;
  const names = [...functions];
  const listed = names.length > 10 ? `${names.slice(0, 10).join(', ')}, … (${names.length})` : names.join(', ');
  return `${what}: there is no function ${quoted(name)}; declare it or name one of: ${listed || 'none is declared'}.`;
}

function checkKnown(
  fields: Fields,
  known: readonly string[],
  what: string,
  source: SourceLocation | undefined,
  problems: Problems,
): void {
  for (const name of Object.keys(fields)) {
    if (known.includes(name)) continue;
    problems.add(
      `${what} has no field ${quoted(name)}; its fields are ${known.join(', ')}.${suggestion(name, known)}`,
      source,
    );
  }
}

function checkSource(fields: Fields, what: string, problems: Problems): void {
  if (own(fields, 'source') === undefined || sourceOf(fields) !== undefined) return;
  problems.add(`${what}: source must be { file, line } with a line from 1 on, or absent.`);
}

/** Bounds everything that follows, the code that reads a manifest recursively included. */
function sizeProblem(manifest: unknown): string | undefined {
  let level: unknown[] = [manifest];
  let nodes = 0;
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MANIFEST_DEPTH_MAX) return `The manifest is nested deeper than ${MANIFEST_DEPTH_MAX}; flatten it.`;
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value !== 'object' || value === null) {
        if (!isJsonScalar(value)) return `The manifest must be JSON; it holds ${shown(value)}.`;
        continue;
      }
      if (!isJsonContainer(value))
        return `The manifest must be JSON; it holds ${Object.prototype.toString.call(value)}.`;
      const children = Array.isArray(value) ? value : Object.values(value);
      nodes += children.length;
      if (nodes > MANIFEST_NODES_MAX) return `The manifest has more than ${MANIFEST_NODES_MAX} values; shorten it.`;
      for (const child of children) next.push(child);
    }
    level = next;
  }
  return undefined;
}

/** Undefined is what JSON leaves out. */
function isJsonScalar(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean';
}

/** Lists and plain objects, those of another realm too. */
function isJsonContainer(value: object): boolean {
  if (Array.isArray(value)) return true;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function allOf(list: readonly unknown[], fits: (item: unknown) => boolean): boolean {
  for (const item of list) if (!fits(item)) return false;
  return true;
}
