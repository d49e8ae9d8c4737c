import { mkdir, open, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join, resolve, sep } from 'node:path';
import { assert } from '../../base/index.ts';
import type { DataFolder } from '../ports.ts';
import { assertRoom } from './disk-room.ts';

let temporaryCounter = 0;

export class NodeDataFolder implements DataFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = resolve(path);
  }

  async write(path: string, bytes: Uint8Array): Promise<void> {
    const target = this.#inside(path);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    assertRoom(this.path, bytes.length);
    const temporary = `${target}.${process.pid}-${temporaryCounter++}.tmp`;
    try {
      const file = await open(temporary, 'wx', 0o600);
      try {
        await file.writeFile(bytes);
        await file.datasync();
      } finally {
        await file.close();
      }
      await rename(temporary, target);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
    await syncFolder(dirname(target));
  }

  async read(path: string, range?: { start: number; end: number }): Promise<Uint8Array | undefined> {
    try {
      if (range === undefined) return await readFile(this.#inside(path));
      const file = await open(this.#inside(path), 'r');
      try {
        const bytes = new Uint8Array(Math.max(0, range.end - range.start));
        let at = 0;
        while (at < bytes.length) {
          const { bytesRead } = await file.read(bytes, at, bytes.length - at, range.start + at);
          if (bytesRead === 0) return bytes.subarray(0, at);
          at += bytesRead;
        }
        return bytes;
      } finally {
        await file.close();
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  async remove(path: string): Promise<void> {
    await rm(this.#inside(path), { recursive: true, force: true });
  }

  async list(path: string): Promise<readonly string[]> {
    try {
      return await readdir(this.#inside(path));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }

  async link(path: string, target: string): Promise<void> {
    const place = this.#inside(path);
    await mkdir(dirname(place), { recursive: true, mode: 0o700 });
    const temporary = `${place}.${process.pid}-${temporaryCounter++}.tmp`;
    await symlink(target, temporary);
    await rename(temporary, place);
  }

  #inside(path: string): string {
    const absolute = resolve(join(this.path, path));
    assert(absolute.startsWith(this.path + sep), 'a path stays inside the data folder');
    return absolute;
  }
}

/** A rename is durable only when its folder is. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
