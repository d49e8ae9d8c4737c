// Goal: the commands as people and scripts meet them. Method: the built program as a child process, against a real HTTP
// server that answers as the real one does.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const PROGRAM = join(dirname(fileURLToPath(import.meta.url)), '..', 'bin', 'antrail.js');
const SESSION = 'd1-2s-k3x9a';
const MANIFEST = {
  entry: 'preprocess',
  functions: { preprocess: { kind: 'fn' }, aggregate: { kind: 'durable', options: { retries: 2 } } },
  buckets: {
    matches: { on: { everySecond: { kind: 'byTime', windowMs: 1_000, run: 'aggregate' } } },
    plain: {},
  },
};
const APP = {
  app: 'ad-events',
  version: '1a2b3c4d5e6f7a8b',
  deployedAt: '2026-01-01T00:00:00.000Z',
  manifest: MANIFEST,
  versions: [{ version: '1a2b3c4d5e6f7a8b', deployedAt: '2026-01-01T00:00:00.000Z', current: true, usedBy: 3 }],
};
const LETTER = 'd1-2s-k3x9a.8f14e45fceea167a';
const LETTER_HEAD = {
  id: LETTER,
  app: 'ad-events',
  version: 'v1',
  function: 'lookup',
  session: 'd1-2s-k3x9a',
  invocation: '8f14e45fceea167a',
  firing: 'ads/each/ad-1',
  error: { code: 'E_FUNCTION_FAILED', message: 'no such ad' },
  at: '2026-01-01T12:03:04.000Z',
  attemptCount: 3,
  retries: 1,
};
const LETTER_SHOWN = {
  ...LETTER_HEAD,
  error: {
    code: 'E_FUNCTION_FAILED',
    message: 'no such ad',
    stack: 'Error: no such ad\n    at lookup (app.ts:12:3)',
    cause: { code: 'E_FUNCTION_FAILED', message: 'gone' },
  },
  attempts: [
    {
      n: 3,
      node: 'local',
      instance: 'i1',
      start: 'warm',
      queuedAt: '2026-01-01T12:03:04.000Z',
      startedAt: '2026-01-01T12:03:04.000Z',
      endedAt: '2026-01-01T12:03:04.004Z',
      outcome: 'error',
    },
  ],
  inputs: [
    {
      id: 'ad-events/ads/d1-2s-k3x9a/ad-1',
      bucket: 'ads',
      name: 'ad-1',
      group: '',
      contentType: 'application/json',
      size: 4,
      json: 'ad',
    },
  ],
  inputsKept: true,
};
const RECORD = {
  session: SESSION,
  app: 'ad-events',
  version: '1a2b',
  function: 'preprocess',
  state: 'failed',
  error: { code: 'E_FUNCTION_FAILED', message: 'no such \x1b[31mcampaign', stack: 'Error: no\n    at f (app.ts:3:1)' },
  tags: { customer: '42' },
  causes: [],
  unfired: [{ bucket: 'matches', trigger: 'everySecond', held: 2, waitsFor: 'waits for its window' }],
  startedAt: '2026-01-01T00:00:00.000Z',
  endedAt: '2026-01-01T00:00:01.500Z',
  counts: { invocations: 2, attempts: 3, objects: 4, bytes: 2048, firings: 1 },
  meteredMs: 12.5,
};
const attempt = (n: number, queued: number, started: number, ended: number, more: object = {}) => ({
  n,
  node: 'n1',
  instance: 'i1',
  start: 'warm',
  queuedAt: `2026-01-01T00:00:00.${String(queued).padStart(3, '0')}Z`,
  startedAt: `2026-01-01T00:00:00.${String(started).padStart(3, '0')}Z`,
  endedAt: `2026-01-01T00:00:00.${String(ended).padStart(3, '0')}Z`,
  outcome: 'ok',
  ...more,
});
const TRACE = {
  session: SESSION,
  invocations: [
    {
      id: 'b',
      function: 'lookup',
      firing: 'purchases/lookup/0',
      parent: 'a',
      in: [],
      out: [],
      attempts: [attempt(1, 10, 12, 20, { outcome: 'timeout' }), attempt(2, 20, 21, 40, { start: 'inline' })],
    },
    {
      id: 'a',
      function: 'preprocess',
      firing: null,
      parent: null,
      in: [],
      out: [],
      attempts: [attempt(1, 0, 5, 10, { start: 'cold' })],
    },
  ],
};
const LOGS = [1, 2, 3].map((n) => ({
  at: `2026-01-01T12:03:04.00${n}Z`,
  app: 'ad-events',
  version: '1',
  level: 'info',
  message: `line ${n}`,
  function: 'lookup',
  session: SESSION,
  fields: { n },
}));

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

