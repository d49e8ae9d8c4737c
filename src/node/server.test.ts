// Goal: a whole server keeps its promises over deaths of hosts and of itself.
// Method: real processes, sockets, folders and HTTP; the app host is test/fixtures/scripted-host.mjs, whose functions
// do what their names say.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { AppBundle, Manifest } from '../protocol/index.ts';
import { type RunningServer, startServer } from './server.ts';

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const HOST_MAIN = join(ROOT, 'test', 'fixtures', 'scripted-host.mjs');
const folders: string[] = [];
const servers = new Set<RunningServer>();
after(async () => {
  for (const server of servers) await server.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'antrail-server-'));
  folders.push(folder);
  return folder;
}

async function serve(dataDir = newFolder()): Promise<RunningServer> {
  const server = await startServer({ dataDir, host: '127.0.0.1', port: 0, log: () => {} }, { hostMain: HOST_MAIN });
  servers.add(server);
  return server;
}

async function stop(server: RunningServer): Promise<void> {
  servers.delete(server);
  await server.close();
}

const NAMES = [
  'echo',
  'fail',
  'die',
  'dieOnce',
  'hang',
  'deaf',
  'sleep',
  'outputs',
  'emit',
  'persist',
  'collect',
  'collectSlowly',
];
const MANIFEST: Manifest = {
  entry: 'echo',
  functions: Object.fromEntries(NAMES.map((name) => [name, { kind: 'fn' as const }])),
  buckets: {
    pairs: { on: { t: { kind: 'byBatchSize', size: 2, run: 'collect' } } },
    slow: { on: { t: { kind: 'byBatchSize', size: 2, run: 'collectSlowly' } } },
    timed: { on: { t: { kind: 'byTime', windowMs: 150, run: 'collect' } } },
    store: {},
  },
};

function bundle(main = 'export default 1', manifest = MANIFEST): AppBundle {
  return { manifest, main: 'main.mjs', files: { 'main.mjs': main } };
}

interface Answer {
  status: number;
  session: string;
  body: any;
}

async function ask(server: RunningServer, method: string, path: string, body?: unknown, headers = {}): Promise<Answer> {
  const init = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const answer = await fetch(server.url + path, { method, headers: { ...type, ...headers }, ...init });
  const text = await answer.text();
  const isJson = (answer.headers.get('content-type') ?? '').includes('json');
  return {
    status: answer.status,
    session: answer.headers.get('antrail-session') ?? '',
    body: isJson && text !== '' ? JSON.parse(text) : text,
  };
}

const call = (server: RunningServer, name: string, input: unknown, query = '', headers = {}) =>
  ask(server, 'POST', `/v1/apps/a/functions/${name}${query}`, input, headers);

/** Asks until it holds: for what has no event to wait for over HTTP. */
async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < 200; i++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  return assert.fail(`never came: ${what}`);
}

const hosts = async (server: RunningServer) =>
  (await ask(server, 'GET', '/v1/nodes')).body.nodes[0].hosts as { pid: number; version: string; state: string }[];

async function firedBy(server: RunningServer, session: string, state = 'completed') {
  return until(`a firing caused by ${session}`, async () => {
    const { body } = await ask(server, 'GET', '/v1/sessions?app=a&limit=100');
    return body.sessions.find((one: any) => one.causes.includes(session) && one.state === state);
  });
}

