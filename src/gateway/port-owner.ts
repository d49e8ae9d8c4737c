// Who holds a TCP port. Linux only, best effort: what may not be read is not known.

import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';

const LISTENING = '0A';
const PROCESSES_MAX = 20_000;

/** @returns for example `node (pid 4711)`, or undefined. */
export async function portOwner(port: number): Promise<string | undefined> {
  const inodes = new Set<string>();
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    for (const inode of listeningInodes(await readOr(table, ''), port)) inodes.add(`socket:[${inode}]`);
  }
  if (inodes.size === 0) return undefined;
  const entries = await readdir('/proc').catch((): string[] => []);
  for (const pid of entries.filter((name) => /^\d+$/.test(name)).slice(0, PROCESSES_MAX)) {
    if (await holdsAny(pid, inodes)) {
      return `${await programOf(pid)} (pid ${pid})`;
    }
  }
  return undefined;
}

/** Inodes in a table as /proc/net/tcp has it: `sl local rem st tx:rx tr:when retrnsmt uid timeout inode …`. */
export function listeningInodes(table: string, port: number): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const inodes: string[] = [];
  for (const line of table.split('\n').slice(1)) {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/);
    if (state === LISTENING && local?.endsWith(wanted) === true && inode !== undefined) inodes.push(inode);
  }
  return inodes;
}

async function holdsAny(pid: string, inodes: ReadonlySet<string>): Promise<boolean> {
  const fds = await readdir(`/proc/${pid}/fd`).catch((): string[] => []);
  for (const fd of fds) {
    const target = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '');
    if (inodes.has(target)) return true;
  }
  return false;
}

/** By its command line: `comm` is the name of the main thread, which newer Nodes call `MainThread`. */
async function programOf(pid: string): Promise<string> {
  const [command = ''] = (await readOr(`/proc/${pid}/cmdline`, '')).split('\0');
  const name = basename(command) || (await readOr(`/proc/${pid}/comm`, '')).trim();
  return name === '' ? 'a process' : name;
}

async function readOr(path: string, otherwise: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => otherwise);
}
