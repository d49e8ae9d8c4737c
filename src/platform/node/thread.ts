// Threads of the app host: one instance each.

import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';

export interface ThreadOptions {
  readonly file: URL;
  readonly data: unknown;
  /** Heap limit. */
  readonly memoryMb: number;
  /** All that `process.env` has in it. */
  readonly env: Readonly<Record<string, string>>;
  readonly onMessage: (message: unknown) => void;
  readonly onLine: (stream: 'stdout' | 'stderr', line: string) => void;
  /** Once. `error`: what was thrown and caught by nobody, or the limit that was reached. */
  readonly onExit: (exitCode: number, error: Error | undefined) => void;
  /** Once, when it still runs `stuckMs` after it was told to stop; `onExit` may follow. */
  readonly onStuck?: () => void;
  /** Default THREAD_STUCK_MS. */
  readonly stuckMs?: number;
}

export interface Thread {
  post(message: unknown): void;
  /**
   * Stops it wherever its JavaScript is. Some code cannot be stopped: a system call that blocks, and loops that V8 has
   * compiled without a check for interrupts (seen with Node 24).
   */
  terminate(): void;
}

/** Longer than what an author may want to wait for in one blocking call; until then only its own place is lost. */
const THREAD_STUCK_MS = 20_000;

/** Characters of one output line; the rest is cut. */
const LINE_CHARS_MAX = 16_384;

export function startThread(options: ThreadOptions): Thread {
  const worker = new Worker(options.file, {
    workerData: options.data,
    env: { ...options.env },
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: options.memoryMb },
  });
  let error: Error | undefined;
  worker.on('message', options.onMessage);
  worker.on('error', (thrown: unknown) => {
    error = thrown instanceof Error ? thrown : new Error(String(thrown));
  });
  let stuck: NodeJS.Timeout | undefined;
  let hasEnded = false;
  let isStopping = false;
  worker.on('exit', (exitCode) => {
    hasEnded = true;
    clearTimeout(stuck);
    options.onExit(exitCode, error);
  });
  for (const stream of ['stdout', 'stderr'] as const) {
    createInterface({ input: worker[stream] }).on('line', (line) =>
      options.onLine(stream, line.slice(0, LINE_CHARS_MAX)),
    );
  }
  return {
    post: (message) => worker.postMessage(message),
    terminate: () => {
      // Whoever watches deadlines says it again and again.
      if (hasEnded || isStopping) return;
      isStopping = true;
      void worker.terminate();
      if (options.onStuck !== undefined) {
        stuck = setTimeout(options.onStuck, options.stuckMs ?? THREAD_STUCK_MS).unref();
      }
    },
  };
}
