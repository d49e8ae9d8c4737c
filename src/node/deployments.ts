// Deploying and removing apps: what must be true before a version becomes current.
//
// DP1. A version becomes current only after its host was ready; a refused one leaves everything as it was.
// DP2. Changes of one app happen one after the other, in the order in which they were asked for.

import { nearMiss, PlatformError, toErrorData } from '../base/index.ts';
import {
  type AppRegistry,
  appInvalid,
  checkAppName,
  checkRelease,
  checkTriggerPlacement,
  decodeBundle,
  versionOf,
} from '../cluster/index.ts';
import type { Clock } from '../platform/index.ts';
import type {
  AppBundle,
  AppInfo,
  AppProblem,
  BucketSpec,
  Manifest,
  SourceLocation,
  TriggerSpec,
} from '../protocol/index.ts';
import { assertBucket, type Coordinator, unknownApp } from '../scheduler/index.ts';
import type { Supervisor } from '../supervisor/index.ts';
import { checkTrigger, functionsOf } from '../trigger/index.ts';

const CHECKS = { checkTrigger, functionsOf };

export class Deployments {
  readonly #registry: AppRegistry;
  readonly #coordinator: Coordinator;
  readonly #supervisor: Supervisor;
  readonly #clock: Clock;
  readonly #lastOf = new Map<string, Promise<unknown>>();

  constructor(registry: AppRegistry, coordinator: Coordinator, supervisor: Supervisor, clock: Clock) {
    this.#registry = registry;
    this.#coordinator = coordinator;
    this.#supervisor = supervisor;
    this.#clock = clock;
  }

  deploy(
    app: string,
    body: AppBundle,
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ app: string; version: string; created: boolean }> {
    return this.#inTurn(app, () => this.#deploy(app, body, env));
  }

