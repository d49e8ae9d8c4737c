import { existsSync } from 'node:fs';
import { appInvalid, checkManifest, versionOf } from '../cluster/index.ts';
import type { AppBundle, AppProblem } from '../protocol/index.ts';
import { checkTrigger, functionsOf } from '../trigger/index.ts';
import { type Compiled, Compiler, MAIN_FILE } from './compile.ts';
import { type EvaluateOptions, evaluate } from './evaluate.ts';

export interface BundledApp {
  readonly bundle: AppBundle;
  readonly appName: string;
  /** As the server will compute it when nothing is given with `--env`. */
  readonly version: string;
  /** What esbuild finds odd. */
  readonly warnings: readonly AppProblem[];
  /** Absolute paths of the author's files in it; node_modules left out. */
  readonly inputs: readonly string[];
}

/**
 * Bundles the app that `entryFile` exports as its default and learns its manifest by loading it in a process of its own.
 *
 * Paths in problems and in the manifest are relative to the folder of `entryFile`.
 * @throws E_APP_INVALID (usage) with `problems`, and file and line of the first, whatever is wrong with the app.
 */
export async function bundleApp(entryFile: string, options: EvaluateOptions = {}): Promise<BundledApp> {
  const compiler = new Compiler(entryFile);
  try {
    if (!existsSync(entryFile)) throw appInvalid([{ message: `There is no file ${entryFile}.` }]);
    return await evaluateCompiled(await compiler.compile(), compiler.entry, options);
  } finally {
    await compiler.close();
  }
}

/** @throws E_APP_INVALID as `bundleApp`. */
export async function evaluateCompiled(
  compiled: Compiled,
  entry: string,
  options: EvaluateOptions,
): Promise<BundledApp> {
  if (compiled.problems.length > 0) throw appInvalid(compiled.problems);
  const evaluation = await evaluate(compiled.files, entry, options);
  if (evaluation.problem !== undefined) throw appInvalid([evaluation.problem]);
  const { name, manifest } = evaluation;
  const problems = checkManifest(manifest, { checkTrigger, functionsOf });
  if (problems.length > 0) throw appInvalid(problems);
  const bundle = { manifest, main: MAIN_FILE, files: compiled.files };
  return { bundle, appName: name, version: versionOf(bundle), warnings: compiled.warnings, inputs: compiled.inputs };
}
