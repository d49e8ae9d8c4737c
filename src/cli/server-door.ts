// The one way from commands to the server's composition: loaded only by the commands that run one.

import { PlatformError } from '../base/index.ts';

export interface ServerOptions {
  readonly dataDir: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly configFile?: string;
  readonly workerNodes?: number;
}

export interface RunningServer {
  /** `http://HOST:PORT` as others reach it. */
  readonly url: string;
  readonly port: number;
  /** Waits for what runs; idempotent. */
  close(): Promise<void>;
}

export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const module = await loadPart<{ startServer(options: ServerOptions): Promise<RunningServer> }>('node', 'server');
  return module.startServer(options);
}

/** A part of the package by its folder. @throws E_INTERNAL when this build lacks it. */
export async function loadPart<T>(folder: string, what: string): Promise<T> {
  try {
    const door = `../${folder}/index.js`;
    return (await import(door)) as T;
  } catch (thrown) {
    if ((thrown as { code?: unknown }).code !== 'ERR_MODULE_NOT_FOUND') throw thrown;
    throw new PlatformError('E_INTERNAL', `This build of antrail has no ${what}. Build it again, or install it anew.`, {
      cause: thrown,
    });
  }
}