describe('antrail', { concurrency: 2 }, () => {
  let url = '';
  let dir = '';
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { method = '', url: path = '', headers } = request;
    const one = { method, url: path, headers, body: Buffer.concat(chunks) };
    seen.push(one);
    answer(one, response);
  });

  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'antrail-cli-'));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(async () => {
    server.closeAllConnections();
    server.close();
    await rm(dir, { recursive: true });
  });

  const cli = (args: readonly string[], input?: string | Buffer, env: Record<string, string> = {}) =>
    runCli(args, { ANTRAIL_URL: url, ...env }, input);
  /** The request that a command made with this mark in its URL or headers. */
  const requestWith = (mark: string) => {
    const found = seen.find((one) => one.url.includes(mark) || Object.values(one.headers).includes(mark));
    assert.ok(found, `no request with ${mark}`);
    return found;
  };

  test('invoke prints the JSON result; a target without function is the entry', async () => {
    const { code, stdout } = await cli(['invoke', 'ad-events', '{"a":[1,"ä"]}', '--idempotency-key', 'entry-key']);
    assert.equal(code, 0);
    assert.equal(stdout.toString(), '{"a":[1,"ä"]}\n');
    const { url: path, headers, body } = requestWith('entry-key');
    assert.equal(path, '/v1/apps/ad-events/functions/preprocess?mode=sync');
    assert.equal(headers['content-type'], 'application/json');
    assert.equal(body.toString(), '{"a":[1,"ä"]}');
  });

  test('invoke passes its options on', async () => {
    const { code, stdout } = await cli([
      ...['invoke', 'a/opts', '1', '--async', '--timeout', '1.5s', '--token', 'secret'],
      ...['--session-tag', 'k=v', '--session-tag', 'x=y=z'],
    ]);
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout.toString()), { session: SESSION });
    const { url: path, headers } = requestWith('/opts');
    assert.equal(path, '/v1/apps/a/functions/opts?mode=async&timeoutMs=1500&tag=k%3Dv&tag=x%3Dy%3Dz');
    assert.equal(headers.authorization, 'Bearer secret');
  });

  test('invoke sends a file or standard input as JSON if it parses, else as bytes, and gives bytes back', async () => {
    const bytes = Buffer.from([0, 255, 10, 0]);
    await writeFile(join(dir, 'in.bin'), bytes);
    const fromFile = await cli(['invoke', 'a/file', `@${join(dir, 'in.bin')}`]);
    assert.deepEqual(fromFile.stdout, bytes);
    assert.equal(requestWith('/functions/file').headers['content-type'], 'application/octet-stream');
    const fromPipe = await cli(['invoke', 'a/pipe', '-'], ' {"x": 1}\n');
    assert.equal(fromPipe.stdout.toString(), ' {"x": 1}\n\n');
    assert.equal(requestWith('/functions/pipe').headers['content-type'], 'application/json');
    const nothing = await cli(['invoke', 'a/nothing']);
    assert.equal(nothing.stdout.toString(), 'null\n');
    assert.equal(requestWith('/functions/nothing').headers['content-type'], undefined);
  });

  test('a timeout longer than fetch waits is polled for', async () => {
    const { stdout } = await cli(['invoke', 'a/long', '1', '--timeout', '10m']);
    assert.equal(stdout.toString(), '"polled"\n');
    assert.match(requestWith('/functions/long').url, /mode=async&timeoutMs=600000/);
  });

  test('inline text that is not JSON is wrong usage that says how to pass a string', async () => {
    const { code, stdout, stderr } = await cli(['invoke', 'a/f', 'hello']);
    assert.equal(code, 2);
    assert.equal(stdout.length, 0);
    assert.match(stderr, /'"hello"'/);
    assert.equal((await cli(['invoke', 'a/f', '@no-such-file'])).code, 2);
    assert.equal((await cli(['invoke', 'a/', '1'])).code, 2);
  });

  test('a failed function: message, user stack, causes and session on stderr, exit 1', async () => {
    const { code, stdout, stderr } = await cli(['invoke', 'a/fails', '1']);
    assert.equal(code, 1);
    assert.equal(stdout.length, 0);
    assert.equal(
      stderr,
      [
        'E_FUNCTION_FAILED no such campaign',
        '  TypeError: no such campaign',
        '    at lookup (app.ts:12:3)',
        'caused by: RangeError: inner',
        '    at inner (app.ts:2:1)',
        `session ${SESSION} (antrail trace ${SESSION})`,
        '',
      ].join('\n'),
    );
    const asJson = await cli(['invoke', 'a/fails', '1', '--json']);
    assert.equal(asJson.code, 1);
    assert.equal(JSON.parse(asJson.stderr).code, 'E_FUNCTION_FAILED');
  });

  test('a refusal tells when to try again, a wrong name what was meant', async () => {
    const busy = await cli(['invoke', 'a/busy', '1']);
    assert.equal(busy.code, 1);
    assert.match(busy.stderr, /^E_QUEUE_FULL full\nTry again in 1\.5 s\.\n/);
    const unknown = await cli(['app', 'nope']);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /E_APP_UNKNOWN .*\nDid you mean ad-events\?/);
    const invalid = await cli(['invoke', 'a/invalid', '1']);
    assert.match(invalid.stderr, /E_INPUT_INVALID bad\n {2}order\.id: must be a number/);
  });

  test('without a server the message says how to start one', async () => {
    const port = await freePort();
    const { code, stderr } = await cli(['apps', '--server', `http://127.0.0.1:${port}`]);
    assert.equal(code, 1);
    assert.match(stderr, /E_SERVER_UNREACHABLE .*antrail serve/);
    assert.equal((await cli(['apps', '--server', 'nonsense'])).code, 2);
  });

  test('--json prints exactly the HTTP answer', async () => {
    for (const [args, value] of [
      [['apps'], { apps: [APP] }],
      [['app', 'ad-events'], APP],
      [['sessions', '--state', 'failed'], { sessions: [RECORD], cursor: 'c1' }],
      [['session', SESSION], RECORD],
      [['trace', SESSION], TRACE],
      [['objects'], OBJECTS],
      [['nodes'], NODES],
      [['dead-letters', 'list'], { deadLetters: [LETTER_HEAD], dropped: 2 }],
      [['dead-letters', 'show', LETTER], LETTER_SHOWN],
      [['dead-letters', 'retry', LETTER], { session: 'd1-3-b' }],
      [['dead-letters', 'drop', LETTER], { id: LETTER }],
      [['limits'], LIMITS],
      [['cancel', SESSION], { session: SESSION }],
      [['retry', SESSION], { session: 'd1-3-b' }],
      [['fork', SESSION], { session: 'd1-3-b' }],
      [['remove', 'ad-events'], { app: 'ad-events' }],
    ] as const) {
      const { code, stdout, stderr } = await cli([...args, '--json']);
      assert.equal(code, 0, stderr);
      assert.equal(stdout.toString(), `${JSON.stringify(value)}\n`, args.join(' '));
    }
  });

  test('without --json people read tables, without colour or control characters in a pipe', async () => {
    const text = async (...args: string[]) => {
      const { code, stdout, stderr } = await cli(args);
      assert.equal(code, 0, stderr);
      assert.ok(!stdout.includes(0x1b), `${args.join(' ')} has an escape`);
      return stdout.toString();
    };
    assert.match(await text('apps'), /^app +version +entry .*\nad-events +1a2b3c4d5e6f +preprocess +2 +2 +3 /);
    const app = await text('app', 'ad-events');
    assert.match(app, /aggregate +durable +retries=2/);
    assert.match(app, /matches +everySecond +byTime +windowMs=1000 +aggregate/);
    assert.match(await text('sessions'), /d1-2s-k3x9a +ad-events +preprocess +failed .* 1\.5 s +2 +customer=42/);
    const session = await text('session', SESSION);
    assert.match(session, /state +failed\n/);
    assert.match(session, /made of +2 invocations, 3 attempts, 4 objects, 2 KiB, 1 firing\n/);
    assert.match(session, /E_FUNCTION_FAILED no such \\x1b\[31mcampaign\n {2}Error: no\n {6}at f \(app\.ts:3:1\)/);
    assert.match(session, /unfired +matches\/everySecond held 2 objects: waits for its window/);
    const trace = await text('trace', SESSION);
    assert.match(trace, /^d1-2s-k3x9a {2}40 ms {2}2 invocations, 3 attempts\n/);
    assert.match(
      trace,
      /\npreprocess +cold +5 ms +5 ms +ok +·*█+\n└─ lookup #1 +purchases\/lookup\/0 +warm +2 ms +8 ms +timeout +·*█+\n└─ lookup #2 +purchases\/lookup\/0 +inline +1 ms +19 ms +ok +·*█+\n/,
    );
    assert.match(
      await text('logs', 'ad-events'),
      /^12:03:04\.001 info {2}ad-events\/lookup d1-2s-k3x9a {2}line 1 \{"n":1\}\n/,
    );
    assert.match(await text('objects'), /ad-events +4 +1 +2 KiB +0 B +1 MiB/);
    assert.match(
      await text('nodes'),
      /^node +roles +machine memory +hosts\nnode-1 +gateway, worker +2 KiB +hello 505b4e736831 ready 42\n$/,
    );
    assert.match(
      await text('dead-letters'),
      /^id +app +function +failed +attempts +retried +error\nd1-2s-k3x9a\.8f14e45fceea167a +ad-events +lookup +[^\n]+ 3 +1 × +E_FUNCTION_FAILED no such ad\n2 older ones made room/,
    );
    const shown = await text('dead-letters', 'show', LETTER);
    assert.match(
      shown,
      /E_FUNCTION_FAILED no such ad\n {2}Error: no such ad\n {6}at lookup \(app\.ts:12:3\)\n {2}caused by: gone/,
    );
    assert.match(shown, /attempt +outcome[^\n]*\n +3 +error/);
    assert.match(shown, /input {2}ad-events\/ads\/d1-2s-k3x9a\/ad-1 {2}4 B\n {2}"ad"/);
    assert.match(
      await text('dead-letters', 'retry', LETTER),
      /^started d1-3-b \(retry of d1-2s-k3x9a\.8f14e45fceea167a\)\n$/,
    );
    assert.match(
      await text('dead-letters', 'drop', '--app', 'ad-events', '--all'),
      /^dropped d1-2s-k3x9a\.8f14e45fceea167a\n$/,
    );
    assert.match(await text('limits'), /inlineBytesMax +16 KiB +small ones ride along/);
    assert.match(await text('retry', SESSION), /^started d1-3-b \(retry of d1-2s-k3x9a\)\n$/);
    assert.match(await text('remove', 'ad-events'), /^removed ad-events\n$/);
    assert.match(await text('cancel', SESSION), /^d1-2s-k3x9a had ended already: failed\n$/);
  });

  test('deploy bundles, uploads with env, and prints what the app is made of', async () => {
    const file = join(dir, 'app.ts');
    await writeFile(file, APP_SOURCE);
    const { code, stdout, stderr } = await cli(['deploy', file, '--env', 'STAGE=test', '--env', 'EMPTY=']);
    assert.equal(code, 0, stderr);
    assert.match(stdout.toString(), /^deployed shop version v-new\n\nfunction +kind +entry\ntotal +fn +entry\n/);
    assert.match(stdout.toString(), /\norders +each +immediate +total\n$/);
    const { body } = seen.find(({ method, url: path }) => method === 'PUT' && path === '/v1/apps/shop') as Seen;
    const { manifest, main, files, env } = JSON.parse(body.toString());
    assert.equal(manifest.entry, 'total');
    assert.equal(typeof files[main], 'string');
    assert.deepEqual(env, { STAGE: 'test', EMPTY: '' });

    const diff = await cli(['deploy', file, '--diff']);
    assert.match(
      diff.stdout.toString(),
      /^shop v-old → \w+\n {2}~ entry: gone → total\n {2}- function gone\n {2}\+ function total/,
    );
    assert.match(diff.stdout.toString(), /\n {2}\+ trigger orders\/each: .*\n {2}~ env: .*\nNothing was deployed\.\n$/);
    assert.equal(seen.filter(({ method }) => method === 'PUT').length, 1);
    const asJson = await cli(['deploy', file, '--json']);
    assert.equal(asJson.stdout.toString(), '{"app":"shop","version":"v-new"}\n');
  });

  test('an app that does not build is told with file and line, and nothing is uploaded', async () => {
    const file = join(dir, 'broken.ts');
    await writeFile(file, '\nconst x = ;\n');
    const { code, stderr } = await cli(['deploy', file]);
    assert.equal(code, 1);
    assert.match(stderr, /^E_APP_INVALID broken\.ts:2: /);
    assert.equal(stderr.split('\n').length, 2);
  });

  test('logs: one JSON object a line; following ends with Ctrl-C and exit 0', async () => {
    const { stdout } = await cli(['logs', '--json', '--tail', '3']);
    assert.equal(stdout.toString(), LOGS.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
    const child = spawnCli(['logs', 'ad-events', '-f'], { ANTRAIL_URL: url });
    await lineOf(child, /line 3/);
    child.kill('SIGINT');
    assert.deepEqual(await exitOf(child), { code: 0, signal: null });
  });

  test('a waiting command is ended by Ctrl-C', async () => {
    const child = spawnCli(['invoke', 'a/hangs', '1', '--idempotency-key', 'hang-key'], { ANTRAIL_URL: url });
    await until(() => seen.some(({ headers }) => headers['idempotency-key'] === 'hang-key'));
    child.kill('SIGINT');
    assert.deepEqual(await exitOf(child), { code: 130, signal: null });
  });

  test('a reader that goes away ends the command quietly', async () => {
    const child = spawnCli(['logs', 'endless', '-f'], { ANTRAIL_URL: url });
    let stderr = '';
    child.stderr?.on('data', (chunk) => {
      stderr += chunk;
    });
    await lineOf(child, /line 1/);
    child.stdout?.destroy();
    assert.deepEqual(await exitOf(child), { code: 0, signal: null });
    assert.equal(stderr, '');
  });

  test('wrong usage is exit 2 with what was probably meant', async () => {
    for (const [args, said] of [
      [['sesions'], /Did you mean (one of )?session/],
      [['apps', '--jsn'], /Did you mean --json/],
      [['app'], /missing required argument 'app'/],
      [['no-such-command', '--help'], /unknown command 'no-such-command'/],
      [['apps', 'extra'], /too many arguments/],
      [['sessions', '--state', 'broken'], /none of running, completed/],
      [['serve', '--port', 'x'], /not a port/],
      [['invoke', 'a/f', '1', '--timeout', '30'], /write 30s or 30ms/],
      [['invoke', 'a/f', '1', '--session-tag', 'x'], /not KEY=VALUE/],
      [['dead-letters', 'burn'], /none of list, show, retry, drop/],
      [['dead-letters', 'show'], /say which/],
      [['dead-letters', 'drop', '--all'], /--app <app>/],
      [['deploy', 'no-such-app.ts'], /no file no-such-app\.ts/],
      [['dev', 'no-such-app.ts'], /no file no-such-app\.ts/],
      [[], /Usage: antrail/],
    ] as const) {
      const { code, stdout, stderr } = await cli(args);
      assert.equal(code, 2, `${args.join(' ')}: ${stderr}`);
      assert.match(stderr, said);
      assert.equal(stdout.length, 0);
    }
  });

  test('help and version go to stdout with exit 0', async () => {
    const help = await cli(['--help']);
    assert.equal(help.code, 0);
    for (const name of ['dev', 'serve', 'deploy', 'invoke', 'trace', 'doctor', 'bench']) {
      assert.match(help.stdout.toString(), new RegExp(`^ {2}${name}\\b`, 'm'));
    }
    assert.match((await cli(['--version'])).stdout.toString(), /^\d+\.\d+\.\d+\n$/);
  });

  test('doctor finds a port that something else holds', async () => {
    const holder = createTcpServer((socket) => socket.destroy());
    await new Promise<void>((done) => holder.listen(0, '127.0.0.1', done));
    const { port } = holder.address() as AddressInfo;
    const bad = await cli(['doctor', '--port', String(port), '--data', join(dir, 'd')]);
    holder.close();
    assert.equal(bad.code, 1, bad.stderr);
    assert.match(bad.stdout.toString(), /FAIL {2}port .*EADDRINUSE/);
    const good = await cli(['doctor', '--port', String(await freePort()), '--data', join(dir, 'd'), '--json']);
    const { checks } = JSON.parse(good.stdout.toString());
    assert.deepEqual(
      checks.map(({ name, ok }: { name: string; ok: boolean }) => [name, ok]),
      [
        ['node', true],
        ['data', true],
        ['port', true],
        ['lmdb', true],
        ['esbuild', true],
      ],
    );
    assert.equal(good.code, 0);
  });
});

