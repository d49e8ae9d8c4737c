// An app's manifest for people: what `app`, `deploy` and `dev` show, and how two differ.

import { isDeepStrictEqual } from 'node:util';
import type { FunctionSpec, Manifest, TriggerSpec } from '../protocol/index.ts';
import { type Paint, printable, shorten, table } from './text.ts';

const OPTION_CHARS_MAX = 60;

interface TriggerRow {
  readonly bucket: string;
  readonly trigger: string;
  readonly spec: TriggerSpec | undefined;
}

export function functionsText(manifest: Manifest, paint: Paint): string {
  const rows = Object.entries(manifest.functions);
  return table(
    rows,
    [
      { title: 'function', value: ([name]) => name, color: () => 'bold' },
      { title: 'kind', value: ([, spec]) => spec.kind },
      { title: 'runtime', value: ([, spec]) => spec.runtime },
      { title: 'entry', value: ([name]) => (name === manifest.entry ? 'entry' : '') },
      { title: 'options', value: ([, spec]) => optionsOf(spec) },
    ],
    paint,
  );
}

/** One line per trigger; a bucket without any still has one. Empty for an app without buckets. */
export function bucketsText(manifest: Manifest, paint: Paint): string {
  const rows = Object.entries(manifest.buckets).flatMap(([bucket, { on = {} }]): TriggerRow[] => {
    const triggers = Object.entries(on).map(([trigger, spec]) => ({ bucket, trigger, spec }));
    return triggers.length === 0 ? [{ bucket, trigger: '', spec: undefined }] : triggers;
  });
  if (rows.length === 0) return '';
  return table(
    rows,
    [
      { title: 'bucket', value: ({ bucket }) => bucket, color: () => 'bold' },
      { title: 'trigger', value: ({ trigger }) => trigger },
      { title: 'kind', value: ({ spec }) => spec?.kind },
      { title: 'options', value: ({ spec }) => (spec === undefined ? '' : triggerOptions(spec)) },
      { title: 'runs', value: ({ spec }) => (spec === undefined ? '' : [spec.run].flat().join(', ')) },
    ],
    paint,
  );
}

/** `name: what`, `+` new, `-` gone, `~` changed; empty when nothing differs. Where things stand in files is ignored. */
export function manifestDifferences(before: Manifest, after: Manifest): string[] {
  const lines: string[] = [];
  if (before.entry !== after.entry) lines.push(`~ entry: ${before.entry} → ${after.entry}`);
  lines.push(...differences('function', before.functions, after.functions));
  lines.push(...differences('bucket', bucketsWithoutTriggers(before), bucketsWithoutTriggers(after)));
  lines.push(...differences('trigger', triggersOf(before), triggersOf(after)));
  for (const key of ['state', 'env', 'secrets', 'routes', 'cron'] as const) {
    if (!isDeepStrictEqual(before[key], after[key])) {
      lines.push(`~ ${key}: ${valueText(before[key])} → ${valueText(after[key])}`);
    }
  }
  return lines;
}

type Named = Readonly<Record<string, object>>;

function differences(what: string, before: Named, after: Named): string[] {
  const lines: string[] = [];
  for (const name of [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()) {
    const old = withoutSource(before[name]);
    const now = withoutSource(after[name]);
    if (isDeepStrictEqual(old, now)) continue;
    if (old === undefined) lines.push(`+ ${what} ${name}: ${valueText(now)}`);
    else if (now === undefined) lines.push(`- ${what} ${name}`);
    else lines.push(`~ ${what} ${name}: ${valueText(old)} → ${valueText(now)}`);
  }
  return lines.map(printable);
}

function bucketsWithoutTriggers(manifest: Manifest): Named {
  return Object.fromEntries(Object.entries(manifest.buckets).map(([name, { on, ...rest }]) => [name, rest]));
}

function triggersOf(manifest: Manifest): Named {
  return Object.fromEntries(
    Object.entries(manifest.buckets).flatMap(([bucket, { on = {} }]) =>
      Object.entries(on).map(([trigger, spec]) => [`${bucket}/${trigger}`, spec]),
    ),
  );
}

function withoutSource(value: object | undefined): object | undefined {
  if (value === undefined) return undefined;
  const { source, ...rest } = value as { source?: unknown };
  return rest;
}

function optionsOf({ options = {} }: FunctionSpec): string {
  return pairsText(options as Readonly<Record<string, unknown>>);
}

function triggerOptions(spec: TriggerSpec): string {
  const { kind, run, source, ...options } = spec;
  return pairsText(options);
}

function pairsText(options: Readonly<Record<string, unknown>>): string {
  const pairs = Object.entries(options)
    .filter(([, value]) => value !== undefined && value !== false)
    .map(([key, value]) => (value === true ? key : `${key}=${valueText(value)}`));
  return shorten(pairs.join(' '), OPTION_CHARS_MAX);
}

function valueText(value: unknown): string {
  if (value === undefined) return 'none';
  return shorten(typeof value === 'string' ? value : JSON.stringify(value), OPTION_CHARS_MAX);
}
