// From an app's file to one ES module and its source map, with esbuild.
//
// CO1. The same sources give the same bytes, whatever folder they and this package lie in: every path in them is relative
//      to the folder of the app's file.
// CO2. What was read, or looked for in vain, is known even when the build fails, so that it can be watched.

import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { type BuildContext, type BuildFailure, type BuildResult, context, type Message, type Plugin } from 'esbuild';
import type { AppProblem } from '../protocol/index.ts';
import { SDK_NAMESPACE, sdkPlugin } from './sdk-plugin.ts';

export const MAIN_FILE = 'main.mjs';

export interface Compiled {
  /** `main.mjs` and `main.mjs.map`; empty if there are problems. */
  readonly files: Readonly<Record<string, string>>;
  readonly problems: readonly AppProblem[];
  readonly warnings: readonly AppProblem[];
  /** Absolute paths of the author's files that were read, node_modules and this package left out; sorted. */
  readonly inputs: readonly string[];
  /** Folders in which an import was looked for; sorted. */
  readonly lookedIn: readonly string[];
}

/** Bundled CommonJS asks for these; esbuild renames an app's own variables of the same names. */
const BANNER = `import { createRequire as $antrailCreateRequire } from 'node:module';
const require = $antrailCreateRequire(import.meta.url);
const $antrailDirname = import.meta.dirname, $antrailFilename = import.meta.filename;`;

/** Compiles one app, again and again; each time only what has changed. */
export class Compiler {
  /** Of the app's file, with symbolic links followed. All paths of problems are relative to it. */
  readonly folder: string;
  readonly entry: string;
  readonly #inputs = new Set<string>();
  readonly #lookedIn = new Set<string>();
  #context: BuildContext<{ write: false }> | undefined;

  constructor(entryFile: string) {
    const entry = existsSync(entryFile) ? realpathSync(entryFile) : resolve(entryFile);
    this.folder = dirname(entry);
    this.entry = basename(entry);
  }

  async compile(): Promise<Compiled> {
    this.#inputs.clear();
    this.#lookedIn.clear();
    this.#lookedIn.add(this.folder);
    this.#context ??= await this.#open();
    let result: BuildResult<{ write: false }>;
    try {
      result = await this.#context.rebuild();
    } catch (error) {
      if (!isBuildFailure(error)) throw error;
      return this.#compiled({}, error.errors, error.warnings);
    }
    const files = result.outputFiles.map(({ path, text }) => [basename(path), text] as const);
    // Sorted: esbuild gives the map first.
    return this.#compiled(Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1))), [], result.warnings);
  }

  async close(): Promise<void> {
    await this.#context?.dispose();
    this.#context = undefined;
  }

  #open(): Promise<BuildContext<{ write: false }>> {
    return context({
      absWorkingDir: this.folder,
      entryPoints: [`./${this.entry}`],
      outfile: join(this.folder, MAIN_FILE),
      write: false,
      allowOverwrite: true,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      sourcemap: 'linked',
      sourcesContent: true,
      keepNames: true,
      charset: 'utf8',
      logLevel: 'silent',
      banner: { js: BANNER },
      define: { __dirname: '$antrailDirname', __filename: '$antrailFilename' },
      plugins: [this.#recorder(), sdkPlugin],
    });
  }

  #recorder(): Plugin {
    return {
      name: 'antrail-recorder',
      setup: (build) => {
        build.onResolve({ filter: /^\.\.?(\/|$)/, namespace: 'file' }, ({ path, resolveDir }) => {
          if (!isInstalled(resolveDir)) this.#lookedIn.add(dirname(join(resolveDir, path)));
          return undefined;
        });
        build.onLoad({ filter: /.*/, namespace: 'file' }, ({ path }) => {
          if (!isInstalled(path)) this.#inputs.add(path);
          return undefined;
        });
      },
    };
  }

  #compiled(files: Record<string, string>, errors: readonly Message[], warnings: readonly Message[]): Compiled {
    return {
      files,
      problems: errors.map(problemOf),
      warnings: warnings.map(problemOf),
      inputs: [...this.#inputs].sort(),
      lookedIn: [...this.#lookedIn].sort(),
    };
  }
}

function isInstalled(path: string): boolean {
  return path.includes(`${sep}node_modules${sep}`);
}

function problemOf({ text, location }: Message): AppProblem {
  if (location === null || location.namespace === SDK_NAMESPACE) return { message: text };
  const column = location.lineText.trim() === '' ? '' : ` in: ${location.lineText.trim().slice(0, 120)}`;
  return { message: `${text}${column}`, file: location.file, line: location.line };
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && Array.isArray((error as { errors?: unknown }).errors);
}
