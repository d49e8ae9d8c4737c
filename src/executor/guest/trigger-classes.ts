// Trigger classes of the app, found and asked.

import { type ErrorData, PlatformError } from '../../base/index.ts';
import type { Evaluation, EvaluationResult, Manifest } from '../../protocol/index.ts';
import type { AppDefinition } from '../../sdk/index.ts';
import { type AskedClass, evaluateCustom, whyNotAsked } from '../../trigger/index.ts';

export class TriggerClasses {
  readonly #app: AppDefinition;
  readonly #byName = new Map<string, unknown>();

  constructor(app: AppDefinition) {
    this.#app = app;
    for (const bucket of Object.values(app.buckets)) {
      for (const { Class } of Object.values(bucket.on)) {
        if (Class !== undefined && !this.#byName.has(Class.name)) this.#byName.set(Class.name, Class);
      }
    }
  }

  /** @throws E_APP_INVALID: the bundle does not have what its manifest says, with file and line of the first such trigger. */
  check(manifest: Manifest): void {
    for (const [bucket, { on = {} }] of Object.entries(manifest.buckets)) {
      for (const [trigger, spec] of Object.entries(on)) {
        if (spec.kind !== 'custom') continue;
        const Class = this.#find(bucket, trigger, spec.class);
        const problem = Class === undefined ? 'is not in the bundle' : whyNotAsked(Class, spec.sources !== undefined);
        if (problem === undefined) continue;
        const { file, line } = spec.source ?? {};
        throw new PlatformError(
          'E_APP_INVALID',
          `Trigger '${trigger}' of bucket '${bucket}': class ${spec.class} ${problem}.`,
          { details: { ...(file === undefined ? {} : { file }), ...(line === undefined ? {} : { line }) } },
        );
      }
    }
  }

  evaluate(evaluation: Evaluation, values: readonly Uint8Array[]): EvaluationResult {
    const Class = this.#find(evaluation.bucket, evaluation.trigger, evaluation.class);
    if (Class === undefined) {
      const error: ErrorData = { code: 'E_APP_INVALID', message: `the bundle has no class ${evaluation.class}` };
      return { failure: { blame: 'setup', error } };
    }
    return evaluateCustom(Class as AskedClass, evaluation, values);
  }

  /** The class that the bundle has at this place, else any of this name: a trigger of run time has no place there. */
  #find(bucket: string, trigger: string, name: string): unknown {
    const here = Object.hasOwn(this.#app.buckets, bucket) ? this.#app.buckets[bucket]?.on : undefined;
    const there = here !== undefined && Object.hasOwn(here, trigger) ? here[trigger]?.Class : undefined;
    return there?.name === name ? there : this.#byName.get(name);
  }
}
