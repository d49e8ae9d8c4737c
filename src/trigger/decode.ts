// Snapshots come back from disk or from another node: decoded once here, typed from then on.

import { PlatformError } from '../base/index.ts';
import type { TriggerKind } from './spec.ts';

/** Bumped when a snapshot's shape changes; an older server refuses a newer one. */
const SNAPSHOT_VERSION = 1;

export type Fields = Readonly<Record<string, unknown>>;

export function snapshotOf(kind: TriggerKind, fields: Fields): unknown {
  return { version: SNAPSHOT_VERSION, kind, ...fields };
}

/** @throws E_PROTOCOL (corrupt): not a snapshot of a trigger of this kind, or of another version. */
export function fieldsOf(kind: TriggerKind, snapshot: unknown): Fields {
  const fields = recordOf(snapshot, 'snapshot');
  if (fields.version !== SNAPSHOT_VERSION) throw malformed(`version ${String(fields.version)} is not known here`);
  if (fields.kind !== kind) throw malformed(`it is of kind ${String(fields.kind)}, not ${kind}`);
  return fields;
}

export function recordOf(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed(`${what} is not an object`);
  return value as Fields;
}

export function listOf(value: unknown, what: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformed(`${what} is not a list`);
  return value;
}

export function stringsOf(value: unknown, what: string): string[] {
  return listOf(value, what).map((item) => stringOf(item, what));
}

/** Pairs of a name and anything. */
export function entriesOf(value: unknown, what: string): (readonly [string, unknown])[] {
  return listOf(value, what).map((pair) => {
    const [name, rest] = listOf(pair, what);
    return [stringOf(name, what), rest] as const;
  });
}

export function stringOf(value: unknown, what: string): string {
  if (typeof value !== 'string') throw malformed(`${what} is not a text`);
  return value;
}

export function numberOf(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) throw malformed(`${what} is not a number`);
  return value;
}

export function countOf(value: unknown, what: string): number {
  const count = numberOf(value, what);
  if (!Number.isSafeInteger(count) || count < 0) throw malformed(`${what} is not a count`);
  return count;
}

export function flagOf(value: unknown, what: string): boolean {
  if (typeof value !== 'boolean') throw malformed(`${what} is not a flag`);
  return value;
}

function malformed(detail: string): PlatformError {
  return new PlatformError('E_PROTOCOL', `The snapshot of a trigger cannot be restored: ${detail}.`);
}