const APP_SOURCE = `
import { app, bucket, fn, immediate } from 'antrail';
const total = fn((ctx, [order]) => order.json().id);
export default app('shop', {
  entry: 'total',
  functions: { total },
  buckets: { orders: bucket({ on: { each: immediate({ run: 'total' }) } }) },
  env: { STAGE: null, EMPTY: 'x' },
});
`;
const SHOP = {
  app: 'shop',
  version: 'v-old',
  deployedAt: '2026-01-01T00:00:00.000Z',
  manifest: { entry: 'gone', functions: { gone: { kind: 'fn' } }, buckets: {} },
  versions: [],
};
const OBJECTS = {
  apps: [{ app: 'ad-events', memoryBytes: 2048, spilledBytes: 0, persistedBytes: 1_048_576, objects: 4, sessions: 1 }],
};
const NODES = {
  nodes: [
    {
      node: 'node-1',
      roles: ['gateway', 'worker'],
      machineMemoryBytes: 2048,
      hosts: [{ app: 'hello', version: '505b4e736831f470', state: 'ready', pid: 42 }],
    },
  ],
};
const LIMITS = { limits: [{ name: 'inlineBytesMax', value: 16384, unit: 'bytes', why: 'small ones ride along' }] };

function answer({ method, url, headers, body }: Seen, response: ServerResponse): unknown {
  const path = url.split('?')[0] ?? '';
  const json = (status: number, value: unknown, type = 'application/json') => {
    response.writeHead(status, { 'content-type': type, 'antrail-session': SESSION });
    response.end(JSON.stringify(value));
  };
  const problem = (status: number, more: object) =>
    json(status, { type: '/docs', title: 't', status, ...more }, 'application/problem+json');
  const name = /\/functions\/(\w+)$/.exec(path)?.[1];
  if (name === 'fails') {
    return problem(500, {
      code: 'E_FUNCTION_FAILED',
      detail: 'no such campaign',
      name: 'TypeError',
      stack: 'TypeError: no such campaign\n    at lookup (app.ts:12:3)',
      cause: { name: 'RangeError', message: 'inner', stack: 'RangeError: inner\n    at inner (app.ts:2:1)' },
      session: SESSION,
    });
  }
  if (name === 'busy') return problem(503, { code: 'E_QUEUE_FULL', detail: 'full', retryAfterMs: 1_500 });
  if (name === 'invalid') {
    const issues = [{ message: 'must be a number', path: ['order', { key: 'id' }] }];
    return problem(422, { code: 'E_INPUT_INVALID', detail: 'bad', issues });
  }
  if (name === 'hangs') return undefined;
  if (name !== undefined) {
    if (url.includes('mode=async')) return json(202, { session: SESSION });
    const type = String(headers['content-type'] ?? 'application/json');
    response.writeHead(200, { 'content-type': type, 'antrail-session': SESSION });
    return response.end(body.length === 0 ? 'null' : body);
  }
  if (path === '/v1/logs') return answerLogs(url, response);
  if (path === '/v1/apps/nope')
    return problem(404, { code: 'E_APP_UNKNOWN', detail: 'no app nope', didYouMean: APP.app });
  const session = `/v1/sessions/${SESSION}`;
  const answers: Record<string, [number, unknown]> = {
    'GET /v1/apps': [200, { apps: [APP] }],
    'GET /v1/apps/ad-events': [200, APP],
    'GET /v1/apps/shop': [200, SHOP],
    'PUT /v1/apps/shop': [201, { app: 'shop', version: 'v-new' }],
    'GET /v1/sessions': [200, { sessions: [RECORD], cursor: 'c1' }],
    [`GET ${session}`]: [200, RECORD],
    [`GET ${session}/trace`]: [200, TRACE],
    [`GET ${session}/result`]: [200, 'polled'],
    [`DELETE ${session}`]: [202, { session: SESSION }],
    [`POST ${session}/retry`]: [202, { session: 'd1-3-b' }],
    [`POST ${session}/fork`]: [202, { session: 'd1-3-b' }],
    'DELETE /v1/apps/ad-events': [200, { app: 'ad-events' }],
    'GET /v1/objects': [200, OBJECTS],
    'GET /v1/nodes': [200, NODES],
    'GET /v1/dead-letters': [200, { deadLetters: [LETTER_HEAD], dropped: 2 }],
    [`GET /v1/dead-letters/${LETTER}`]: [200, LETTER_SHOWN],
    [`POST /v1/dead-letters/${LETTER}/retry`]: [202, { session: 'd1-3-b' }],
    [`DELETE /v1/dead-letters/${LETTER}`]: [202, { id: LETTER }],
    'GET /v1/limits': [200, LIMITS],
  };
  const found = answers[`${method} ${path}`];
  if (found === undefined) return problem(404, { code: 'E_REQUEST_INVALID', detail: `no ${method} ${path}` });
  return json(...found);
}