describe('deploying', () => {
  test('the same content is the same version; a bundle that cannot be loaded is refused and the old one serves on', async () => {
    const server = await serve();
    const first = await ask(server, 'PUT', '/v1/apps/a', bundle());
    assert.equal(first.status, 201);
    const again = await ask(server, 'PUT', '/v1/apps/a', bundle());
    assert.deepEqual([again.status, again.body], [200, first.body]);
    const thrown = await ask(server, 'PUT', '/v1/apps/a', bundle('throw-at-load'));
    assert.equal(thrown.status, 422);
    assert.equal(thrown.body.code, 'E_APP_INVALID');
    assert.match(thrown.body.detail, /thrown at load/);
    assert.match(thrown.body.stack, /app\.ts:3:7/);
    const exited = await ask(server, 'PUT', '/v1/apps/a', bundle('exit-at-load'));
    assert.equal(exited.status, 422);
    assert.match(exited.body.detail, /exit code 3.*about to exit/);
    const invalid = await ask(server, 'PUT', '/v1/apps/a', bundle('x', { ...MANIFEST, entry: 'eco' }));
    assert.equal(invalid.status, 422);
    assert.ok(invalid.body.problems.length > 0);
    assert.deepEqual((await call(server, 'echo', 1)).body, 1);
    const { body } = await ask(server, 'GET', '/v1/apps/a');
    assert.deepEqual(
      body.versions.map((one: any) => [one.version, one.current]),
      [[first.body.version, true]],
    );
    assert.equal((await hosts(server)).length, 1, 'refused ones have no process');
    await stop(server);
  });

  test('deploys of one app happen one after the other; running sessions keep their version', async () => {
    const server = await serve();
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    const sleeping = call(server, 'sleep', 400);
    const versions = await Promise.all(
      [1, 2, 3].map((n) => ask(server, 'PUT', '/v1/apps/a', bundle(`export default ${n + 1}`))),
    );
    assert.deepEqual(
      versions.map(({ status }) => status),
      [201, 201, 201],
    );
    const { body } = await ask(server, 'GET', '/v1/apps/a');
    assert.equal(body.version, versions[2]?.body.version);
    assert.equal((await sleeping).body.slept, 400);
    const left = await until('old hosts end', async () => {
      const all = (await hosts(server)).filter(({ state }) => state !== 'stopped');
      return all.length === 1 ? all : undefined;
    });
    assert.deepEqual(
      left.map(({ version }) => version),
      [body.version],
    );
    await stop(server);
  });

  test('an environment is declared, given, and part of the version', async () => {
    const server = await serve();
    const manifest = { ...MANIFEST, env: { MODE: 'plain', KEY: null } };
    const missing = await ask(server, 'PUT', '/v1/apps/a', bundle('1', manifest));
    assert.match(missing.body.detail, /'KEY' has no value/);
    const unknown = await ask(server, 'PUT', '/v1/apps/a', { ...bundle('1', manifest), env: { KEI: 'x' } });
    assert.match(unknown.body.detail, /Did you mean 'KEY'/);
    const one = await ask(server, 'PUT', '/v1/apps/a', { ...bundle('1', manifest), env: { KEY: 'x' } });
    const two = await ask(server, 'PUT', '/v1/apps/a', { ...bundle('1', manifest), env: { KEY: 'y' } });
    assert.deepEqual([one.status, two.status], [201, 201]);
    assert.notEqual(one.body.version, two.body.version);
    await stop(server);
  });

  test('triggers of run time work, survive a restart, and end with the next deploy; deleting an app removes its files', async () => {
    const dataDir = newFolder();
    const server = await serve(dataDir);
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    const path = '/v1/apps/a/buckets/store/triggers/late';
    assert.equal((await ask(server, 'PUT', path, { kind: 'byBatchSize', size: 1, run: 'collect' })).status, 201);
    assert.equal((await ask(server, 'PUT', path, { kind: 'byBatchSize', size: 2, run: 'collect' })).status, 200);
    assert.equal((await ask(server, 'PUT', path, { kind: 'byBatchSize', size: 0, run: 'collect' })).status, 422);
    assert.equal((await ask(server, 'DELETE', '/v1/apps/a/buckets/store/triggers/lat')).body.didYouMean, 'late');
    await stop(server);
    const next = await serve(dataDir);
    const { session } = await call(next, 'emit', { bucket: 'store', names: ['x', 'y'] });
    assert.deepEqual((await firedBy(next, session)).result, { names: ['x', 'y'], run: 1 });
    await ask(next, 'PUT', '/v1/apps/a', bundle('export default 2'));
    const { body } = await ask(next, 'GET', '/v1/apps/a');
    assert.deepEqual(body.manifest.buckets.store.on ?? {}, {});
    assert.equal((await ask(next, 'DELETE', '/v1/apps/a')).status, 200);
    assert.equal((await call(next, 'echo', 1)).body.code, 'E_APP_UNKNOWN');
    assert.equal((await ask(next, 'GET', `/v1/sessions/${session}`)).status, 404);
    assert.equal(existsSync(join(dataDir, 'apps', 'a')), false);
    await stop(next);
  });
});

