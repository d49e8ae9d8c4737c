// Who may import whom: the table of layers and the check of imports against it.
//
// LY1. Imports go downward only; folders of the same level do not know each other.
// LY2. Another folder is entered through its door: `index.ts` of a row of the table (tests: also `internal.ts`).
// LY3. Below IO_LEVEL code sees ports: no packages and no `node:` modules but those listed, except in adapters.
// LY4. Adapters (platform/node, back ends) are chosen from IO_LEVEL up, never by the code that uses the port.
// LY5. Edge folders run in the user's code: they import the edges and base folders of their row, nothing else.

import { type Import, importsOf, isTestFile, type Problem, resolveImport, type SourceFile } from './source.ts';

export interface Layer {
  /** Below src/. A row of a subfolder gives it a door of its own. */
  readonly folder: string;
  /** `edge`: runs in the user's own code; `also` is all that it may import. */
  readonly level: number | 'edge';
  /** Implements a port with real I/O: may use any package of package.json and any `node:` module. */
  readonly adapter?: true;
  /** Packages allowed below IO_LEVEL. Each has a page in docs/decisions/. */
  readonly packages?: readonly string[];
  /** `none`: not one `node:` module, nor in what it imports. `any`: all. Default: those of NODE_MODULES below IO_LEVEL. */
  readonly node?: 'none' | 'any';
  /** Doors beyond those below this level. */
  readonly also?: readonly string[];
  /** Why, where a row has something special. */
  readonly reason?: string;
}

/** From here up I/O and packages are allowed, and adapters may be chosen. */
export const IO_LEVEL = 6;

export const LAYERS: readonly Layer[] = [
  { folder: 'base', level: 0 },
  { folder: 'protocol', level: 1, packages: ['msgpackr'] },
  { folder: 'platform', level: 2 },
  { folder: 'platform/node', level: 2, adapter: true },
  { folder: 'log', level: 3 },
  { folder: 'log/memory', level: 3 },
  { folder: 'log/embedded', level: 3, adapter: true },
  { folder: 'log/postgres', level: 3, adapter: true },
  { folder: 'bucket', level: 3 },
  { folder: 'bucket/disk', level: 3, adapter: true },
  { folder: 'bucket/s3', level: 3, adapter: true },
  { folder: 'trigger', level: 3, packages: ['croner'] },
  { folder: 'cluster', level: 3 },
  { folder: 'cluster/postgres', level: 3, adapter: true },
  { folder: 'state', level: 4 },
  { folder: 'state/memory', level: 4 },
  { folder: 'state/embedded', level: 4, adapter: true },
  { folder: 'state/postgres', level: 4, adapter: true },
  { folder: 'pool', level: 4 },
  { folder: 'scheduler/local', level: 4.5, reason: 'machines that executor/host drives' },
  { folder: 'scheduler', level: 5 },
  { folder: 'supervisor', level: 5 },
  { folder: 'executor', level: 5 },
  { folder: 'executor/host', level: 5 },
  { folder: 'executor/guest', level: 5, also: ['sdk'], reason: 'it serves the functions that the SDK describes' },
  { folder: 'gateway', level: 6 },
  { folder: 'deploy', level: 6 },
  { folder: 'node', level: 7 },
  {
    folder: 'cli',
    level: 8,
    also: ['bench', 'sdk', 'client', 'parallel'],
    reason: 'commands are clients; `bench` is one',
  },
  { folder: 'bench', level: 8, also: ['sdk', 'client', 'parallel'], reason: 'it measures what users call' },
  { folder: 'bin', level: 8, also: ['cli', 'sdk', 'client'], reason: 'entry files only parse, compose and start' },
  {
    folder: 'sdk',
    level: 'edge',
    also: ['base', 'protocol'],
    packages: ['@standard-schema/spec'],
    node: 'none',
    reason: 'app files are bundled for any runtime; the package is types only',
  },
  {
    folder: 'kit',
    level: 'edge',
    also: ['base', 'protocol', 'sdk', 'trigger'],
    reason: 'it checks trigger classes with the machine that asks them in production, in the author’s own tests',
  },
  { folder: 'client', level: 'edge', also: ['base', 'protocol', 'sdk'], reason: 'its types are made from an app’s' },
  {
    folder: 'parallel',
    level: 'edge',
    also: ['base', 'protocol', 'client'],
    node: 'any',
    reason: 'it opens direct sockets',
  },
  {
    folder: 'testing',
    level: 7.5,
    also: ['sdk', 'client', 'parallel'],
    reason: 'only tests import it; testApp runs apps',
  },
];

