// What a manifest may say and this release cannot do yet. It is refused at deploy with what to do instead: an app that
// would quietly do less than it says is worse than one that is refused.

import type { AppProblem, Manifest } from '../protocol/index.ts';
import { Problems, quoted } from './problems.ts';

/** @returns problems as sentences that say what to do; [] if this release can run it. */
export function checkRelease(manifest: Manifest): AppProblem[] {
  const problems = new Problems();
  for (const [name, spec] of Object.entries(manifest.functions)) {
    if (spec.kind === 'durable') {
      problems.add(
        `Function ${quoted(name)} is durable, which needs state: not in this release. Use fn(...), and keep results with ` +
          'ctx.send(bucket, value, { name, persist: true }).',
        spec.source,
      );
    }
    if (spec.runtime === 'process') {
      problems.add(
        `Function ${quoted(name)} asks for runtime 'process': not in this release. Leave runtime out.`,
        spec.source,
      );
    }
  }
  for (const field of ['state', 'routes', 'cron'] as const) {
    if (manifest[field] === undefined) continue;
    const instead = field === 'cron' ? 'Use byTime({ cron }) on a bucket.' : 'Leave it out.';
    problems.add(`The app declares ${field}: not in this release. ${instead}`, manifest.source);
  }
  if ((manifest.secrets ?? []).length > 0) {
    problems.add('The app declares secrets: not in this release. Use env, and give values at deploy.', manifest.source);
  }
  return problems.list();
}