  async #deploy(app: string, body: AppBundle, env: Readonly<Record<string, string>>) {
    const problems = checkAppName(app);
    if (problems.length > 0) throw appInvalid(problems);
    const decoded = decodeBundle(body, CHECKS);
    if (decoded.problems !== undefined) throw appInvalid(decoded.problems);
    const { bundle } = decoded;
    const missing = checkRelease(bundle.manifest);
    if (missing.length > 0) throw appInvalid(missing);
    const resolved = resolveEnv(bundle.manifest, env);
    const version = versionOf(bundle, resolved);
    const before = this.#registry.current(app)?.version;
    if (before === version) return { app, version, created: false };
    const created = !this.#registry.hasVersion(app, version);
    if (created) {
      const one = { version, main: bundle.main, manifest: bundle.manifest, env: resolved };
      try {
        await this.#registry.add(app, one, bundle, this.#clock.epochMs());
      } catch (error) {
        await this.#registry.discard(app, version);
        throw error;
      }
    }
    try {
      await this.#supervisor.start(app, version);
    } catch (error) {
      await this.#supervisor.stop(app, version);
      if (created) await this.#registry.discard(app, version);
      if (error instanceof PlatformError && error.code === 'E_SHUTTING_DOWN') throw error;
      throw loadFailed(bundle.manifest, error);
    }
    await this.#registry.activate(app, version, this.#clock.epochMs()); // (DP1)
    this.#coordinator.configure(app);
    if (before !== undefined) this.#coordinator.releaseIfUnused(app, before);
    await this.#registry.prune(
      app,
      (old) => this.#coordinator.table.usedBy(app, old) > 0 || this.#coordinator.triggers.usesVersion(app, old),
    );
    return { app, version, created };
  }

  delete(app: string): Promise<void> {
    return this.#inTurn(app, async () => {
      const versions = this.#registry.versionsOf(app);
      this.#assertKnown(app);
      await this.#registry.remove(app);
      await this.#coordinator.removeApp(app);
      await Promise.all(versions.map(({ version }) => this.#supervisor.stop(app, version)));
    });
  }

  putTrigger(app: string, bucket: string, trigger: string, spec: TriggerSpec): Promise<{ created: boolean }> {
    return this.#inTurn(app, async () => {
      const { version, manifest } = this.#assertKnown(app);
      assertBucket(app, manifest, bucket);
      const bundled = this.#registry.version(app, version)?.manifest ?? manifest;
      const problems = checkTriggerPlacement({ bucket, trigger, spec }, bundled, CHECKS);
      if (problems.length > 0) throw appInvalid(problems);
      const created = manifest.buckets[bucket]?.on?.[trigger] === undefined;
      await this.#registry.setTrigger(app, bucket, trigger, spec);
      this.#coordinator.configure(app);
      this.tellTriggers(app, bucket);
      return { created };
    });
  }

  deleteTrigger(app: string, bucket: string, trigger: string): Promise<void> {
    return this.#inTurn(app, async () => {
      const { manifest } = this.#assertKnown(app);
      assertBucket(app, manifest, bucket);
      const on = manifest.buckets[bucket]?.on ?? {};
      if (!Object.hasOwn(on, trigger)) {
        const didYouMean = nearMiss(trigger, Object.keys(on));
        const hint = didYouMean === undefined ? '' : ` Did you mean '${didYouMean}'?`;
        throw new PlatformError('E_TRIGGER_UNKNOWN', `Bucket '${bucket}' has no trigger '${trigger}'.${hint}`, {
          details: didYouMean === undefined ? {} : { didYouMean },
        });
      }
      await this.#registry.setTrigger(app, bucket, trigger, null);
      this.#coordinator.removeTrigger(app, bucket, trigger);
      this.tellTriggers(app, bucket);
    });
  }

  /** Tells the host of the current version which triggers a bucket has now. */
  tellTriggers(app: string, bucket: string): void {
    const current = this.#registry.current(app);
    if (current === undefined) return;
    const triggers = current.manifest.buckets[bucket]?.on ?? {};
    this.#coordinator.linkOf(app, current.version)?.send({ type: 'triggers-set', bucket, triggers });
  }

  /** Buckets whose triggers are not those of the bundle's manifest: a host that has just begun does not know them. */
  changedBuckets(app: string, version: string): string[] {
    const current = this.#registry.current(app);
    const declared = this.#registry.version(app, version)?.manifest.buckets;
    if (current === undefined || current.version !== version || current.manifest.buckets === declared) return [];
    return Object.entries(current.manifest.buckets)
      .filter(([bucket, spec]: [string, BucketSpec]) => declared?.[bucket]?.on !== spec.on)
      .map(([bucket]) => bucket);
  }

  infoOf(app: string): AppInfo {
    const { version, manifest } = this.#assertKnown(app);
    const versions = this.#registry.versionsOf(app).map((one) => ({
      version: one.version,
      deployedAt: new Date(one.deployedAtMs).toISOString(),
      current: one.version === version,
      usedBy: this.#coordinator.table.usedBy(app, one.version),
    }));
    const deployedAt = versions.find(({ current }) => current)?.deployedAt ?? '';
    return { app, version, deployedAt, manifest, versions };
  }

  /** Until no change is under way. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#lastOf.values());
  }

  #assertKnown(app: string): { readonly version: string; readonly manifest: Manifest } {
    const current = this.#registry.current(app);
    if (current === undefined) throw unknownApp(app, this.#registry.names());
    return current;
  }

  /** (DP2) */
  async #inTurn<T>(app: string, work: () => Promise<T>): Promise<T> {
    const before = this.#lastOf.get(app) ?? Promise.resolve();
    const mine = before.catch(() => {}).then(work);
    this.#lastOf.set(app, mine);
    try {
      return await mine;
    } finally {
      if (this.#lastOf.get(app) === mine) this.#lastOf.delete(app);
    }
  }
}

/** What a function of the app finds in its environment. @throws E_APP_INVALID for values that are missing or unknown. */
function resolveEnv(manifest: Manifest, given: Readonly<Record<string, string>>): Record<string, string> {
  const declared = manifest.env ?? {};
  const problems: AppProblem[] = [];
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(declared, name)) continue;
    const near = nearMiss(name, Object.keys(declared));
    const hint = near === undefined ? 'Declare it in `env` of the app.' : `Did you mean '${near}'?`;
    problems.push({ message: `The app declares no environment variable '${name}'. ${hint}` });
  }
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(declared)) {
    const set = given[name] ?? value;
    if (set === null)
      problems.push({ message: `Environment variable '${name}' has no value: give it when you deploy.` });
    else env[name] = set;
  }
  if (problems.length > 0) throw appInvalid(problems);
  return env;
}

function loadFailed(manifest: Manifest, cause: unknown): PlatformError {
  const data = toErrorData(cause);
  const { file, line } = { ...manifest.source, ...(data.details as Partial<SourceLocation> | undefined) };
  const place = { ...(file === undefined ? {} : { file }), ...(line === undefined ? {} : { line }) };
  const refused = appInvalid([{ message: `The app could not be loaded: ${data.message}`, ...place }], cause);
  // Shown with the answer: where the bundle threw, in the words of its author's files.
  // A process that just ended has no stack but ours, which helps nobody.
  const stack = data.code === 'E_NODE_LOST' || data.stack === undefined ? {} : { stack: data.stack };
  const details = { ...refused.details, ...data.details, ...stack };
  return new PlatformError('E_APP_INVALID', refused.message, { details, cause });
}