describe('a host that dies', () => {
  test('is started again and its sessions are executed again; one that kills it each time fails', async () => {
    const server = await serve();
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    assert.deepEqual((await call(server, 'dieOnce', 1)).body, 2);
    const poisoned = await call(server, 'die', 1);
    assert.equal(poisoned.status, 503);
    assert.equal(poisoned.body.code, 'E_NODE_LOST');
    assert.equal(poisoned.body.lost, 4);
    assert.deepEqual((await call(server, 'echo', 'alive')).body, 'alive');
    await stop(server);
  });

  test('by kill -9 loses no session, and none is answered twice', async () => {
    const server = await serve();
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    const calls = Array.from({ length: 20 }, (_, i) => call(server, 'sleep', 150 + i));
    await until('all run', async () =>
      (await ask(server, 'GET', '/v1/sessions?state=running&limit=50')).body.sessions.length === 20 ? true : undefined,
    );
    const [host] = await hosts(server);
    assert.ok(host);
    process.kill(host.pid, 'SIGKILL');
    const answers = await Promise.all(calls);
    assert.deepEqual(
      answers.map(({ body }) => body),
      answers.map((_, i) => ({ slept: 150 + i, run: 2 })),
    );
    await stop(server);
  });

  test('repeats outputs, which count once', async () => {
    const server = await serve();
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    const { session, body } = await call(server, 'outputs', { count: 3, dieFirst: true });
    assert.equal(body, 0);
    const events = await (await fetch(`${server.url}/v1/sessions/${session}/outputs`)).text();
    assert.deepEqual(events.match(/^id: \d+$/gm), ['id: 1', 'id: 2', 'id: 3']);
    await stop(server);
  });
});

describe('bucket-scoped triggers', () => {
  test('fire once although the producer is executed again, and by a real timer', async () => {
    const server = await serve();
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    const { session } = await call(server, 'emit', { bucket: 'pairs', names: ['x', 'y'], dieFirst: true });
    const fired = await firedBy(server, session);
    assert.deepEqual(fired.result.names, ['x', 'y']);
    const timed = await call(server, 'emit', { bucket: 'timed', names: ['z'] });
    assert.deepEqual((await firedBy(server, timed.session)).result.names, ['z']);
    const { body } = await ask(server, 'GET', '/v1/sessions?app=a&limit=100');
    assert.equal(body.sessions.filter((one: any) => one.causes.includes(session)).length, 1);
    await stop(server);
  });
});

describe('deadlines and cancellation', () => {
  test('a deadline answers 504 in time, whatever the host does', async () => {
    const server = await serve();
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    const late = await call(server, 'deaf', 1, '?timeoutMs=100');
    assert.deepEqual([late.status, late.body.code], [504, 'E_TIMEOUT']);
    const running = call(server, 'hang', 1);
    const { session } = await until('it runs', async () =>
      (await ask(server, 'GET', '/v1/sessions?state=running&app=a')).body.sessions.find(
        (one: any) => one.function === 'hang',
      ),
    );
    assert.equal((await ask(server, 'DELETE', `/v1/sessions/${session}`)).status, 202);
    assert.equal((await running).body.code, 'E_CANCELLED');
    assert.equal((await ask(server, 'GET', `/v1/sessions/${session}`)).body.state, 'cancelled');
    await stop(server);
  });
});

