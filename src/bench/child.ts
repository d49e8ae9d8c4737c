// Programs that a suite starts, and ends.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { PlatformError } from '../base/index.ts';
import type { Closers } from './closers.ts';

/** A program that was told to end has this long before it is killed. */
const END_MS = 5_000;
/** Characters of a child's complaints that are shown when it fails. */
const COMPLAINT_CHARS_MAX = 4_000;

/**
 * Starts a JavaScript file of this package as a process of its own.
 * @returns its first line on stdout.
 * @throws E_INTERNAL: it ended before.
 */
export async function startProgram(file: URL, args: readonly string[], closers: Closers): Promise<string> {
  const child = spawn(process.execPath, [fileURLToPath(file), ...args], { stdio: ['pipe', 'pipe', 'pipe'] });
  // Nothing that this process starts outlives it.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  closers.add(async () => {
    await end(child);
    process.off('exit', kill);
  });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => {
    complaint = (complaint + chunk.toString()).slice(-COMPLAINT_CHARS_MAX);
  });
  const firstLine = once(createInterface({ input: child.stdout }), 'line').then(([line]) => line as string);
  const gone = once(child, 'close').then(([exitCode, signal]) => {
    throw new PlatformError('E_INTERNAL', `${file.pathname} ended (${signal ?? exitCode}): ${complaint}`);
  });
  gone.catch(() => undefined);
  return Promise.race([firstLine, gone]);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  child.stdin?.end();
  child.kill('SIGTERM');
  const late = setTimeout(() => child.kill('SIGKILL'), END_MS);
  await closed;
  clearTimeout(late);
}
