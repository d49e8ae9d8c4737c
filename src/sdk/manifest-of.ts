import type {
  BucketSpec,
  FunctionOptionsSpec,
  FunctionSpec,
  Manifest,
  Runtime,
  TriggerSpec,
} from '../protocol/index.ts';
import type { CustomTriggerClass } from './custom-trigger.ts';
import type { AppDefinition, BucketDefinition, FunctionDefinition, Options, TriggerDefinition } from './definition.ts';
import { describe } from './usage.ts';

const DEPTH_MAX = 32;

/**
 * An application as data. Validators, `init` and classes stay in the bundle; a flag or a name stands for them.
 * @throws TypeError when an option holds something that is not data.
 */
export function manifestOf(app: AppDefinition): Manifest {
  const plainOptions = plainRecord(app.options, `app ${JSON.stringify(app.name)}`);
  return {
    entry: app.entry,
    functions: mapValues(app.functions, functionSpec),
    buckets: mapValues(app.buckets, bucketSpec),
    ...plainOptions,
    ...sourceOf(app),
  };
}

function functionSpec(definition: FunctionDefinition, name: string): FunctionSpec {
  const { input, init, runtime, ...rest } = definition.options;
  const options: FunctionOptionsSpec = {
    ...plainRecord(rest, `function ${JSON.stringify(name)}`),
    ...(input === undefined ? {} : { input: true }),
    ...(init === undefined ? {} : { init: true }),
  };
  return {
    kind: definition.kind,
    ...(runtime === undefined ? {} : { runtime: runtime as Runtime }),
    ...(Object.keys(options).length === 0 ? {} : { options }),
    ...sourceOf(definition),
  };
}

function bucketSpec(definition: BucketDefinition, name: string): BucketSpec {
  const rerun = definition.rerun.map((rule) => plainRecord({ ...rule }, `rerun of bucket ${JSON.stringify(name)}`));
  return {
    on: mapValues(definition.on, (trigger, triggerName) => triggerSpec(trigger, `${name}/${triggerName}`)),
    ...(rerun.length === 0 ? {} : { rerun: rerun as unknown as NonNullable<BucketSpec['rerun']> }),
    ...(definition.schema === undefined ? {} : { schema: true }),
    ...sourceOf(definition),
  };
}

function triggerSpec(definition: TriggerDefinition, place: string): TriggerSpec {
  const where = `trigger ${JSON.stringify(place)}`;
  const { Class } = definition;
  if (Class !== undefined) checkMade(Class, definition.options.options, where);
  return {
    kind: definition.kind,
    ...plainRecord(definition.options, where),
    ...(Class === undefined ? {} : { class: Class.name }),
    ...sourceOf(definition),
  } as unknown as TriggerSpec;
}

/** What would fail at the first object fails here. @throws what the class throws; TypeError when its state is not plain. */
function checkMade(Class: CustomTriggerClass, options: unknown, where: string): void {
  const made = new Class(options === undefined ? undefined : plainJson(options, `${where}.options`));
  made.restore(plainJson(made.snapshot() ?? null, `${where}: snapshot()`));
}

/** As it comes back from the wire, where a RegExp does not. */
function plainJson(value: unknown, where: string): unknown {
  return JSON.parse(JSON.stringify(plain(value, where, 0, false)));
}

function sourceOf(definition: { readonly source?: Manifest['source'] }): Pick<Manifest, 'source'> {
  return definition.source === undefined ? {} : { source: definition.source };
}

/** Keys stay what they are, `__proto__` too. */
function mapValues<T, U>(record: Readonly<Record<string, T>>, map: (value: T, name: string) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value, name)]));
}

function plainRecord(options: Options, where: string): Record<string, unknown> {
  return plain(options, where, 0) as Record<string, unknown>;
}

/** What JSON can carry, and a RegExp as `{regexp, flags}`; anything else is refused by name rather than lost silently. */
function plain(value: unknown, where: string, depth: number, regexps = true): unknown {
  if (depth > DEPTH_MAX) throw new TypeError(`${where}: options are nested deeper than ${DEPTH_MAX}`);
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
  if (typeof value === 'number') {
    if (Number.isFinite(value)) return value;
  } else if (value instanceof RegExp && regexps) {
    return { regexp: value.source, flags: value.flags };
  } else if (Array.isArray(value)) {
    return value.map((item, i) => plain(item, `${where}[${i}]`, depth + 1, regexps));
  } else if (typeof value === 'object') {
    const prototype = Object.getPrototypeOf(value);
    if (prototype === null || Object.getPrototypeOf(prototype) === null) {
      const defined = Object.entries(value).filter(([, item]) => item !== undefined);
      return Object.fromEntries(
        defined.map(([name, item]) => [name, plain(item, `${where}.${name}`, depth + 1, regexps)]),
      );
    }
  }
  throw new TypeError(`${where} must be plain data (JSON${regexps ? ' or a RegExp' : ''}), not ${describe(value)}`);
}
