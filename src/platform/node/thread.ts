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
}

export interface Thread {
  post(message: unknown): void;
  /** Stops it wherever it is. */
  terminate(): void;
}

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
  worker.on('exit', (exitCode) => options.onExit(exitCode, error));
  for (const stream of ['stdout', 'stderr'] as const) {
    createInterface({ input: worker[stream] }).on('line', (line) =>
      options.onLine(stream, line.slice(0, LINE_CHARS_MAX)),
    );
  }
  return {
    post: (message) => worker.postMessage(message),
    terminate: () => void worker.terminate(),
  };
}