function answerLogs(url: string, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.write(LOGS.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
  if (url.includes('endless')) {
    const more = setInterval(() => response.write(`${JSON.stringify(LOGS[0])}\n`.repeat(100)), 5);
    response.on('close', () => clearInterval(more));
  } else if (!url.includes('follow')) {
    response.end();
  }
}

function spawnCli(args: readonly string[], env: Record<string, string>): ChildProcess {
  const { PATH, HOME } = process.env;
  return spawn(process.execPath, [PROGRAM, ...args], { env: { PATH, HOME, ...env } });
}

async function runCli(args: readonly string[], env: Record<string, string>, input: string | Buffer = '') {
  const child = spawnCli(args, env);
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => out.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => err.push(chunk));
  child.stdin?.on('error', () => undefined);
  child.stdin?.end(input);
  const code = await new Promise<number | null>((done) => child.on('close', done));
  return { code, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString() };
}

function exitOf(child: ChildProcess): Promise<{ code: number | null; signal: string | null }> {
  return new Promise((done) => child.on('exit', (code, signal) => done({ code, signal })));
}

/** Resolves when standard output has shown it. */
function lineOf(child: ChildProcess, pattern: RegExp): Promise<void> {
  let text = '';
  return new Promise((done, fail) => {
    child.stdout?.on('data', (chunk) => {
      text += chunk;
      if (pattern.test(text)) done();
    });
    child.on('exit', () => fail(new Error(`ended before ${pattern}: ${text}`)));
  });
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((done) => setImmediate(done));
}

async function freePort(): Promise<number> {
  const probe = createTcpServer();
  await new Promise<void>((done) => probe.listen(0, '127.0.0.1', done));
  const { port } = probe.address() as AddressInfo;
  await new Promise((done) => probe.close(done));
  return port;
}
