// `antrail dev`: a server for the apps of one author, each deployed again when one of its files is saved.

import { stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { connectServer, PlatformError, type ServerClient } from '../client/index.ts';
import type { AppChange, AppWatch, BundledApp } from '../deploy/index.ts';
import type { Manifest } from '../protocol/index.ts';
import type { CommandSpec, Run } from './command.ts';
import { checkedAppFile } from './deploy.ts';
import { logLine } from './look-logs.ts';
import { errorText, problemText } from './print-error.ts';
import { DEFAULT_HOST, DEFAULT_PORT, interruption, say } from './serve.ts';
import { duration, shortVersion } from './text.ts';
import { parsePort } from './usage.ts';

/** A file that seems older was moved here rather than saved: then only the deploying is timed. */
const SAVE_AGE_MS_MAX = 10_000;

/** Where commands look without --server. */
const DEFAULT_SERVER_URL = `http://${DEFAULT_HOST}:${DEFAULT_PORT}`;

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
  const dataDir = options.data === undefined ? join(dirname(entryFiles[0] ?? '.'), '.antrail') : resolve(options.data);
  const server = await run.startServer({
    dataDir,
    host: DEFAULT_HOST,
    port: options.port ?? DEFAULT_PORT,
  });
  const stopped = new AbortController();
  const deployers: AppDeployer[] = [];
  let logs: Promise<void> = Promise.resolve();
  try {
    if (options.data === undefined) await keepFromVersionControl(dataDir);
    await say(terminal, `antrail listening on ${server.url}\n`);
    await say(terminal, `console ${paint('cyan', `${server.url}/`)}\n`);
    const client = connectServer({ url: server.url });
    logs = streamLogs(run, client, stopped.signal);
    for (const file of entryFiles) {
      const deployer = new AppDeployer(run, client, file);
      deployers.push(deployer);
      await deployer.start();
    }
    await say(terminal, `${paint('dim', 'each save is deployed; Ctrl-C ends the server')}\n`);
    await interruption(terminal);
  } finally {
    stopped.abort();
    await Promise.all([logs, ...deployers.map((deployer) => deployer.close())]);
    await server.close();
  }
  return undefined;
}

/** Deploys each build of one file. */
class AppDeployer {
  readonly #run: Run;
  readonly #client: ServerClient;
  readonly #file: string;
  #watch: AppWatch | undefined;
  #version: string | undefined;
  #appName: string | undefined;

  constructor(run: Run, client: ServerClient, file: string) {
    this.#run = run;
    this.#client = client;
    this.#file = file;
  }

  /** Resolves when the first build was deployed, or reported. */
  async start(): Promise<void> {
    const { watchApp } = await import('../deploy/index.ts');
    this.#watch = await watchApp(this.#file, (change) => this.#take(change));
  }

  async close(): Promise<void> {
    await this.#watch?.close();
  }

  async #take(change: AppChange): Promise<void> {
    if (this.#run.terminal.interrupted.aborted) return;
    try {
      if (!change.ok) throw change.error;
      await this.#deploy(change.app);
    } catch (thrown) {
      await this.#report(thrown);
    }
  }

  async #deploy({ appName, bundle, warnings, inputs }: BundledApp): Promise<void> {
    const { terminal, paint } = this.#run;
    for (const warning of warnings) await terminal.err(`${paint('yellow', 'warning')} ${problemText(warning)}\n`);
    const beginMs = Date.now();
    const { version } = await this.#client.deploy(appName, bundle);
    const before = this.#version;
    this.#version = version;
    const renamedFrom = this.#appName === appName ? undefined : this.#appName;
    this.#appName = appName;
    if (renamedFrom !== undefined) await say(terminal, `${renamedFrom} stays deployed as it was\n`);
    if (before === undefined || renamedFrom !== undefined) {
      await say(terminal, this.#howToCall(appName, version, bundle.manifest));
    } else {
      const tookMs = Date.now() - (await savedMs(inputs, beginMs));
      await say(terminal, `redeployed ${paint('bold', appName)} ${shortVersion(version)} in ${duration(tookMs)}\n`);
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
    const { url: server } = this.#client;
    const url = `${server}/v1/apps/${app}/functions/${entry}`;
    const where = server === DEFAULT_SERVER_URL ? '' : ` --server ${server}`;
    return (
      `\n${paint('bold', app)} ${shortVersion(version)}: ${Object.keys(functions).join(', ')}\n` +
      `  antrail invoke ${app} '{}'${where}\n` +
      `  curl -X POST ${url} -H 'content-type: application/json' -d '{}'\n\n`
    );
  }
}

/** It lies beside the app's source. Best effort; what the author has put there stays. */
async function keepFromVersionControl(folder: string): Promise<void> {
  await writeFile(join(folder, '.gitignore'), '*\n', { flag: 'wx' }).catch(() => undefined);
}

/** When the newest of the files was saved; `otherwise` if that cannot be told. */
async function savedMs(files: readonly string[], otherwise: number): Promise<number> {
  const times = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ mtimeMs }) => mtimeMs,
        () => 0,
      ),
    ),
  );
  const newest = Math.max(0, ...times);
  return newest > otherwise - SAVE_AGE_MS_MAX && newest <= otherwise ? newest : otherwise;
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
