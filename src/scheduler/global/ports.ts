// What the coordinator asks of its surroundings.

import type { Clock, Digest, Random, Timers } from '../../platform/index.ts';
import type { HostReply, HostRequest, Manifest, ServerToHost } from '../../protocol/index.ts';
import type { AdmissionOptions } from './admission.ts';
import type { RecordStore } from './record-store.ts';

export interface CurrentApp {
  readonly version: string;
  /** With the triggers that were added and removed at run time. */
  readonly manifest: Manifest;
}

export interface AppDirectory {
  /** Undefined when there is no such app. */
  current(app: string): CurrentApp | undefined;
  hasVersion(app: string, version: string): boolean;
  names(): Iterable<string>;
}

/** A connection to a ready app host. */
export interface HostLink {
  /** Connections of its instances. */
  readonly lanes: {
    /** False: none is free. `giveToHost` is called when the connection ends before `done`. */
    give(
      functionName: string,
      message: ServerToHost & { type: 'session-start' },
      blobs: readonly Uint8Array[],
      giveToHost: () => void,
    ): boolean;
    learn(session: string, ms: number): void;
    done(session: string): void;
  };
  send(message: ServerToHost, blobs?: readonly Uint8Array[]): void;
  /** Rejects with the host's error, and with E_NODE_LOST when the host dies first. */
  request(
    message: HostRequest,
    blobs?: readonly Uint8Array[],
  ): Promise<{ reply: HostReply; blobs: readonly Uint8Array[] }>;
}

export interface HostDirectory {
  /** Sessions wait for it: `hostReady` or `hostLost` will follow. Idempotent, cheap, never calls back at once. */
  need(app: string, version: string): void;
  /** Nothing uses this version any more, and it is not the current one. */
  unused(app: string, version: string): void;
}

export interface CoordinatorPorts {
  /** Default: QUEUE_MAX, and every app of weight 1. */
  readonly admission?: AdmissionOptions;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Random;
  readonly digest: Digest;
  readonly records: RecordStore;
  readonly apps: AppDirectory;
  readonly hosts: HostDirectory;
  /** Something went wrong that no caller will be told. */
  readonly report: (what: string, error: unknown) => void;
}
