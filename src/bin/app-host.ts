// Entry of an app host: one process per app version, started by the server (supervisor/).

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { MonotonicMs } from '../base/index.ts';
import { runHost } from '../executor/host/index.ts';
import {
  connectChannel,
  nodeClock,
  nodeRandom,
  nodeTimers,
  openScratchFile,
  startThread,
  threadClockOrigin,
} from '../platform/node/index.ts';
import type { HostBoot, Manifest } from '../protocol/index.ts';

const text = process.env.ANTRAIL_HOST;
if (text === undefined) {
  process.stderr.write('this is the inside of antrail: start a server with `antrail serve`\n');
  process.exit(2);
}
delete process.env.ANTRAIL_HOST;
const given = JSON.parse(text) as HostBoot;
const boot: HostBoot = { ...given, main: pathToFileURL(join(given.folder, given.main)).href };
const manifest = JSON.parse(readFileSync(join(boot.folder, 'manifest.json'), 'utf8')) as Manifest;

const { spillFolder } = boot;

/** `process.exit` waits for all threads, also for one that cannot be stopped. */
const killSelf = (): void => void process.kill(process.pid, 'SIGKILL');

await runHost(boot, manifest, {
  pid: process.pid,
  connect: connectChannel,
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
  ...(spillFolder === undefined
    ? {}
    : { openSpillFile: () => openScratchFile(spillFolder, `${boot.app}-${boot.version}`) }),
  kill: killSelf,
  exit: (exitCode) => process.exit(exitCode),
});
