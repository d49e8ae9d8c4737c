// The process of an app host: its connection to the server, and its end.
//
// Owns: saying hello, what happens when the connection ends.
// Does not own: what is said over it (Host), sockets, threads and signals (ports: bin/app-host, or simulated ones).

import type { Connect } from '../../platform/index.ts';
import {
  HOST_PROTOCOL_VERSION,
  type HostBoot,
  type HostToServer,
  type Manifest,
  type ServerToHost,
} from '../../protocol/index.ts';
import { Host } from './host.ts';
import { FRAME_BYTES_MAX } from './limits.ts';
import type { HostPorts } from './ports.ts';

export interface HostProcessPorts extends Omit<HostPorts, 'send' | 'exit'> {
  readonly pid: number;
  readonly connect: Connect;
  /** Ends the process; nobody waits for threads that cannot be stopped. */
  readonly kill: () => void;
  /** Ends the process when its threads have. */
  readonly exit: (exitCode: number) => void;
}

/** Connects, says hello and begins; resolves then. @throws when the server is not there. */
export async function runHost(boot: HostBoot, manifest: Manifest, ports: HostProcessPorts): Promise<Host> {
  let host: Host | undefined;
  let exitCode: number | undefined;
  const channel = await ports.connect(boot.socket, {
    blobBytesMax: FRAME_BYTES_MAX,
    allocate: (header, index, size) => host?.allocateBlob(header, index, size) ?? new Uint8Array(size),
  });
  const send = (message: HostToServer, blobs?: readonly Uint8Array[], onWritten?: () => void): void =>
    channel.send(message, blobs, onWritten);
  host = new Host(boot, manifest, {
    ...ports,
    send,
    exit: (code) => {
      // What was sent is on its way; the connection's end ends the process.
      exitCode = code;
      channel.close();
    },
  });
  channel.onMessage((header, blobs) => host.receive(header as ServerToHost, blobs));
  // Without its server a host has nothing to do and nobody to report to.
  channel.onClose(() => (exitCode === undefined ? ports.kill() : ports.exit(exitCode)));
  send({ type: 'hello', protocol: HOST_PROTOCOL_VERSION, token: boot.token, pid: ports.pid });
  host.start();
  return host;
}
