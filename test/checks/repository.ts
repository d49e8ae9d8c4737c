// The repository as the checks see it: text files by path.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SourceFile } from './source.ts';

export const ROOT = findRoot(import.meta.dirname);

/** Made by tools or by running the product. */
const SKIPPED_FOLDERS = new Set(['node_modules', 'dist', 'dist-test', '.git', '.antrail', '.setup', '__pycache__']);
/** `.git` is a file in a linked work tree. */
const SKIPPED_FILES = new Set(['package-lock.json', 'LICENSE', '.git']);
const FILE_CHARS_MAX = 1_000_000;

/** Every text file below `folder` (default: the root), sorted by path. */
export function readTree(folder = ''): SourceFile[] {
  const files: SourceFile[] = [];
  const visit = (path: string) => {
    for (const entry of readdirSync(join(ROOT, path), { withFileTypes: true })) {
      const child = path === '' ? entry.name : `${path}/${entry.name}`;
      if (entry.isDirectory() && !SKIPPED_FOLDERS.has(entry.name)) visit(child);
      if (!entry.isFile() || SKIPPED_FILES.has(entry.name)) continue;
      const text = readFileSync(join(ROOT, child), 'utf8');
      if (text.length <= FILE_CHARS_MAX && !text.includes('\0')) files.push({ path: child, text });
    }
  };
  if (existsSync(join(ROOT, folder))) visit(folder);
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

export function isTypeScript(file: SourceFile): boolean {
  return /\.tsx?$/.test(file.path) && !file.path.endsWith('.d.ts');
}

export function exists(path: string): boolean {
  return existsSync(join(ROOT, path));
}

/** Names of the packages that users get. */
export function runtimePackages(): Set<string> {
  const { dependencies, peerDependencies, optionalDependencies } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  ) as Record<string, Record<string, string> | undefined>;
  return new Set(Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies }));
}

/** Upwards to the folder with package.json: the same from source and from compiled output. */
function findRoot(from: string): string {
  if (existsSync(join(from, 'package.json'))) return from;
  const parent = dirname(from);
  if (parent === from) throw new Error('no package.json above this file');
  return findRoot(parent);
}
