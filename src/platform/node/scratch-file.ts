import { type FileHandle, mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ScratchFile } from '../ports.ts';

/**
 * Its name is taken away at once: the system gives the space back when the process ends, also when it is killed.
 * @param folder made if need be. @param name unique in it for a moment.
 */
export async function openScratchFile(folder: string, name: string): Promise<ScratchFile> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `${name}-${process.pid}`);
  const file = await open(path, 'w+', 0o600);
  await rm(path);
  return new NodeScratchFile(file);
}

class NodeScratchFile implements ScratchFile {
  readonly #file: FileHandle;

  constructor(file: FileHandle) {
    this.#file = file;
  }

  async write(bytes: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < bytes.length; ) {
      done += (await this.#file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
    }
  }

  async read(into: Uint8Array, at: number): Promise<void> {
    for (let done = 0; done < into.length; ) {
      const { bytesRead } = await this.#file.read(into, done, into.length - done, at + done);
      if (bytesRead === 0) throw new Error(`the file ends at ${at + done}`);
      done += bytesRead;
    }
  }

  cut(size: number): Promise<void> {
    return this.#file.truncate(size);
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}
