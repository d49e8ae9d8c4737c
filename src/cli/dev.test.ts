// Goal: what `serve` and `dev` say and do from start to signal. Method: the commands in this process, the real bundler
// watching real files, and in place of the server an HTTP server that takes deployments.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connectServer } from '../client/index.ts';
import type { CommandSpec, Run } from './command.ts';
import { DEV } from './dev.ts';
import { SERVE } from './serve.ts';
import type { RunningServer, ServerOptions } from './server-door.ts';
import { Interrupted, type Terminal } from './terminal.ts';
import { paintFor } from './text.ts';

const sourceOf = (name: string, result: string) => `
import { app, fn } from 'antrail';
const f = fn(() => ${result});
export default app('${name}', { entry: 'f', functions: { f } });
`;

test('serve says where it listens first, and closes the server at a signal', async (t) => {
  const { said, stop, ended, server } = start(t, SERVE, [], { port: 0, data: 'somewhere', workerNodes: 2 });
  await said(/^antrail listening on http:\/\/127\.0\.0\.1:\d+\n$/);
  assert.equal(server.closed, 0);
  const { dataDir, ...options } = server.options as ServerOptions;
  assert.deepEqual(options, { host: '127.0.0.1', port: 0, workerNodes: 2 });
  await said(/this release has one worker node/);
  assert.match(dataDir, /^\/.*somewhere$/);
  stop();
  assert.equal(await ended, undefined);
  assert.equal(server.closed, 1);
});

test('dev deploys on start and on save, tells errors and keeps what serves, and closes at a signal', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'antrail-dev-'));
  t.after(() => rm(dir, { recursive: true }));
  const files = [join(dir, 'one.ts'), join(dir, 'two.ts')];
  const [one = '', two = ''] = files;
  await writeFile(one, sourceOf('one', '1'));
  await writeFile(two, 'const broken = ;');

  const { said, stop, ended, server } = start(t, DEV, [files], {});
  await said(/^antrail listening on (\S+)\nconsole \1\/\n/);
  assert.equal(server.options?.dataDir, join(dir, '.antrail'));
  await said(
    /\none v1: f\n {2}antrail invoke one '\{\}' --server http:\S+\n {2}curl -X POST http:\S+\/v1\/apps\/one\/functions\/f -H 'content-type: application\/json' -d '\{\}'\n/,
  );
  await said(/E_APP_INVALID two\.ts:1: .*\n\S+two\.ts is not deployed/);
  await said(/12:00:00\.000 info {2}one {2}from the app\n/);

  await writeFile(one, sourceOf('one', '2'));
  await said(/\nredeployed one v2 in \d+ ms\n/);
  await writeFile(one, sourceOf('one', '2 +'));
  await said(/E_APP_INVALID one\.ts:\d+: .*\nstill serving v2\n/);
  await writeFile(two, sourceOf('two', '1'));
  await said(/\ntwo v3: f\n/);
  await writeFile(two, sourceOf('second', '1'));
  await said(/\ntwo stays deployed as it was\n\nsecond v4: f\n/);
  server.refuses = true;
  await writeFile(one, sourceOf('one', '3'));
  await said(/E_QUOTA_EXCEEDED too many apps\nstill serving v2\n/);

  stop();
  assert.equal(await ended, undefined);
  assert.equal(server.closed, 1);
});

test('a server that cannot start fails the command with its error', async (t) => {
  const { ended } = start(t, SERVE, [], {}, new Error('the port is in use'));
  await assert.rejects(ended, /the port is in use/);
});

/** What the stand-in for the server was asked for. */
interface Stage {
  options: ServerOptions | undefined;
  closed: number;
  refuses: boolean;
}

function start(t: TestContext, command: CommandSpec, args: unknown[], options: Record<string, unknown>, fails?: Error) {
  const stage: Stage = { options: undefined, closed: 0, refuses: false };
  const interrupt = new AbortController();
  let text = '';
  let changed = () => {};
  const print = async (content: string | Uint8Array) => {
    text += String(content);
    changed();
  };
  const terminal: Terminal = {
    env: {},
    isTerminal: false,
    color: false,
    columns: 100,
    interrupted: interrupt.signal,
    out: print,
    err: print,
    input: async () => new Uint8Array(0),
  };
  const run: Run = {
    terminal,
    options,
    json: false,
    paint: paintFor(false),
    server: connectServer(),
    startServer: async (given) => {
      if (fails !== undefined) throw fails;
      stage.options = given;
      return standIn(t, stage);
    },
  };
  const ended = command.run(run, args);
  ended.catch(() => undefined);
  t.after(() => interrupt.abort(new Interrupted('SIGTERM')));
  return {
    ended,
    server: stage,
    stop: () => interrupt.abort(new Interrupted('SIGTERM')),
    /** Resolves when what was printed so far shows it; rejects when the command ended without. */
    said: async (pattern: RegExp): Promise<void> => {
      const end = ended.then(
        () => assert.fail(`ended without ${pattern}: ${text}`),
        (thrown) => assert.fail(`ended by ${thrown} without ${pattern}: ${text}`),
      );
      end.catch(() => undefined);
      while (!pattern.test(text)) {
        const more = new Promise<void>((resolve) => {
          changed = resolve;
        });
        await Promise.race([more, end]);
      }
    },
  };
}

/** Takes deployments as v1, v2, …, and has one line of log. */
async function standIn(t: TestContext, stage: Stage): Promise<RunningServer> {
  let deployments = 0;
  const http = createServer((request, response) => {
    request.resume();
    const { method = '', url = '' } = request;
    if (url.startsWith('/v1/logs')) return answerLogs(response);
    assert.equal(method, 'PUT');
    const problem = { code: 'E_QUOTA_EXCEEDED', detail: 'too many apps' };
    response.writeHead(stage.refuses ? 429 : 201, { 'content-type': 'application/json' });
    return response.end(
      JSON.stringify(stage.refuses ? problem : { app: url.split('/').at(-1), version: `v${++deployments}` }),
    );
  });
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done));
  const { port } = http.address() as AddressInfo;
  const close = async () => {
    stage.closed++;
    http.closeAllConnections();
    http.close();
  };
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  return { url: `http://127.0.0.1:${port}`, port, close };
}

function answerLogs(response: ServerResponse): unknown {
  const entry = { at: '2026-01-01T12:00:00.000Z', app: 'one', version: 'v1', level: 'info', message: 'from the app' };
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  return response.write(`${JSON.stringify(entry)}\n`);
}
