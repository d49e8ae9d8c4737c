// A real server, as a process of its own with a data folder of its own, and one app deployed to it.

import { mkdtemp, rm } from 'node:fs/promises';
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
  readonly app: string;
  readonly #connection: HttpConnection;

  private constructor(address: Address, app: string, connection: HttpConnection) {
    this.address = address;
    this.app = app;
    this.#connection = connection;
  }

  static async start(appFile: URL, closers: Closers): Promise<BenchServer> {
    const dataDir = await mkdtemp(join(tmpdir(), 'antrail-bench-'));
    closers.add(() => rm(dataDir, { recursive: true, force: true }));
    const line = await startProgram(PROGRAM, ['serve', '--port', '0', '--data', dataDir], closers);
    const url = line.slice(line.indexOf('http://'));
    const { bundle, appName } = await bundleApp(fileURLToPath(appFile));
    await connectServer({ url }).deploy(appName, bundle);
    const { hostname: host, port } = new URL(url);
    const address = { host, port: Number(port) };
    const connection = await HttpConnection.open(address);
    closers.add(async () => connection.close());
    return new BenchServer(address, appName, connection);
  }

  pathOf(functionName: string): string {
    return `/v1/apps/${this.app}/functions/${functionName}`;
  }

  /** Invokes and waits, one at a time. @throws when the answer is not 200. */
  async invoke<R>(functionName: string, input: unknown): Promise<Answer<R>> {
    const request = requestBytes(
      this.address,
      `${this.pathOf(functionName)}?timeoutMs=${INVOKE_MS_MAX}`,
      JSON.stringify(input),
    );
    const sentUs = nowUs();
    const body = await this.#connection.request(request);
    const answeredUs = nowUs();
    return { value: JSON.parse(body.toString('utf8')) as R, sentUs, answeredUs };
  }
}
