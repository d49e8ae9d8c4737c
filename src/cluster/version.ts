import { createHash } from 'node:crypto';
import { PlatformError } from '../base/index.ts';
import type { AppBundle, BundleFile } from '../protocol/index.ts';
import { MANIFEST_DEPTH_MAX } from './limits.ts';

/** 64 bits: versions of one app are compared, never guessed. */
const VERSION_CHARS = 16;

/**
 * The version of an app: a hash of its content, so the same content deployed again is the same version.
 *
 * Counts: the manifest whatever the order of its keys, `main`, and the bytes of each file, whether given as text or as
 * base64. Does not count: where things were declared (`source`), which follows from the files.
 *
 * @param env what was given at deploy; it changes what the functions do, so it counts too.
 * @throws E_APP_INVALID when the manifest is nested deeper than `checkManifest` allows.
 */
export function versionOf(bundle: AppBundle, env: Readonly<Record<string, string>> = {}): string {
  const files = Object.entries(bundle.files).map(([path, file]) => [path, digestOf(bytesOf(file))]);
  const content = canonicalJson({
    manifest: withoutSources(bundle.manifest),
    main: bundle.main,
    files: Object.fromEntries(files),
    env,
  });
  return digestOf(content).slice(0, VERSION_CHARS);
}

/** The bytes of one file of a bundle. */
export function bytesOf(file: BundleFile): Uint8Array {
  return typeof file === 'string' ? new TextEncoder().encode(file) : Buffer.from(file.base64, 'base64');
}

function digestOf(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/** JSON with the keys of every object in order of their UTF-16 units and nothing between; undefined is left out. */
export function canonicalJson(value: unknown, depth = 0): string {
  // Four above: what is hashed here wraps a manifest.
  if (depth > MANIFEST_DEPTH_MAX + 4) {
    throw new PlatformError('E_APP_INVALID', `The manifest is nested deeper than ${MANIFEST_DEPTH_MAX}; flatten it.`);
  }
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null, depth + 1)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  fields.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${canonicalJson(field, depth + 1)}`).join(',')}}`;
}

function withoutSources(manifest: AppBundle['manifest']): unknown {
  const { source: _, functions, buckets, ...rest } = manifest;
  return {
    ...rest,
    functions: mapFields(functions, ({ source: _, ...spec }) => spec),
    buckets: mapFields(buckets, ({ source: _, on = {}, ...spec }) => ({
      ...spec,
      on: mapFields(on, ({ source: _, ...trigger }) => trigger),
    })),
  };
}

function mapFields<T>(record: Readonly<Record<string, T>>, map: (value: T) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
