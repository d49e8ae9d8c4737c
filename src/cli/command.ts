// What a command is, as data: program.ts makes commander commands of it.

import type { ServerClient } from '../client/index.ts';
import type { RunningServer, ServerOptions } from './server-door.ts';
import type { Terminal } from './terminal.ts';
import type { Paint } from './text.ts';

export interface CommandOption {
  /** As commander takes it: `-f, --follow`, `--port <n>`. */
  readonly flags: string;
  readonly does: string;
  /** May throw a UsageError. For repeatable options `before` is what the earlier ones made. */
  readonly parse?: (text: string, before: any) => unknown;
}

export interface CommandSpec {
  /** With its arguments: `invoke <target> [input]`. */
  readonly usage: string;
  readonly does: string;
  /** Further help, below the options. */
  readonly more?: string;
  readonly options?: readonly CommandOption[];
  /** Has `--json`: prints the HTTP answer as it is. */
  readonly json?: true;
  /** `antrail …` and what it does. */
  readonly examples: readonly (readonly [line: string, does: string])[];
  /** @returns the exit code if it is not 0. */
  readonly run: (run: Run, args: readonly any[]) => Promise<number | undefined>;
}

/** One running command. */
export interface Run {
  readonly terminal: Terminal;
  readonly paint: Paint;
  /** Parsed options by their camel-case names. */
  readonly options: Readonly<Record<string, any>>;
  readonly json: boolean;
  /** Of `--server` and `--token`, else of the environment. */
  readonly server: ServerClient;
  /** Starts a server in this process. */
  readonly startServer: (options: ServerOptions) => Promise<RunningServer>;
}

/** GET, then the answer as it is or as `render` makes it readable. */
export async function look<T>(
  run: Run,
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  render: (answer: T) => string,
): Promise<undefined> {
  const response = await run.server.request('GET', path, { query, signal: run.terminal.interrupted });
  const text = await response.text();
  await run.terminal.out(run.json ? `${text}\n` : render(JSON.parse(text) as T));
  return undefined;
}
