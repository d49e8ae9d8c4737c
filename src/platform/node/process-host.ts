import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import type { ProcessExit, ProcessHost, SpawnedProcess, SpawnOptions } from '../ports.ts';

/** A line that never ends must not fill the memory. */
const LINE_CHARS_MAX = 16 * 1024;

export const nodeProcessHost: ProcessHost = {
  spawn(options: SpawnOptions): SpawnedProcess {
    const child = spawn(options.file, [...options.args], {
      cwd: options.cwd,
      env: { ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // Before it has threads: those that it starts later are as nice as the one that starts them.
    if (options.niceness !== undefined && options.niceness > 0 && child.pid !== undefined) {
      try {
        setPriority(child.pid, options.niceness);
      } catch {
        // It has ended already, or this system has no such thing.
      }
    }
    let told = false;
    const tell = (exit: ProcessExit) => {
      if (told) return;
      told = true;
      options.onExit(exit);
    };
    // Without file descriptors for them there are none, whatever the types say.
    const { stdout, stderr } = child as { stdout?: Readable | null; stderr?: Readable | null };
    if (stdout) readLines(stdout, (line) => options.onLine('stdout', line));
    if (stderr) readLines(stderr, (line) => options.onLine('stderr', line));
    child.on('error', (error) => {
      if (child.pid !== undefined) return;
      // The system says of a missing folder that the program is missing.
      const noFolder = options.cwd !== undefined && !existsSync(options.cwd);
      const message = noFolder ? `its folder ${options.cwd} is missing` : error.message;
      tell({ exitCode: null, signal: null, error: message });
    });
    // `close` comes after the pipes ended; a grandchild that keeps them open must not hide the exit for ever.
    child.on('close', (exitCode, signal) => tell({ exitCode, signal }));
    child.on('exit', (exitCode, signal) => setTimeout(() => tell({ exitCode, signal }), 200).unref());
    return {
      pid: child.pid,
      kill: (signal) => {
        child.kill(signal);
      },
    };
  },
};

function readLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  stream.on('data', (chunk: Buffer) => {
    const parts = (rest + decoder.write(chunk)).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) onLine(line.slice(0, LINE_CHARS_MAX));
    if (rest.length > LINE_CHARS_MAX) {
      onLine(rest.slice(0, LINE_CHARS_MAX));
      rest = '';
    }
  });
  stream.on('end', () => {
    if (rest !== '') onLine(rest);
  });
  stream.on('error', () => {});
}
