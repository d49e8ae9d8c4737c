// Entry of an app host: one process per app version, started by the server (supervisor/).

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MonotonicMs } from '../base/index.ts';
import { FRAME_BYTES_MAX, Host } from '../executor/host/index.ts';
import {
  connectChannel,
  nodeClock,
  nodeRandom,
  nodeTimers,
  startThread,
  threadClockOrigin,
} from '../platform/node/index.ts';
import {
  HOST_PROTOCOL_VERSION,
  type HostBoot,
  type HostToServer,
  type Manifest,
  type ServerToHost,
} from '../protocol/index.ts';

const text = process.env.ANTRAIL_HOST;
if (text === undefined) {
  process.stderr.write('this is the inside of antrail: start a server with `antrail serve`\n');
  process.exit(2);
}
delete process.env.ANTRAIL_HOST;
const given = JSON.parse(text) as HostBoot;
const boot: HostBoot = { ...given, main: pathToFileURL(join(given.folder, given.main)).href };
const manifest = JSON.parse(readFileSync(join(boot.folder, 'manifest.json'), 'utf8')) as Manifest;

/** `process.exit` waits for all threads, also for one that cannot be stopped. */
const killSelf = (): void => void process.kill(process.pid, 'SIGKILL');

let host: Host | undefined;
const channel = await connectChannel(boot.socket, {
  blobBytesMax: FRAME_BYTES_MAX,
  allocate: (header, index, size) => host?.allocateBlob(header, index, size) ?? new Uint8Array(size),
});
const send = (message: HostToServer, blobs?: readonly Uint8Array[], onWritten?: () => void): void =>
  channel.send(message, blobs, onWritten);

host = new Host(boot, manifest, {
  monotonicMs: nodeClock.monotonicMs,
  epochMs: nodeClock.epochMs,
  setTimer: (atMs, callback) => nodeTimers.set(atMs as MonotonicMs, callback),
  afterTurn: (callback) => void setImmediate(callback),
  seed: nodeRandom.uint32(),
  clockOriginMs: threadClockOrigin(),
  startThread: (options) =>
    startThread({
      ...options,
      file: new URL('./instance.js', import.meta.url),
      onStuck: () => {
        process.stderr.write('an instance does not stop: its host is killed, the sessions on it are executed again\n');
        killSelf();
      },
    }),
  send,
  exit: (exitCode) => {
    channel.close();
    process.exitCode = exitCode;
    // What was sent is on its way; the socket's end ends the process, and nothing else may hold it.
    channel.onClose(() => process.exit(exitCode));
  },
});
channel.onMessage((header, blobs) => host?.receive(header as ServerToHost, blobs));
// Without its server a host has nothing to do and nobody to report to.
channel.onClose(() => (process.exitCode === undefined ? killSelf() : process.exit(process.exitCode)));
send({ type: 'hello', protocol: HOST_PROTOCOL_VERSION, token: boot.token, pid: process.pid });
host.start();
