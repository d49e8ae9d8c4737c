// Ports: everything that is not a decision. Real adapters in `node/`; the simulator brings its own.

import { assert, type EpochMs, type MonotonicMs } from '../base/index.ts';

export interface Clock {
  monotonicMs(): MonotonicMs;
  epochMs(): EpochMs;
}

export type CancelTimer = () => void;

export interface Timers {
  /** Calls back once, never before `atMs` and never within this call; any distance is allowed. */
  set(atMs: MonotonicMs, callback: () => void): CancelTimer;
}

export interface Random {
  /** 0 to 2^32 - 1. */
  uint32(): number;
  /** Fit for secrets. */
  bytes(count: number): Uint8Array;
}

/** A collision-free fingerprint of the parts in order; hex. */
export type Digest = (parts: readonly (string | Uint8Array)[]) => string;

export type KeyValueChange =
  | { readonly put: string; readonly value: Uint8Array }
  | { readonly delete: string; readonly value?: never };

export interface KeyValueRange {
  /** Inclusive. Keys are ordered by their UTF-8 bytes. */
  readonly from: string;
  /** Exclusive. */
  readonly to: string;
  readonly reverse?: boolean;
  readonly limit?: number;
}

/** Ordered, transactional, durable. Reads are synchronous and see every transaction whose promise has resolved. */
export interface KeyValueStore {
  /** The caller owns the bytes. */
  get(key: string): Uint8Array | undefined;
  /** Read while iterating; the iteration must not span an await. */
  range(range: KeyValueRange): Iterable<readonly [key: string, value: Uint8Array]>;
  /** All or nothing, in call order. Resolves when it is durable: on disk, not only committed. */
  transaction(changes: readonly KeyValueChange[]): Promise<void>;
  close(): Promise<void>;
}

/** All keys that begin with `prefix`, which ends in '/'. */
export function prefixRange(prefix: string): { from: string; to: string } {
  assert(prefix.endsWith('/'), 'a key prefix ends in a slash');
  return { from: prefix, to: `${prefix.slice(0, -1)}0` };
}

/** Files below one folder; paths are relative, with slashes. */
export interface DataFolder {
  readonly path: string;
  /** Creates the folders on the way; replaces atomically; resolves when durable. Only the owner can read it. */
  write(path: string, bytes: Uint8Array): Promise<void>;
  /** Undefined when there is no such file. */
  read(path: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | undefined>;
  /** A file or a whole folder; nothing there is no error. */
  remove(path: string): Promise<void>;
  /** Names in a folder; [] when there is none. */
  list(path: string): Promise<readonly string[]>;
  /** A symbolic link to an absolute path; replaces one that is there. */
  link(path: string, target: string): Promise<void>;
}

export interface SpawnOptions {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** 0 to 19: gives way to others when processors are short. Absent: 0. Where it cannot be set, it is not. */
  readonly niceness?: number;
  /** One line of the process's standard output or error, without its end; long ones are cut. */
  readonly onLine: (stream: 'stdout' | 'stderr', line: string) => void;
  /** Once, after the last line. Also when the process could not be started. */
  readonly onExit: (exit: ProcessExit) => void;
}

export interface ProcessExit {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** It could not be started. */
  readonly error?: string;
}

export interface SpawnedProcess {
  readonly pid: number | undefined;
  /** No error when it has ended. */
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export interface ProcessHost {
  spawn(options: SpawnOptions): SpawnedProcess;
}

/** Ordered frames between two processes. */
export interface Channel {
  /**
   * Never blocks; what is sent in one turn goes out in one write. Dropped when closed. Large blobs are not copied:
   * `onWritten` says when they may change (also when they were dropped).
   */
  send(header: unknown, blobs?: readonly Uint8Array[], onWritten?: () => void): void;
  /** At most one receiver, set before the turn ends in which the channel was handed over. */
  onMessage(receive: (header: unknown, blobs: readonly Uint8Array[]) => void): void;
  /** Once, whoever closed it. */
  onClose(callback: (error?: Error) => void): void;
  /** What was sent is still delivered if the peer lives. */
  close(): void;
  /** Sent and not yet taken by the operating system. */
  readonly bufferedBytes: number;
}

export interface ChannelOptions {
  /** Sum of the blobs of one frame. */
  readonly blobBytesMax: number;
  /** Memory for each blob that is received; default: ordinary memory. */
  readonly allocate?: (header: unknown, index: number, size: number) => Uint8Array;
}

/** @throws when nobody listens there. */
export type Connect = (address: string, options: ChannelOptions) => Promise<Channel>;

export interface ChannelListener {
  /** Where a peer connects. */
  readonly address: string;
  close(): Promise<void>;
}

/** A file of one process that nobody else opens and that is gone with it, however it ends. */
export interface ScratchFile {
  /** Rejects with the system's error (`ENOSPC`, `EFBIG`, `EIO`, …); the bytes at `at` are then anything. */
  write(bytes: Uint8Array, at: number): Promise<void>;
  /** Fills `into`; rejects when the file is shorter. */
  read(into: Uint8Array, at: number): Promise<void>;
  /** What is behind is given back to the disk. */
  cut(size: number): Promise<void>;
  close(): Promise<void>;
}