describe('the data folder', () => {
  test('has one server at a time', async () => {
    const dataDir = newFolder();
    const server = await serve(dataDir);
    await assert.rejects(serve(dataDir), (error: { code?: string; message: string }) => {
      assert.equal(error.code, 'E_DATA_IN_USE');
      assert.match(error.message, new RegExp(String(process.pid)));
      return true;
    });
    await stop(server);
    await stop(server);
    await stop(await serve(dataDir));
  });

  test('keeps apps, records and persisted objects over a restart, large ones as files', async () => {
    const dataDir = newFolder();
    const server = await serve(dataDir);
    await ask(server, 'PUT', '/v1/apps/a', bundle());
    await call(server, 'persist', { name: 'small', value: { kept: true } });
    await call(server, 'persist', { name: 'large', size: 3_000_000 });
    const keyed = await call(server, 'echo', { n: 1 }, '', { 'idempotency-key': 'k' });
    const { session } = (await call(server, 'echo', { n: 2 }, '?mode=async')).body;
    await until('it ends', async () =>
      (await ask(server, 'GET', `/v1/sessions/${session}`)).body.state === 'completed' ? true : undefined,
    );
    await stop(server);
    assert.equal(readdirSync(join(dataDir, 'objects')).length, 1);

    const next = await serve(dataDir);
    assert.deepEqual((await ask(next, 'GET', '/v1/apps/a/buckets/store/objects/small')).body, { kept: true });
    const large = await fetch(`${next.url}/v1/apps/a/buckets/store/objects/large`, {
      headers: { range: 'bytes=10-19' },
    });
    assert.equal(large.status, 206);
    assert.deepEqual([...new Uint8Array(await large.arrayBuffer())], new Array(10).fill(7));
    assert.equal(
      (await ask(next, 'GET', '/v1/objects')).body.apps[0].persistedBytes,
      3_000_000 + '{"kept":true}'.length,
    );
    const again = await call(next, 'echo', { n: 1 }, '', { 'idempotency-key': 'k' });
    assert.deepEqual([again.session, again.body], [keyed.session, { n: 1 }]);
    assert.deepEqual((await ask(next, 'GET', `/v1/sessions/${session}/result`)).body, { n: 2 });
    assert.deepEqual((await call(next, 'echo', 3)).body, 3);
    await stop(next);
  });

  test('of a server that was killed: async sessions are executed again, firings too, sync ones are lost', async () => {
    const dataDir = newFolder();
    const script = `
      import { startServer } from ${JSON.stringify(new URL('./server.js', import.meta.url).href)};
      const options = { dataDir: ${JSON.stringify(dataDir)}, host: '127.0.0.1', port: 0, log: () => {} };
      const server = await startServer(options, { hostMain: ${JSON.stringify(HOST_MAIN)} });
      console.log(server.url);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const url = await new Promise<string>((resolve) =>
      child.stdout.once('data', (chunk) => resolve(String(chunk).trim())),
    );
    const killed = { url } as RunningServer;
    await ask(killed, 'PUT', '/v1/apps/a', bundle());
    const kept = (await call(killed, 'sleep', 200, '?mode=async')).body.session;
    const gone = (await call(killed, 'sleep', 200, '?mode=async&durability=none')).body.session;
    const giver = (await call(killed, 'emit', { bucket: 'slow', names: ['x', 'y'], thenSleep: 100 }, '?mode=async'))
      .body.session;
    const waiter = (await call(killed, 'emit', { bucket: 'pairs', names: ['one'] }, '?mode=async')).body.session;
    await until('the firing runs', async () => {
      const { body } = await ask(killed, 'GET', '/v1/sessions?app=a&limit=100');
      const done = body.sessions.find((one: any) => one.session === waiter)?.state === 'completed';
      return done && body.sessions.some((one: any) => one.causes.includes(giver)) ? true : undefined;
    });
    const [host] = await hosts(killed);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    await until('the host ends with its server', async () => {
      try {
        process.kill(host?.pid ?? 0, 0);
        return undefined;
      } catch {
        return true;
      }
    });

    const server = await serve(dataDir);
    const result = await ask(server, 'GET', `/v1/sessions/${kept}/result?waitMs=5000`);
    assert.equal(result.body.slept, 200);
    assert.equal((await ask(server, 'GET', `/v1/sessions/${gone}`)).body.code, 'E_SESSION_LOST');
    assert.deepEqual((await firedBy(server, giver)).result.names, ['x', 'y']);
    const { session } = await call(server, 'emit', { bucket: 'pairs', names: ['two'] });
    const fired = await firedBy(server, session);
    assert.deepEqual(fired.result.names, ['one', 'two'], 'what the trigger held was kept');
    assert.deepEqual(fired.causes, [waiter, session]);
    const { body } = await ask(server, 'GET', '/v1/sessions?app=a&limit=100');
    assert.equal(body.sessions.filter((one: any) => one.causes.includes(giver)).length, 1);
    await stop(server);
  });
});

test('a config file is checked to its last option', async () => {
  const file = join(newFolder(), 'config.json');
  const start = () =>
    startServer({ dataDir: newFolder(), host: '127.0.0.1', port: 0, configFile: file, log: () => {} });
  writeFileSync(file, '{"instanceMax": 3}');
  await assert.rejects(start(), /unknown option 'instanceMax'.*Did you mean 'instancesMax'/);
  writeFileSync(file, '{"instancesMax": "3"}');
  await assert.rejects(start(), /must be a whole number above 0/);
  writeFileSync(file, '{');
  await assert.rejects(start(), { code: 'E_OPTION_INVALID' });
  writeFileSync(file, '{"bodyBytesMax": 1000}');
  const server = await start();
  assert.equal(server.controlPlane.bodyBytesMax, 1_000);
  await server.close();
});

test('limits and metrics are live', async () => {
  const server = await serve();
  await ask(server, 'PUT', '/v1/apps/a', bundle());
  await call(server, 'echo', 1);
  const { limits } = (await ask(server, 'GET', '/v1/limits')).body;
  assert.ok(limits.every((one: any) => one.why.length > 0));
  const text = (await ask(server, 'GET', '/metrics')).body as string;
  assert.match(text, /^antrail_sessions_accepted_total 1$/m);
  assert.match(text, /^antrail_app_hosts\{state="ready"\} 1$/m);
  await stop(server);
});
