// `antrail serve` as a process of its own, for programs that measure it: memory of server and app hosts, as the system
// counts it (Linux).

import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectServer, type ServerClient } from 'antrail/client';
import { bundleApp } from '#src/deploy/index.js';
import { ROOT } from './server.ts';

export interface ServedProcess {
  readonly url: string;
  readonly client: ServerClient;
  /** Process ids. */
  readonly server: number;
  /** The only app host; NaN while there is none. */
  host(): Promise<number>;
  /** @param file an app's source, relative to the repository. @returns the app's name. */
  deploy(file: string): Promise<string>;
  close(): Promise<void>;
}

/** With a temporary data folder. */
export async function serve(): Promise<ServedProcess> {
  const dataDir = await mkdtemp(join(tmpdir(), 'antrail-served-'));
  const program = join(ROOT, 'dist/bin/antrail.js');
  const child = spawn(process.execPath, [program, 'serve', '--data', dataDir, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const line = await new Promise<string>((resolve, reject) => {
    child.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString()));
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  });
  const url = /http:\S+/.exec(line)?.[0] ?? '';
  const client = connectServer({ url });
  const server = child.pid ?? Number.NaN;
  return {
    url,
    client,
    server,
    host: async () => {
      const children = await readFile(`/proc/${server}/task/${server}/children`, 'utf8');
      return Number(children.trim().split(' ')[0] || Number.NaN);
    },
    deploy: async (file) => {
      const { appName, bundle } = await bundleApp(join(ROOT, file));
      await client.deploy(appName, bundle);
      return appName;
    },
    close: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Resident memory now, and the most it has ever been. */
export async function memoryOf(pid: number): Promise<{ residentBytes: number; peakBytes: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) * 1024;
  return { residentBytes: field('VmRSS'), peakBytes: field('VmHWM') };
}
