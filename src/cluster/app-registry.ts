// Which apps are deployed, in which versions; their files on disk.
//
// Owns: app records, bundle files, the environment given at deploy, triggers added and removed at run time.
// Does not own: checking a bundle (decodeBundle, before), hosts and sessions (they ask which versions are here).
//
// AG1. What a promise of this class says is done survives a restart.
// AG2. The current version of an app always has its files; other versions go when they are neither recent nor used.
// AG3. Triggers of run time belong to the app: they survive a restart, and end with the next deploy.

import { type EpochMs, PlatformError } from '../base/index.ts';
import { type DataFolder, type KeyValueChange, type KeyValueStore, prefixRange } from '../platform/index.ts';
import type { AppBundle, BucketSpec, Manifest, TriggerSpec } from '../protocol/index.ts';
import { bytesOf } from './version.ts';

/** Older versions that nothing uses are removed beyond this, so that a rollback stays possible for a while. */
export const VERSIONS_KEPT_MAX = 10;
export const APPS_MAX = 1_000;
/** Files of one bundle together: hosts load them into memory. */
export const BUNDLE_BYTES_MAX = 256 * 1024 * 1024;

export interface AppVersion {
  readonly version: string;
  readonly deployedAtMs: number;
  readonly main: string;
  readonly manifest: Manifest;
  readonly env: Readonly<Record<string, string>>;
}

interface AppRecord {
  readonly current: string;
  /** bucket -> trigger -> its spec, or null for one of the manifest's that was removed. */
  readonly triggers: Readonly<Record<string, Readonly<Record<string, TriggerSpec | null>>>>;
}

interface App {
  record: AppRecord;
  readonly versions: Map<string, AppVersion>;
  effective: { readonly version: string; readonly manifest: Manifest };
}

export class AppRegistry {
  readonly #store: KeyValueStore;
  readonly #folder: DataFolder;
  readonly #apps = new Map<string, App>();
  /** Versions whose app has no current one yet: the first deploy, until its host is ready. */
  readonly #pending = new Map<string, Map<string, AppVersion>>();

  constructor(store: KeyValueStore, folder: DataFolder) {
    this.#store = store;
    this.#folder = folder;
  }

  /** @param packageRoot what `import 'antrail'` means in a bundle that was not bundled. */
  async restore(packageRoot: string): Promise<void> {
    await this.#folder.link('node_modules/antrail', packageRoot);
    const versions = new Map<string, Map<string, AppVersion>>();
    for (const [key, value] of this.#store.range(prefixRange('w/'))) {
      const [, app = '', version = ''] = key.split('/');
      const known = versions.get(app) ?? new Map<string, AppVersion>();
      versions.set(app, known.set(version, decode<AppVersion>(value)));
    }
    for (const [key, value] of this.#store.range(prefixRange('a/'))) {
      const app = key.slice(2);
      const record = decode<AppRecord>(value);
      const known = versions.get(app) ?? new Map<string, AppVersion>();
      const current = known.get(record.current);
      if (current === undefined) continue;
      this.#apps.set(app, { record, versions: known, effective: effectiveOf(current, record) });
    }
    for (const app of await this.#folder.list('apps')) {
      // A deploy that was cut short, or a removal.
      for (const version of await this.#folder.list(`apps/${app}`)) {
        if (this.#apps.get(app)?.versions.has(version) !== true) await this.#removeVersion(app, version);
      }
    }
  }

  names(): Iterable<string> {
    return this.#apps.keys();
  }

  /** With the triggers of run time. */
  current(app: string): { readonly version: string; readonly manifest: Manifest } | undefined {
    return this.#apps.get(app)?.effective;
  }

  hasVersion(app: string, version: string): boolean {
    return this.version(app, version) !== undefined;
  }

  version(app: string, version: string): AppVersion | undefined {
    return this.#apps.get(app)?.versions.get(version) ?? this.#pending.get(app)?.get(version);
  }

  /** Newest first. */
  versionsOf(app: string): AppVersion[] {
    const versions = Array.from(this.#apps.get(app)?.versions.values() ?? []);
    return versions.sort((a, b) => b.deployedAtMs - a.deployedAtMs);
  }

  folderOf(app: string, version: string): string {
    return `${this.#folder.path}/apps/${app}/${version}`;
  }

  /** Puts a version's files in place; it is not current yet. */
  async add(app: string, one: Omit<AppVersion, 'deployedAtMs'>, bundle: AppBundle, nowMs: EpochMs): Promise<void> {
    if (!this.#apps.has(app) && this.#apps.size >= APPS_MAX) {
      throw new PlatformError(
        'E_QUOTA_EXCEEDED',
        `There are ${APPS_MAX} apps, the most there may be: delete one first.`,
      );
    }
    const files = Object.entries(bundle.files).map(([path, file]) => ({ path, bytes: bytesOf(file) }));
    const bytes = files.reduce((sum, file) => sum + file.bytes.length, 0);
    if (bytes > BUNDLE_BYTES_MAX) {
      const detail = `The bundle has ${bytes} bytes; at most ${BUNDLE_BYTES_MAX} are possible.`;
      throw new PlatformError('E_BODY_TOO_LARGE', detail, { details: { limitBytes: BUNDLE_BYTES_MAX } });
    }
    const folder = `apps/${app}/${one.version}`;
    const text = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
    if (!Object.hasOwn(bundle.files, 'package.json'))
      files.push({ path: 'package.json', bytes: text({ type: 'module' }) });
    files.push({ path: 'manifest.json', bytes: text(one.manifest) });
    for (const file of files) await this.#folder.write(`${folder}/${file.path}`, file.bytes);
    const version: AppVersion = { ...one, deployedAtMs: nowMs };
    const pending = this.#pending.get(app) ?? new Map<string, AppVersion>();
    this.#pending.set(app, pending.set(version.version, version));
  }

  /** A version that was added, or an older one, becomes current; triggers of run time end. */
  async activate(app: string, version: string, nowMs: EpochMs): Promise<void> {
    const found = this.version(app, version);
    if (found === undefined) throw new PlatformError('E_INTERNAL', `version ${version} of app ${app} is not here`);
    const one = { ...found, deployedAtMs: nowMs };
    const record: AppRecord = { current: version, triggers: {} };
    await this.#store.transaction([
      { put: `w/${app}/${version}`, value: encode(one) },
      { put: `a/${app}`, value: encode(record) },
    ]);
    this.#pending.get(app)?.delete(version);
    const versions = this.#apps.get(app)?.versions ?? new Map<string, AppVersion>();
    versions.set(version, one);
    this.#apps.set(app, { record, versions, effective: effectiveOf(one, record) });
  }

