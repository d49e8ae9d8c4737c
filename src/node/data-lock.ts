// One server per data folder.
//
// The lock is a file that names a process. A lock whose process is gone is taken over, by one of several that try:
// they agree by making a folder, which only one of them can.

import { linkSync, mkdirSync, readFileSync, rmdirSync, statSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PlatformError } from '../base/index.ts';

/** A take-over is a few file operations; one that is older than this was left by a crash. */
const TAKE_OVER_MS_MAX = 10_000;
const TRIES_MAX = 50;

interface Owner {
  readonly pid: number;
  /** When the process began, as the system tells it: pids are used again. '' where it cannot be told. */
  readonly startedAt: string;
}

export interface DataLock {
  /** Idempotent. */
  release(): void;
}

/** @throws E_DATA_IN_USE with the pid of the server that has it. */
export function lockDataFolder(folder: string): DataLock {
  const file = join(folder, 'lock');
  const mine: Owner = { pid: process.pid, startedAt: startOf(process.pid) };
  const draft = join(folder, `lock.${process.pid}`);
  // Written whole under another name first: whoever reads the lock reads all of it.
  writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 });
  try {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      if (tryTo(() => linkSync(draft, file))) return { release: once(() => releaseLock(file, mine)) };
      const owner = readOwner(file);
      if (owner === undefined) continue;
      if (isAlive(owner)) {
        throw new PlatformError(
          'E_DATA_IN_USE',
          `The data folder ${folder} is in use by the server with pid ${owner.pid}. Stop it, or take another folder with \`--data DIR\`.`,
          { details: { pid: owner.pid, folder } },
        );
      }
      takeOver(file, owner);
    }
  } finally {
    tryTo(() => unlinkSync(draft));
  }
  throw new PlatformError('E_DATA_IN_USE', `The data folder ${folder} could not be locked: others try too. Try again.`);
}

function takeOver(file: string, dead: Owner): void {
  const mutex = `${file}.take-over`;
  if (!tryTo(() => mkdirSync(mutex))) {
    const age = Date.now() - (statOf(mutex) ?? Date.now());
    if (age > TAKE_OVER_MS_MAX) tryTo(() => rmdirSync(mutex));
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    return;
  }
  try {
    const owner = readOwner(file);
    // Another one may have taken it over between our look and our turn.
    if (owner?.pid === dead.pid && owner.startedAt === dead.startedAt) unlinkSync(file);
  } finally {
    rmdirSync(mutex);
  }
}

function releaseLock(file: string, mine: Owner): void {
  const owner = readOwner(file);
  if (owner?.pid === mine.pid && owner.startedAt === mine.startedAt) tryTo(() => unlinkSync(file));
}

function readOwner(file: string): Owner | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  try {
    const { pid, startedAt } = JSON.parse(text) as Partial<Owner>;
    return { pid: Number(pid), startedAt: String(startedAt) };
  } catch {
    return { pid: 0, startedAt: '' };
  }
}

function isAlive({ pid, startedAt }: Owner): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  if (pid === process.pid) return startedAt === startOf(pid);
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return startedAt === '' || startOf(pid) === '' || startOf(pid) === startedAt;
}

/** Field 22 of /proc/<pid>/stat; the name before it may hold spaces and brackets. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

function statOf(path: string): number | undefined {
  try {
    return statSync(path).mtimeMs;
  } catch {
    return undefined;
  }
}

function tryTo(work: () => void): boolean {
  try {
    work();
    return true;
  } catch {
    return false;
  }
}

function once(work: () => void): () => void {
  let done = false;
  return () => {
    if (!done) work();
    done = true;
  };
}
