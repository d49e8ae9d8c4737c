// The process around a command: its streams, environment and signals. Commands see only this.

import { constants } from 'node:os';

export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard output is a terminal: people read it. */
  readonly isTerminal: boolean;
  readonly color: boolean;
  readonly columns: number;
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP; its reason is an Interrupted. */
  readonly interrupted: AbortSignal;
  /** Resolves when the reader can take more. @throws OutputClosed when it is gone (`| head`). */
  out(content: string | Uint8Array): Promise<void>;
  err(text: string): Promise<void>;
  /** All of standard input. */
  input(): Promise<Uint8Array>;
}

/** The reader of standard output went away: nothing to report, nothing more to do. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed';
}

export class Interrupted extends Error {
  override readonly name = 'Interrupted';
  readonly exitCode: number;

  constructor(signal: NodeJS.Signals) {
    super(signal);
    this.exitCode = 128 + constants.signals[signal];
  }
}

/** The real one. The second signal of a kind to stop ends the process at once. */
export function processTerminal(): Terminal {
  const { stdout, stderr, stdin, env } = process;
  // A failed write is told to its caller; without a listener it would also end the process.
  stdout.on('error', () => undefined);
  stderr.on('error', () => undefined);
  return {
    env,
    isTerminal: stdout.isTTY === true,
    color: stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb',
    columns: stdout.columns ?? 120,
    interrupted: signalOfInterrupts(),
    out: (content) => write(stdout, content),
    // Messages are worth a try, not a failure of their own.
    err: (text) => write(stderr, text).catch(() => undefined),
    async input() {
      const chunks: Buffer[] = [];
      for await (const chunk of stdin) chunks.push(chunk as Buffer);
      return Buffer.concat(chunks);
    },
  };
}

function write(stream: NodeJS.WriteStream, content: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(content, (error) => {
      if (error === null || error === undefined) resolve();
      else reject(new OutputClosed(error.message, { cause: error }));
    });
  });
}

function signalOfInterrupts(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const interrupted = new Interrupted(signal);
      if (controller.signal.aborted) process.exit(interrupted.exitCode);
      controller.abort(interrupted);
    });
  }
  return controller.signal;
}