/** `node:` modules that do no I/O, so that code below IO_LEVEL may use them. */
export const NODE_MODULES: readonly { readonly name: string; readonly reason: string }[] = [
  { name: 'node:assert', reason: 'comparison only' },
  { name: 'node:util', reason: 'formatting and comparison only' },
  { name: 'node:util/types', reason: 'type tests only' },
  { name: 'node:buffer', reason: 'bytes in memory' },
  { name: 'node:crypto', reason: 'hashes and signatures; randomness is the Random port’s, see test/checks/tidy.ts' },
  { name: 'node:zlib', reason: 'crc32 only: bytes in memory' },
  { name: 'node:async_hooks', reason: 'AsyncLocalStorage: which invocation a callback belongs to' },
];

/** Packages that only tests may import. */
const TEST_PACKAGES = /^(fast-check|zod|@stdlib\/.*)$/;

/**
 * @param files    every TypeScript file of src/; others are ignored.
 * @param packages names of package.json that users get; undefined: not checked.
 */
export function checkLayers(
  files: readonly SourceFile[],
  layers: readonly Layer[] = LAYERS,
  packages?: ReadonlySet<string>,
): Problem[] {
  const problems: Problem[] = [];
  const sources = files.filter((file) => file.path.startsWith('src/'));
  const importsByPath = new Map(sources.map((file) => [file.path, importsOf(file.text)]));
  for (const file of sources) {
    const layer = layerOf(file.path, layers);
    if (layer === undefined) {
      problems.push({ path: file.path, line: 1, message: unknownFolder(file.path) });
      continue;
    }
    for (const one of importsByPath.get(file.path) ?? []) {
      const message = problemOf(file.path, layer, one, layers, packages);
      if (message !== undefined) problems.push({ path: file.path, line: one.line, message });
    }
  }
  problems.push(...nodeModulesReached(importsByPath, layers));
  return problems;
}

/** The console runs in a browser: of src/ it may see types of protocol only. */
export function checkConsole(files: readonly SourceFile[]): Problem[] {
  const problems: Problem[] = [];
  for (const file of files.filter(({ path }) => path.startsWith('console/') && !isTestFile(path))) {
    for (const one of importsOf(file.text)) {
      const target = resolveImport(file.path, one.specifier);
      if (target === undefined || !target.startsWith('src/')) continue;
      if (target === 'src/protocol/index.ts' && one.typeOnly) continue;
      problems.push({
        path: file.path,
        line: one.line,
        message: 'the console imports only types of src/protocol/index.ts',
      });
    }
  }
  return problems;
}

function problemOf(
  path: string,
  layer: Layer,
  one: Import,
  layers: readonly Layer[],
  packages: ReadonlySet<string> | undefined,
): string | undefined {
  const target = resolveImport(path, one.specifier);
  if (target !== undefined) {
    return target.startsWith('src/') ? folderProblem(path, layer, target, layers) : outsideProblem(path, target);
  }
  if (isTestFile(path)) return undefined;
  const inFull = layer.adapter === true || layer.node === 'any' || (layer.level !== 'edge' && layer.level >= IO_LEVEL);
  if (one.specifier.startsWith('node:')) {
    if (layer.node === 'none') return `${layer.folder} imports no node: module: it runs wherever the user's code does`;
    if (inFull || NODE_MODULES.some((row) => row.name === one.specifier)) return undefined;
    return `${one.specifier} below level ${IO_LEVEL}: take a port of src/platform instead (real adapters live in src/platform/node and in back ends)`;
  }
  const name = packageOf(one.specifier);
  if (TEST_PACKAGES.test(name)) return `${name} is for tests only`;
  if (name === 'antrail') return 'src imports itself by relative paths, not by the package name';
  if (!/^[a-z@]/.test(name)) return `unknown specifier '${one.specifier}': use a relative path`;
  if (layer.packages?.includes(name) !== true && (layer.level === 'edge' || !inFull)) {
    return `${layer.folder} uses no package ${name}: write it, take a port, or argue for it in docs/decisions/ and add it to the row of LAYERS (test/checks/layers.ts)`;
  }
  if (packages !== undefined && !packages.has(name)) {
    return `${name} is not among the dependencies of package.json: users would not have it`;
  }
  return undefined;
}

