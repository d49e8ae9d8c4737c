// Set-up before anything runs: a Node that is new enough, dependencies, a current build.
//
// Owns: `node_modules` (only by npm), `dist`, `dist-test`, the lock folder `.setup/lock`.
// Plain JavaScript and Node's own modules only: it runs before anything is installed.
//
// SU1. Only the holder of the lock installs or builds; everybody else waits, then finds the work done.
// SU2. An installation that fails leaves the one that was there.
// SU3. When everything is current, no network is used and no file is written.

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = resolve(fileURLToPath(import.meta.url), '../..');

/** The oldest Node that is supported; package.json `engines` says the same, and a test proves it. */
export const NODE_MIN = [20, 19];
/** How long one set-up may take before its lock counts as abandoned even though its process lives. */
export const LOCK_STALE_MS = 600_000;
/** How long to wait for somebody else's set-up: above LOCK_STALE_MS, so that a stale lock is broken first. */
export const LOCK_WAIT_MS = 660_000;
const LOCK_POLL_MS = 200;

/** A failure with a message for people; no stack is shown. */
export class SetupError extends Error {
  name = 'SetupError';
}

/** @returns what is wrong with this version of Node, or undefined. */
export function nodeProblem(version, min = NODE_MIN) {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  if (major > min[0] || (major === min[0] && minor >= min[1])) return undefined;
  return `antrail needs Node ${min.join('.')} or newer; this is ${version}. Get one from https://nodejs.org or your version manager.`;
}

/**
 * Compares package-lock.json with npm's record of what it installed (`node_modules/.package-lock.json`).
 *
 * @param wanted    `packages` of package-lock.json.
 * @param installed `packages` of npm's record.
 * @returns names of packages that are missing or have another version. Optional packages may be missing: they are
 *          binaries for other systems.
 */
export function outdatedPackages(wanted, installed) {
  const outdated = [];
  for (const [path, row] of Object.entries(wanted)) {
    if (path === '') continue;
    const found = installed[path];
    if (found === undefined ? !row.optional && !row.devOptional : found.version !== row.version) outdated.push(path);
  }
  return outdated;
}

