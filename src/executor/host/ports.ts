// What the host needs of its process. The real ones come from platform/node (main.ts), simulated ones from testing/.

import type { ScratchFile } from '../../platform/index.ts';
import type { HostToServer, ServerToHost } from '../../protocol/index.ts';
import type { WordWaits } from '../shared/index.ts';

export interface HostThread {
  post(message: unknown): void;
  terminate(): void;
}

export interface HostThreadOptions {
  readonly data: unknown;
  readonly memoryMb: number;
  readonly env: Readonly<Record<string, string>>;
  readonly onMessage: (message: unknown) => void;
  readonly onLine: (stream: 'stdout' | 'stderr', line: string) => void;
  readonly onExit: (exitCode: number, error: Error | undefined) => void;
}

export interface HostPorts {
  readonly monotonicMs: () => number;
  readonly epochMs: () => number;
  /** Calls back once at or after `atMs`; returns how to take it back. */
  readonly setTimer: (atMs: number, callback: () => void) => () => void;
  /** Calls back after the sockets and timers had their turn. */
  readonly afterTurn: (callback: () => void) => void;
  readonly seed: number;
  readonly clockOriginMs: number;
  readonly startThread: (options: HostThreadOptions) => HostThread;
  /** Default: Atomics. */
  readonly waits?: WordWaits;
  /** `onWritten`: the blobs are no longer needed. */
  readonly send: (message: HostToServer, blobs?: readonly Uint8Array[], onWritten?: () => void) => void;
  /** A file for objects that memory has no room for; absent: they stay in memory. */
  readonly openSpillFile?: () => Promise<ScratchFile>;
  /** Ends this process. */
  readonly exit: (exitCode: number) => void;
}

export type { ServerToHost };
