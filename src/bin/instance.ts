// Entry of an instance: a thread of the app host that loads the bundle once and then runs invocations.

import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { assert, toErrorData } from '../base/index.ts';
import {
  captureConsole,
  type HostToInstance,
  type InstanceBoot,
  type InstanceToHost,
  NO_LOCATIONS,
  runInstance,
} from '../executor/guest/index.ts';
import { connectChannel, threadClock } from '../platform/node/index.ts';

assert(!isMainThread && parentPort !== null, 'an instance is a thread of an app host');
const port = parentPort;
const boot = workerData as InstanceBoot;
const post = (message: InstanceToHost): void => port.postMessage(message);
Object.assign(globalThis, { [NO_LOCATIONS]: true });

runInstance(boot, {
  monotonicMs: threadClock(boot.clockOriginMs),
  epochMs: () => Date.now(),
  post,
  afterTurn: (callback) => void setImmediate(callback),
  later: (delayMs, callback) => void setTimeout(callback, delayMs).unref(),
  load: (main) => import(main),
  connect: connectChannel,
  onLoaded: captureConsole,
  onMessage: (receive) => void port.on('message', (message: HostToInstance) => receive(message)),
}).catch((thrown: unknown) => {
  post({ type: 'load-failed', error: toErrorData(thrown, 'E_APP_INVALID') });
  port.close();
});
