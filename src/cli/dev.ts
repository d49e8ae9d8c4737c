// `antrail dev`: a server for the apps of one author, each deployed again when one of its files is saved.

import { dirname, join, resolve } from 'node:path';
import { connectServer, PlatformError, type ServerClient } from '../client/index.ts';
import type { AppBundle, Manifest } from '../protocol/index.ts';
import type { CommandSpec, Run } from './command.ts';
import { checkedAppFile } from './deploy.ts';
import { type WatchResult, watchApp } from './deploy-door.ts';
import { logLine } from './look-logs.ts';
import { errorText } from './print-error.ts';
import { DEFAULT_HOST, DEFAULT_PORT, interruption, say } from './serve.ts';
import { startServer } from './server-door.ts';
import { duration, shortVersion } from './text.ts';
import { parsePort } from './usage.ts';

export const DEV: CommandSpec = {
  usage: 'dev <files...>',
  does: 'run a server with these apps, deployed again on every save',
  more: 'A save that does not build is reported, and the version before it goes on serving.',
  options: [
    { flags: '--port <n>', does: `0 takes a free one (default: ${DEFAULT_PORT})`, parse: parsePort },
    { flags: '--data <dir>', does: 'where it keeps everything (default: .antrail beside the first app)' },
  ],
  examples: [
    ['antrail dev app.ts', 'one app on port 7070'],
    ['antrail dev orders/app.ts mail/app.ts --port 0', 'two apps on a free port'],
  ],
  run: dev,
};

async function dev(run: Run, [files]: readonly string[][]): Promise<undefined> {
  const { terminal, options, paint } = run;
  const entryFiles = (files ?? []).map(checkedAppFile);
  const server = await startServer({
    dataDir: options.data === undefined ? join(dirname(entryFiles[0] ?? '.'), '.antrail') : resolve(options.data),
    host: DEFAULT_HOST,
    port: options.port ?? DEFAULT_PORT,
  });
  const stopped = new AbortController();
  const deployers: AppDeployer[] = [];
  let logs: Promise<void> = Promise.resolve();
  try {
    await say(terminal, `antrail listening on ${server.url}\n`);
    await say(terminal, `console ${paint('cyan', `${server.url}/`)}\n`);
    const client = connectServer({ url: server.url });
    logs = streamLogs(run, client, stopped.signal);
    for (const file of entryFiles) {
      const deployer = new AppDeployer(run, client, file);
      deployers.push(deployer);
      await deployer.start();
    }
    await interruption(terminal);
  } finally {
    stopped.abort();
    await Promise.all([logs, ...deployers.map((deployer) => deployer.close())]);
    await server.close();
  }
  return undefined;
}

/** Deploys the results of one file's builds, one after the other and only the newest of those that wait. */
class AppDeployer {
  readonly #run: Run;
  readonly #client: ServerClient;
  readonly #file: string;
  #watch: { close(): Promise<void> } | undefined;
  #next: WatchResult | undefined;
  #work: Promise<void> | undefined;
  #version: string | undefined;

  constructor(run: Run, client: ServerClient, file: string) {
    this.#run = run;
    this.#client = client;
    this.#file = file;
  }

  /** Begins to watch; the first build is its first result. */
  async start(): Promise<void> {
    this.#watch = await watchApp(this.#file, (result) => this.#take(result));
  }

  async close(): Promise<void> {
    await this.#watch?.close();
    await this.#work;
  }

  #take(result: WatchResult): void {
    this.#next = result;
    this.#work ??= this.#workOff().finally(() => {
      this.#work = undefined;
    });
  }

  async #workOff(): Promise<void> {
    for (let result = this.#next; result !== undefined; result = this.#next) {
      this.#next = undefined;
      try {
        if (!result.ok) throw result.error;
        await this.#deploy(result.appName, result.bundle);
      } catch (thrown) {
        await this.#report(thrown);
      }
    }
  }

  async #deploy(app: string, bundle: AppBundle): Promise<void> {
    const { terminal, paint } = this.#run;
    const beginMs = performance.now();
    const { version } = await this.#client.deploy(app, bundle);
    const tookMs = performance.now() - beginMs;
    const before = this.#version;
    this.#version = version;
    if (before === undefined) {
      await say(terminal, this.#howToCall(app, version, bundle.manifest));
    } else if (before !== version) {
      await say(terminal, `redeployed ${paint('bold', app)} ${shortVersion(version)} in ${duration(tookMs)}\n`);
    }
  }

  async #report(thrown: unknown): Promise<void> {
    const { terminal, paint } = this.#run;
    // What the author did wrong is told without the stack of this process.
    const error = thrown instanceof Error && !(thrown instanceof PlatformError) ? thrown.message : thrown;
    await terminal.err(errorText(error, paint));
    const serving = this.#version;
    await terminal.err(
      serving === undefined
        ? `${this.#file} is not deployed; save it again when it is mended\n`
        : `still serving ${shortVersion(serving)}\n`,
    );
  }

  #howToCall(app: string, version: string, { entry, functions }: Manifest): string {
    const { paint } = this.#run;
    const url = `${this.#client.url}/v1/apps/${app}/functions/${entry}`;
    return (
      `\n${paint('bold', app)} ${shortVersion(version)}: ${Object.keys(functions).join(', ')}\n` +
      `  curl -X POST ${url} -H 'content-type: application/json' -d '{}'\n\n`
    );
  }
}

/** Until `signal`; a broken stream is said, not fatal. */
async function streamLogs(run: Run, client: ServerClient, signal: AbortSignal): Promise<void> {
  const { terminal, paint } = run;
  try {
    for await (const entry of client.logs({ follow: true, tail: 0 }, signal))
      await say(terminal, logLine(entry, paint));
  } catch (thrown) {
    if (!signal.aborted && !terminal.interrupted.aborted) {
      await terminal.err(`log lines end here: ${errorText(thrown, paint)}`);
    }
  }
}