  /** A version that was added and could not be loaded. */
  async discard(app: string, version: string): Promise<void> {
    this.#pending.get(app)?.delete(version);
    if (this.#apps.get(app)?.versions.has(version) !== true) await this.#removeVersion(app, version);
  }

  /** Removes versions beyond VERSIONS_KEPT_MAX that are not in use. */
  async prune(app: string, inUse: (version: string) => boolean): Promise<void> {
    const known = this.#apps.get(app);
    for (const { version } of this.versionsOf(app).slice(VERSIONS_KEPT_MAX)) {
      if (known === undefined || version === known.record.current || inUse(version)) continue;
      await this.#store.transaction([{ delete: `w/${app}/${version}` }]);
      known.versions.delete(version);
      await this.#removeVersion(app, version);
    }
  }

  async remove(app: string): Promise<void> {
    const known = this.#apps.get(app);
    if (known === undefined) return;
    const changes: KeyValueChange[] = [{ delete: `a/${app}` }];
    for (const version of known.versions.keys()) changes.push({ delete: `w/${app}/${version}` });
    this.#apps.delete(app);
    await this.#store.transaction(changes);
    await this.#folder.remove(`apps/${app}`);
  }

  /** Adds or replaces a trigger of the current version at run time; `null` removes it. */
  async setTrigger(app: string, bucket: string, trigger: string, spec: TriggerSpec | null): Promise<void> {
    const known = this.#apps.get(app);
    const version = known?.versions.get(known.record.current);
    if (known === undefined || version === undefined) return;
    const { triggers } = known.record;
    const record: AppRecord = {
      ...known.record,
      triggers: { ...triggers, [bucket]: { ...triggers[bucket], [trigger]: spec } },
    };
    await this.#store.transaction([{ put: `a/${app}`, value: encode(record) }]);
    known.record = record;
    known.effective = effectiveOf(version, record);
  }

  async #removeVersion(app: string, version: string): Promise<void> {
    await this.#folder.remove(`apps/${app}/${version}`);
  }
}

function effectiveOf({ version, manifest }: AppVersion, { triggers }: AppRecord): App['effective'] {
  const changed = Object.entries(triggers);
  if (changed.length === 0) return { version, manifest };
  const buckets: Record<string, BucketSpec> = { ...manifest.buckets };
  for (const [bucket, ofBucket] of changed) {
    const on: Record<string, TriggerSpec> = { ...buckets[bucket]?.on };
    for (const [trigger, spec] of Object.entries(ofBucket)) {
      if (spec === null) delete on[trigger];
      else on[trigger] = spec;
    }
    buckets[bucket] = { ...buckets[bucket], on };
  }
  return { version, manifest: { ...manifest, buckets } };
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function decode<T>(bytes: Uint8Array): T {
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}
