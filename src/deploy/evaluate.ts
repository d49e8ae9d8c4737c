// Loads a bundle in a process of its own: whatever an app's top level does, this process goes on.

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isAbsolute, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AppProblem, Manifest, SourceLocation } from '../protocol/index.ts';
import { MAIN_FILE } from './compile.ts';
import type { Evaluated } from './evaluator.ts';
import { EVALUATE_MS_MAX, EVALUATE_OUTPUT_BYTES_MAX, OUTPUT_TAIL_CHARS_MAX } from './limits.ts';
import { PACKAGE_FOLDER, SDK_INTERNAL_FILE } from './sdk-plugin.ts';

export interface EvaluateOptions {
  /** All that the app's top level sees of an environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default EVALUATE_MS_MAX. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type Evaluation =
  | { readonly name: string; readonly manifest: Manifest; readonly problem?: never }
  | { readonly problem: AppProblem };

interface Exit {
  readonly killed: boolean;
  readonly overflowed: boolean;
  readonly exitCode: number | string;
  readonly output: string;
}

/**
 * @param files what `Compiler` made.
 * @param entry the app's file, for messages.
 * @returns the manifest with places relative to the app's folder, or why there is none.
 */
export async function evaluate(
  files: Readonly<Record<string, string>>,
  entry: string,
  options: EvaluateOptions = {},
): Promise<Evaluation> {
  // The real path: that is the one in stack frames.
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'antrail-')));
  try {
    await Promise.all(Object.entries(files).map(([path, text]) => writeFile(join(folder, path), text)));
    const answerFile = join(folder, 'answer.json');
    const exit = await run(folder, answerFile, options);
    options.signal?.throwIfAborted();
    // One that was killed may have answered that its output was cut off.
    const ended = !exit.killed && !exit.overflowed;
    const answer = ended ? await readFile(answerFile, 'utf8').catch(() => undefined) : undefined;
    if (answer === undefined) return { problem: { message: reasonOf(exit, options), file: entry } };
    return evaluationOf(JSON.parse(answer) as Evaluated, folder, entry);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function run(folder: string, answerFile: string, options: EvaluateOptions): Promise<Exit> {
  const evaluator = fileURLToPath(new URL('./evaluator.js', import.meta.url));
  const args = ['--enable-source-maps', evaluator, join(folder, MAIN_FILE), answerFile, SDK_INTERNAL_FILE];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      args,
      {
        cwd: folder,
        env: { ...options.env },
        timeout: options.timeoutMs ?? EVALUATE_MS_MAX,
        killSignal: 'SIGKILL',
        maxBuffer: EVALUATE_OUTPUT_BYTES_MAX,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      },
      (error, stdout, stderr) =>
        resolve({
          killed: error?.killed === true,
          overflowed: error?.code === ('ERR_CHILD_PROCESS_STDIO_MAXBUFFER' as unknown),
          exitCode: error?.signal ?? error?.code ?? 0,
          output: (stderr.trim() || stdout.trim()).slice(-OUTPUT_TAIL_CHARS_MAX),
        }),
    );
    child.stdin?.end();
  });
}

/** Why there is no answer. */
function reasonOf({ killed, overflowed, exitCode, output }: Exit, options: EvaluateOptions): string {
  if (overflowed)
    return `Loading the app prints more than ${EVALUATE_OUTPUT_BYTES_MAX} bytes; print less at its top level.`;
  if (killed) {
    const seconds = (options.timeoutMs ?? EVALUATE_MS_MAX) / 1000;
    return `Loading the app does not end within ${seconds} s; look for an endless loop or a slow top-level await.`;
  }
  if (exitCode === 13) return 'Loading the app never ends: a top-level await waits for something that does not come.';
  const told = output === '' ? '' : ` It printed: ${output}`;
  return `The app ends its process while it is loaded (${exitCode}); remove process.exit from its top level.${told}`;
}

function evaluationOf(evaluated: Evaluated, folder: string, entry: string): Evaluation {
  switch (evaluated.type) {
    case 'app':
      return { name: evaluated.name, manifest: withAuthorsPaths(evaluated.manifest, folder) };
    case 'no-default':
      return {
        problem: { message: "There is no default export; write: export default app('name', { … });", file: entry },
      };
    case 'not-an-app':
      return {
        problem: {
          message: `The default export is not an app but of type ${evaluated.what}; write: export default app('name', { … });`,
          file: entry,
        },
      };
    case 'threw': {
      const name = evaluated.name === '' ? '' : `${evaluated.name}: `;
      return { problem: { message: `${name}${evaluated.message}`, file: entry, ...placeOf(evaluated.stack, folder) } };
    }
  }
}

/** The author's own frame that is nearest to the throw. */
function placeOf(stack: string, folder: string): Partial<SourceLocation> {
  const places = [...stack.matchAll(/^\s+at (?:.* \()?((?:file:\/\/)?\/[^\n]*?):(\d+)(?::\d+)?\)?$/gm)].flatMap(
    ([, file = '', line = '']) => {
      const place = authorsPlace({ file: file.replace(/^file:\/\//, ''), line: Number(line) }, folder);
      return place === undefined ? [] : [place];
    },
  );
  return places.find(({ file }) => !file.includes('node_modules/')) ?? places[0] ?? {};
}

/** Only where the SDK puts places: options of the author's own may be called `source` too. */
function withAuthorsPaths(manifest: Manifest, folder: string): Manifest {
  const mended = <T extends { readonly source?: SourceLocation }>({ source, ...rest }: T): T => {
    const place = source === undefined ? undefined : authorsPlace(source, folder);
    return { ...rest, ...(place === undefined ? {} : { source: place }) } as T;
  };
  return mended({
    ...manifest,
    functions: mapFields(manifest.functions, mended),
    buckets: mapFields(manifest.buckets, ({ on = {}, ...bucket }) => mended({ ...bucket, on: mapFields(on, mended) })),
  });
}

function mapFields<T>(record: Readonly<Record<string, T>>, map: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}

/** Source maps are resolved against where the bundle was written; undefined for what is not the author's. */
function authorsPlace({ file, line }: SourceLocation, folder: string): SourceLocation | undefined {
  if (!isAbsolute(file) || file === join(folder, MAIN_FILE)) return undefined;
  // The author's files seem to lie around `folder`; what really lies in this package is the SDK or the evaluator.
  if (file.startsWith(PACKAGE_FOLDER)) return undefined;
  return { file: relative(folder, file).split(sep).join('/'), line };
}