/** Installs what package-lock.json names, unless it is there already. */
export function ensureDependencies({ root = ROOT, log = say, npmCi = runNpmCi } = {}) {
  const folder = join(root, 'node_modules');
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages;
  const before = isPresent(folder) ? readInstalled(folder) : undefined;
  const outdated = before === undefined ? undefined : outdatedPackages(wanted, before);
  if (outdated?.length === 0) return;

  if (before !== undefined && lstatSync(folder).isSymbolicLink()) {
    log(`node_modules is a link to another tree and differs from package-lock.json (${outdated[0]}, …): install there`);
    return;
  }
  log(before === undefined ? 'installing dependencies' : `installing dependencies (changed: ${outdated[0]}, …)`);
  // `npm ci` deletes node_modules before it has fetched anything, so the old one steps aside (SU2).
  const aside = join(root, '.setup', 'node_modules.before');
  rmSync(aside, { recursive: true, force: true });
  if (before !== undefined) renameSync(folder, aside);
  const ok = npmCi(root);
  if (ok) {
    rmSync(aside, { recursive: true, force: true });
    return;
  }
  if (before === undefined) {
    throw new SetupError('`npm ci` failed (see above). Without network access, copy node_modules from another tree.');
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(aside, folder);
  log('`npm ci` failed (see above); going on with the packages that were installed before');
}

/** Compiles src to dist; with `tests` also test/, examples/ and bench/ to dist-test. Incremental. */
export function ensureBuild({ root = ROOT, tests = false } = {}) {
  const projects = [{ config: 'tsconfig.json', source: 'src', output: 'dist', mark: '.d.ts' }];
  if (tests) projects.push({ config: 'tsconfig.test.json', source: '.', output: 'dist-test', mark: '.js.map' });
  for (const project of projects) {
    pruneOutput(join(root, project.source), join(root, project.output), project.mark);
    // Its JavaScript entry, not `.bin/tsc`: that one is a shell script on some systems.
    const args = [join(root, 'node_modules/typescript/bin/tsc'), '-p', project.config];
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
    if (status !== 0) throw new SetupError(`the build failed (tsc -p ${project.config}, see above)`);
  }
}

/**
 * Removes outputs whose source is gone; the compiler leaves them, and a deleted test would go on running.
 *
 * @param mark what the compiler writes beside each of its `.js` files: other tools' files there are left alone.
 * @returns the removed `.js` files, relative to `outputFolder`.
 */
export function pruneOutput(sourceFolder, outputFolder, mark) {
  const removed = [];
  if (!existsSync(outputFolder)) return removed;
  for (const path of readdirSync(outputFolder, { recursive: true })) {
    if (!path.endsWith('.js')) continue;
    const stem = path.slice(0, -'.js'.length);
    if (!existsSync(join(outputFolder, stem + mark))) continue;
    if (existsSync(join(sourceFolder, `${stem}.ts`)) || existsSync(join(sourceFolder, `${stem}.tsx`))) continue;
    for (const end of ['.js', '.js.map', '.d.ts', '.d.ts.map']) rmSync(join(outputFolder, stem + end), { force: true });
    removed.push(path);
  }
  return removed;
}

/**
 * Runs `work` while nobody else runs theirs. The lock is a folder, because making one is atomic everywhere; a lock
 * whose process is gone, or that is older than `staleMs`, is broken.
 */
export async function withLock(folder, work, { staleMs = LOCK_STALE_MS, waitMs = LOCK_WAIT_MS, log = say } = {}) {
  const ownerFile = join(folder, 'owner.json');
  const startedMs = Date.now();
  mkdirSync(resolve(folder, '..'), { recursive: true });
  for (let said = false; ; ) {
    try {
      mkdirSync(folder);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (isStale(folder, ownerFile, staleMs)) {
      // Renaming is atomic: of several that find the lock stale one breaks it.
      const broken = `${folder}.broken-${process.pid}-${Date.now()}`;
      try {
        renameSync(folder, broken);
        rmSync(broken, { recursive: true, force: true });
      } catch (error) {
        if (error.code !== 'ENOENT') throw error;
      }
      continue;
    }
    if (Date.now() - startedMs > waitMs) {
      throw new SetupError(`another set-up holds ${folder} for too long; remove that folder if none is running`);
    }
    if (!said) log('waiting for another set-up in this tree');
    said = true;
    await new Promise((wake) => setTimeout(wake, LOCK_POLL_MS));
  }
  try {
    writeFileSync(ownerFile, JSON.stringify({ pid: process.pid, sinceMs: Date.now() }));
    return await work();
  } finally {
    // Not ours any more if somebody took it for abandoned.
    if (ownerOf(ownerFile) === process.pid) rmSync(folder, { recursive: true, force: true });
  }
}

/** Everything that must be so before a program of this tree runs. */
export async function setup({ tests = false } = {}) {
  const problem = nodeProblem(process.version);
  if (problem !== undefined) throw new SetupError(problem);
  await withLock(join(ROOT, '.setup/lock'), () => {
    ensureDependencies();
    if (!existsSync(join(ROOT, tests ? 'dist-test' : 'dist'))) say('compiling');
    ensureBuild({ tests });
  });
}

/** Runs a script's `main`; its number is the exit code. Failures of the set-up end with one line and code 1. */
export async function runMain(main) {
  try {
    process.exitCode = await main();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(error.message);
    process.exitCode = 1;
  }
}

export function say(line) {
  process.stderr.write(`antrail: ${line}\n`);
}

function isStale(folder, ownerFile, staleMs) {
  try {
    const { pid, sinceMs } = JSON.parse(readFileSync(ownerFile, 'utf8'));
    if (Date.now() - sinceMs > staleMs) return true;
    process.kill(pid, 0);
    return false;
  } catch (error) {
    if (error.code === 'ESRCH') return true;
    if (error.code === 'EPERM') return false; // It lives, under another user.
    // No owner yet, or half written: its holder is between two lines of withLock, or died there.
    try {
      return Date.now() - lstatSync(folder).mtimeMs > 10_000;
    } catch {
      return false;
    }
  }
}

function ownerOf(ownerFile) {
  try {
    return JSON.parse(readFileSync(ownerFile, 'utf8')).pid;
  } catch {
    return undefined;
  }
}

/** npm's own record; empty when the folder was not made by npm. */
function readInstalled(folder) {
  try {
    return JSON.parse(readFileSync(join(folder, '.package-lock.json'), 'utf8')).packages ?? {};
  } catch {
    return {};
  }
}

function isPresent(path) {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

function runNpmCi(root) {
  // No dependency needs its install script: native parts come as packages of their own (docs/decisions/).
  const args = [
    'ci',
    '--ignore-scripts',
    '--include=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  // Inside `npm test` npm names its own entry; without it `npm` is looked up, on Windows through the shell.
  const entry = process.env.npm_execpath;
  const own = entry !== undefined && /npm-cli\.(c?js)$/.test(entry);
  const { status } = own
    ? spawnSync(process.execPath, [entry, ...args], { cwd: root, stdio: ['ignore', 2, 2] })
    : spawnSync('npm', args, { cwd: root, stdio: ['ignore', 2, 2], shell: process.platform === 'win32' });
  return status === 0;
}

if (process.argv[1] !== undefined && relative(process.argv[1], fileURLToPath(import.meta.url)) === '') {
  await runMain(async () => {
    await setup();
    say('built; the command line is `node dist/bin/antrail.js`, or `antrail` after `npm link`');
    return 0;
  });
}
