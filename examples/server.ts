// A server in this process with examples on it, for `npm run demo`, `npm start` and the tests.
// From a shell it is `antrail serve` and `antrail deploy examples/<name>/app.ts`.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectServer, type ServerClient } from 'antrail/client';
import { bundleApp } from '#src/deploy/index.js';
import { startServer } from '#src/node/index.js';

export const ROOT = resolve(fileURLToPath(new URL('../..', import.meta.url)));

export interface ExampleServer {
  readonly url: string;
  readonly client: ServerClient;
  /** @param file an app's source, relative to the repository. @returns the app's name. */
  deploy(file: string): Promise<string>;
  /** Waits for what runs; removes the data folder if it was a temporary one. Idempotent. */
  close(): Promise<void>;
}

/** @param options by default a free port, and a temporary data folder. */
export async function openServer(options: { port?: number; dataDir?: string } = {}): Promise<ExampleServer> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'antrail-examples-')));
  const removeData = async () => {
    if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true });
  };
  try {
    const server = await startServer({ dataDir, host: '127.0.0.1', port: options.port ?? 0 });
    const client = connectServer({ url: server.url });
    let closed: Promise<void> | undefined;
    return {
      url: server.url,
      client,
      deploy: async (file) => {
        const { appName, bundle } = await bundleApp(join(ROOT, file));
        await client.deploy(appName, bundle);
        return appName;
      },
      close: () => {
        closed ??= server.close().finally(removeData);
        return closed;
      },
    };
  } catch (error) {
    await removeData();
    throw error;
  }
}
