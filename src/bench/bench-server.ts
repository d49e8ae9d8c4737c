// A real server, as a process of its own with a data folder of its own, and one app deployed to it.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { connectServer } from '../client/index.ts';
import { bundleApp } from '../deploy/index.ts';
import { startProgram } from './child.ts';
import type { Closers } from './closers.ts';
import { type Address, HttpConnection, requestBytes } from './http-connection.ts';
import { nowUs } from './now.ts';

/** The command line of this build. */
const PROGRAM = pathToFileURL(join(dirname(dirname(fileURLToPath(import.meta.url))), 'bin', 'antrail.js'));

/** No session of a suite takes nearly as long: one that hangs must end the run with a reason. */
const INVOKE_MS_MAX = 60_000;

export interface Answer<R> {
  readonly value: R;
  readonly sentUs: number;
  readonly answeredUs: number;
}

export class BenchServer {
  readonly address: Address;
  readonly url: string;
  readonly app: string;
  readonly #connection: HttpConnection;

  private constructor(url: string, address: Address, app: string, connection: HttpConnection) {
    this.url = url;
    this.address = address;
    this.app = app;
    this.#connection = connection;
  }

  /**
   * @param options `copies` of the app, with a number behind its name from the second on; `config` of the server, as in the
   *   file behind `--config`.
   */
  static async start(
    appFile: URL,
    closers: Closers,
    { copies = 1, config = {} }: { readonly copies?: number; readonly config?: Readonly<Record<string, unknown>> } = {},
  ): Promise<BenchServer> {
    const dataDir = await mkdtemp(join(tmpdir(), 'antrail-bench-'));
    closers.add(() => rm(dataDir, { recursive: true, force: true }));
    const configFile = join(dataDir, 'config.json');
    await writeFile(configFile, JSON.stringify(config));
    const args = ['serve', '--port', '0', '--data', join(dataDir, 'data'), '--config', configFile];
    const line = await startProgram(PROGRAM, args, closers);
    const url = line.slice(line.indexOf('http://'));
    const { bundle, appName } = await bundleApp(fileURLToPath(appFile));
    const apps = Array.from({ length: copies }, (_, n) => (n === 0 ? appName : `${appName}-${n}`));
    for (const app of apps) await connectServer({ url }).deploy(app, bundle);
    const { hostname: host, port } = new URL(url);
    const address = { host, port: Number(port) };
    const connection = await HttpConnection.open(address);
    closers.add(async () => connection.close());
    return new BenchServer(url, address, appName, connection);
  }

  pathOf(functionName: string, app = this.app): string {
    return `/v1/apps/${app}/functions/${functionName}`;
  }

  /** Invokes and waits, one at a time. @throws when the answer is not 200. */
  async invoke<R>(functionName: string, input: unknown, app = this.app): Promise<Answer<R>> {
    const request = requestBytes(
      this.address,
      `${this.pathOf(functionName, app)}?timeoutMs=${INVOKE_MS_MAX}`,
      JSON.stringify(input),
    );
    const sentUs = nowUs();
    const body = await this.#connection.request(request);
    const answeredUs = nowUs();
    return { value: JSON.parse(body.toString('utf8')) as R, sentUs, answeredUs };
  }
}
