// Goal: a thread that cannot be stopped is told of, one that can be is not. Method: real threads; what blocks is a
// connection that the test ends itself.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { after, test } from 'node:test';
import { startThread } from './thread.ts';

// A thread on its way out holds no event loop.
const held = setInterval(() => {}, 60_000);
after(() => clearInterval(held));

const thread = (source: string, data: unknown, stuckMs: number) => {
  const events: string[] = [];
  let wake: () => void = () => {};
  const note = (event: string) => {
    events.push(event);
    wake();
  };
  const { terminate } = startThread({
    file: new URL(`data:text/javascript,${encodeURIComponent(source)}`),
    data,
    memoryMb: 64,
    env: { ...process.env } as Record<string, string>,
    onMessage: () => note('running'),
    onLine: () => {},
    onExit: () => note('exit'),
    onStuck: () => note('stuck'),
    stuckMs,
  });
  return {
    events,
    terminate,
    until: async (event: string) => {
      while (!events.includes(event)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
};

test('a thread that a system call holds is told of, once, and ends when the call does', {
  timeout: 60_000,
}, async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  // The call waits for a program that waits for the end of a connection of ours.
  const blocked = thread(
    `import { execFileSync } from 'node:child_process';
     import { workerData } from 'node:worker_threads';
     execFileSync(process.execPath, ['-e', 'net.connect(' + workerData + ', "127.0.0.1").resume()']);`,
    (server.address() as AddressInfo).port,
    100,
  );
  const [connection] = (await once(server, 'connection')) as [Socket];
  blocked.terminate();
  blocked.terminate();
  await blocked.until('stuck');
  connection.end();
  await blocked.until('exit');
  assert.deepEqual(blocked.events, ['stuck', 'exit']);
});

test('a thread that spins is stopped, and nothing is told', { timeout: 60_000 }, async () => {
  const spinning = thread(
    "import { parentPort } from 'node:worker_threads'; parentPort.postMessage(0); for (;;);",
    undefined,
    50_000,
  );
  await spinning.until('running');
  spinning.terminate();
  await spinning.until('exit');
  spinning.terminate();
  assert.deepEqual(spinning.events, ['running', 'exit']);
});