function folderProblem(path: string, from: Layer, target: string, layers: readonly Layer[]): string | undefined {
  const to = layerOf(target, layers);
  if (to === undefined) return unknownFolder(target);
  const test = isTestFile(path);
  if (from.folder === to.folder) return undefined;
  if (topOf(path) === topOf(target)) {
    // Inside one folder files meet freely, but the core of it must not pull its adapters in (LY4).
    if (to.adapter !== true || test) return undefined;
    return `${from.folder} must not import its adapter ${to.folder}: whoever composes (src/node, src/bin) chooses it`;
  }
  if (to.folder === 'testing' && !test) return 'only tests import src/testing';
  const doors = test ? ['index.ts', 'internal.ts'] : ['index.ts'];
  if (!doors.some((door) => target === `src/${to.folder}/${door}`)) {
    return `${target} is inside ${to.folder}: import src/${to.folder}/index.ts (what only tests need: its internal.ts)`;
  }
  if (test && to.folder === 'testing') return undefined;
  if (to.adapter === true && !test && from.adapter !== true && !reaches(from, IO_LEVEL)) {
    return `${from.folder} must not choose the adapter ${to.folder}: take the port as an argument`;
  }
  if (from.also?.some((folder) => folder === to.folder || folder === topOf(target)) === true) return undefined;
  if (from.level === 'edge' || to.level === 'edge') {
    return `${from.folder} may not import ${to.folder}: ${from.level === 'edge' ? `an edge folder imports only ${from.also?.join(', ')}` : `only users' code, src/executor/guest and commands see the edge`}`;
  }
  if (to.level < from.level) return undefined;
  return `${from.folder} (level ${from.level}) may not import ${to.folder} (level ${to.level}): only downward; move what both need down, or hand it in`;
}

/** Tests' helpers live in test/; product code never reaches out of src/. */
function outsideProblem(path: string, target: string): string | undefined {
  if (isTestFile(path) || target === 'package.json') return undefined;
  return `${target} is outside src: it is not shipped`;
}

/** A row with `node: 'none'` must not get a `node:` module through what it imports either. */
function nodeModulesReached(importsByPath: ReadonlyMap<string, Import[]>, layers: readonly Layer[]): Problem[] {
  const problems: Problem[] = [];
  for (const path of importsByPath.keys()) {
    if (layerOf(path, layers)?.node !== 'none' || isTestFile(path)) continue;
    const seen = new Set([path]);
    const queue: { path: string; line: number }[] = [{ path, line: 0 }];
    for (let entry = queue.shift(); entry !== undefined; entry = queue.shift()) {
      for (const one of importsByPath.get(entry.path) ?? []) {
        if (one.typeOnly) continue;
        const line = entry.line === 0 ? one.line : entry.line;
        if (one.specifier.startsWith('node:') && entry.path !== path) {
          problems.push({
            path,
            line,
            message: `gets ${one.specifier} through ${entry.path}: it must run without Node`,
          });
        }
        const target = resolveImport(entry.path, one.specifier);
        if (target === undefined || seen.has(target)) continue;
        seen.add(target);
        queue.push({ path: target, line });
      }
    }
  }
  return problems;
}

/** The row with the longest folder that holds the file. */
function layerOf(path: string, layers: readonly Layer[]): Layer | undefined {
  let best: Layer | undefined;
  for (const layer of layers) {
    if (path.startsWith(`src/${layer.folder}/`) && layer.folder.length > (best?.folder.length ?? 0)) best = layer;
  }
  return best;
}

function topOf(path: string): string {
  return path.split('/')[1] ?? '';
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

function reaches(layer: Layer, level: number): boolean {
  return layer.level !== 'edge' && layer.level >= level;
}

function unknownFolder(path: string): string {
  const folder = path.split('/').length > 2 ? `src/${topOf(path)}/` : 'a file directly in src/';
  return `${folder} is not in the table of layers: move the file into a folder of it, or add a row with its level to LAYERS (test/checks/layers.ts) and to the folder table of ARCHITECTURE.md`;
}
