// `antrail doctor`: what a server needs, checked on this machine.

import { constants } from 'node:fs';
import { access, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { connectServer } from '../client/index.ts';
import type { CommandSpec } from './command.ts';
import { DEFAULT_HOST, DEFAULT_PORT, defaultDataDir } from './serve.ts';
import { bytes } from './text.ts';
import { parsePort } from './usage.ts';

const NODE_MIN = [20, 19] as const;
const FREE_BYTES_MIN = 512 * 1024 * 1024;

interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

export const DOCTOR: CommandSpec = {
  usage: 'doctor',
  does: 'check whether this machine can run a server',
  json: true,
  options: [
    { flags: '--data <dir>', does: 'data folder to check (default: ~/.antrail)' },
    { flags: '--port <n>', does: `port to check (default: ${DEFAULT_PORT})`, parse: parsePort },
  ],
  examples: [
    ['antrail doctor', 'before the first start'],
    ['antrail doctor --data ./data --port 8080', 'for another place'],
  ],
  run: async ({ terminal, options, paint, json }) => {
    const checks = await Promise.all([
      checkNode(process.versions.node),
      checkDataDir(options.data === undefined ? defaultDataDir() : resolve(options.data)),
      checkPort(options.port ?? DEFAULT_PORT),
      checkPackage('lmdb', openScratchDatabase),
      checkPackage('esbuild', async () => {
        const { transform } = await import('esbuild');
        await transform('let a: number', { loader: 'ts' });
      }),
    ]);
    if (json) await terminal.out(`${JSON.stringify({ checks })}\n`);
    for (const { name, ok, detail } of json ? [] : checks) {
      await terminal.out(`${ok ? paint('green', 'ok  ') : paint('red', 'FAIL')}  ${name.padEnd(8)}  ${detail}\n`);
    }
    return checks.every(({ ok }) => ok) ? undefined : 1;
  },
};

export function checkNode(version: string): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const ok = major > NODE_MIN[0] || (major === NODE_MIN[0] && minor >= NODE_MIN[1]);
  return { name: 'node', ok, detail: ok ? version : `${version} is older than ${NODE_MIN.join('.')}: update Node` };
}

async function checkDataDir(dir: string): Promise<Check> {
  const name = 'data';
  // A server makes the folder: then the nearest one that exists must allow it.
  let existing = dir;
  while (!(await exists(existing)) && dirname(existing) !== existing) existing = dirname(existing);
  try {
    await access(existing, constants.W_OK | constants.X_OK);
    if (existing === dir) {
      const probe = join(dir, `.doctor-${process.pid}`);
      await writeFile(probe, '');
      await rm(probe);
    }
    const { bavail, bsize } = await statfs(existing);
    const free = Number(bavail) * Number(bsize);
    const ok = free >= FREE_BYTES_MIN;
    return { name, ok, detail: `${dir}, ${bytes(free)} free${ok ? '' : ': too little, make room'}` };
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    return { name, ok: false, detail: `${dir} cannot be written (${code ?? message}): choose another with --data` };
  }
}

async function checkPort(port: number): Promise<Check> {
  const name = 'port';
  const code = await new Promise<string | undefined>((done) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => done(error.code ?? error.message));
    probe.listen(port, DEFAULT_HOST, () => probe.close(() => done(undefined)));
  });
  if (code === undefined) return { name, ok: true, detail: `${port} is free` };
  if (code === 'EADDRINUSE' && (await isAntrail(port))) {
    return { name, ok: true, detail: `${port} is served by an antrail that runs` };
  }
  return { name, ok: false, detail: `${port} cannot be used (${code}): choose another with --port` };
}

async function isAntrail(port: number): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(2_000);
    const response = await connectServer({ url: `http://${DEFAULT_HOST}:${port}` }).request('GET', '/v1/limits', {
      signal,
    });
    return Array.isArray(((await response.json()) as { limits?: unknown }).limits);
  } catch {
    return false;
  }
}

async function checkPackage(name: string, use: () => Promise<void>): Promise<Check> {
  try {
    await use();
    return { name, ok: true, detail: 'loads and works' };
  } catch (thrown) {
    const message = thrown instanceof Error ? (thrown.message.split('\n')[0] ?? '') : String(thrown);
    return { name, ok: false, detail: `does not work: ${message}; install antrail again for this machine` };
  }
}

async function openScratchDatabase(): Promise<void> {
  const { open } = await import('lmdb');
  const dir = await mkdtemp(join(tmpdir(), 'antrail-doctor-'));
  try {
    const database = open({ path: join(dir, 'probe') });
    await database.put('key', 'value');
    const read: unknown = database.get('key');
    await database.close();
    if (read !== 'value') throw new Error('a written value was not read back');
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
