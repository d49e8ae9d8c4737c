// Goal: outputs and logs arrive in order and exactly once over a broken connection, never pile up, and end when they should.
// Method: scripted sources that the test feeds item by item; real loopback sockets.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { PlatformError } from '../base/index.ts';
import type { LogEntry } from '../protocol/index.ts';
import type { ControlPlane, OutputEvent } from './control-plane.ts';
import { createGateway } from './index.ts';
import { jsonPayload, SESSION, scriptedControlPlane, send } from './internal.ts';
import type { GatewayTiming } from './limits.ts';

const OUTPUTS = `/v1/sessions/${SESSION}/outputs`;

async function open(t: TestContext, script: Partial<ControlPlane> = {}, timing: Partial<GatewayTiming> = {}) {
  const plane = scriptedControlPlane(script);
  const logged: any[] = [];
  const options = { host: '127.0.0.1', port: 0, timing, log: (entry: unknown) => logged.push(entry) };
  const gateway = await createGateway(plane, options);
  t.after(() => gateway.close());
  return { gateway, url: gateway.url, plane, logged };
}

interface Event {
  readonly id?: string;
  readonly event?: string;
  readonly data?: string;
}

function eventsOf(text: string): Event[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '' && !block.startsWith(':'))
    .map((block) => Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2))));
}

async function openStream(url: string, path: string): Promise<IncomingMessage> {
  const [res] = await once(get(url + path, { agent: false }), 'response');
  return res;
}

/** Never ends by itself; knows whether it was told to stop. */
function endless() {
  let signal: AbortSignal | undefined;
  return {
    stopped: () => signal?.aborted === true,
    async *outputs(_session: string, _after: number, given: AbortSignal): AsyncGenerator<OutputEvent> {
      signal = given;
      yield { n: 1, bucket: 'out', name: 'first', payload: jsonPayload(1) };
      await new Promise((resolve) => given.addEventListener('abort', resolve));
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

test('outputs are events with id, name and content, and an end', async (t) => {
  const pretty = Buffer.from('{\r\n  "text": "a\\nb"\n}');
  const values: [string, string, Buffer][] = [
    ['out', 'application/json', pretty],
    ['$output', 'application/octet-stream', Buffer.from([0, 255, 10])],
    ['a b', 'text/plain', Buffer.alloc(65_536, 'x')],
    ['a b', 'text/plain', Buffer.alloc(65_537, 'x')],
    ['out', 'application/json', Buffer.from(JSON.stringify('y'.repeat(70_000)))],
  ];
  const { url, plane } = await open(t, {
    async *outputs(_session, after) {
      for (const [i, [bucket, contentType, bytes]] of values.entries()) {
        if (i >= after) yield { n: i + 1, bucket, name: `n/${i}`, payload: { contentType, bytes } };
      }
    },
  });
  const answer = await send(url, 'GET', OUTPUTS);
  assert.match(String(answer.headers['content-type']), /^text\/event-stream/);
  assert.equal(answer.headers['antrail-session'], SESSION);
  const events = eventsOf(answer.body.toString());
  assert.deepEqual(
    events.map(({ id, event }) => [id, event]).slice(0, 5),
    [1, 2, 3, 4, 5].map((n) => [`${n}`, 'output']),
  );
  assert.equal(events[5]?.event, 'end');
  assert.deepEqual(JSON.parse(events[5]?.data ?? ''), { session: SESSION });
  const [json, bytes, text, largeText, largeJson] = events.map(({ data }) => JSON.parse(data ?? ''));
  assert.deepEqual(json, {
    bucket: 'out',
    name: 'n/0',
    size: pretty.length,
    contentType: 'application/json',
    json: { text: 'a\nb' },
  });
  assert.equal(bytes.base64, 'AP8K');
  assert.equal(Buffer.from(text.base64, 'base64').length, 65_536);
  assert.deepEqual(largeText, {
    bucket: 'a b',
    name: 'n/3',
    size: 65_537,
    contentType: 'text/plain',
    href: `/v1/apps/shop/buckets/a%20b/objects/n%2F3?session=${SESSION}`,
  });
  assert.match(largeJson.href, /n%2F4/);
  assert.equal((await send(url, 'GET', largeText.href)).status, 200);
  assert.deepEqual(plane.calls.at(-1)?.args.slice(0, 4), ['shop', 'a b', 'n/3', SESSION]);
});

test('last-event-id goes on after that event', async (t) => {
  const { url } = await open(t);
  for (const [last, ids] of [
    ['0', ['1', '2', '3']],
    ['2', ['3']],
    ['3', []],
  ] as const) {
    const answer = await send(url, 'GET', OUTPUTS, { headers: { 'last-event-id': last } });
    const outputs = eventsOf(answer.body.toString()).filter(({ event }) => event === 'output');
    assert.deepEqual(
      outputs.map(({ id }) => id),
      ids,
    );
  }
  for (const wrong of ['x', '-1', '1.5']) {
    const answer = await send(url, 'GET', OUTPUTS, { headers: { 'last-event-id': wrong } });
    assert.equal(answer.json().code, 'E_REQUEST_INVALID');
  }
});

test('an unknown session is a 404 before any stream', async (t) => {
  const { url, plane } = await open(t);
  const answer = await send(url, 'GET', '/v1/sessions/e9-9-z/outputs');
  assert.equal(answer.json().code, 'E_SESSION_UNKNOWN');
  assert.ok(plane.calls.every(({ method }) => method !== 'outputs'));
});

test('a source that breaks is told apart from one that ends', async (t) => {
  const outputs = (error: unknown): ControlPlane['outputs'] =>
    async function* () {
      yield { n: 1, bucket: 'out', name: 'x', payload: jsonPayload(1) };
      throw error;
    };
  const known = await open(t, { outputs: outputs(new PlatformError('E_NODE_LOST', 'gone')) });
  const events = eventsOf((await send(known.url, 'GET', OUTPUTS)).body.toString());
  assert.deepEqual(
    events.map(({ event }) => event),
    ['output', 'problem'],
  );
  assert.equal(JSON.parse(events[1]?.data ?? '').code, 'E_NODE_LOST');
  const unknown = await open(t, { outputs: outputs(new Error('bug')) });
  await assert.rejects(send(unknown.url, 'GET', OUTPUTS));
  assert.equal(unknown.logged.length, 1);
});

test('an idle stream carries comments', async (t) => {
  const { url } = await open(t, { outputs: endless().outputs }, { tickMs: 5, heartbeatMs: 10 });
  const res = await openStream(url, OUTPUTS);
  let text = '';
  res.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await until(() => text.endsWith(':\n\n:\n\n'));
  assert.equal(eventsOf(text).length, 1);
  res.destroy();
});

test('a reader that goes stops the source', async (t) => {
  const source = endless();
  const { url } = await open(t, { outputs: source.outputs });
  const res = await openStream(url, OUTPUTS);
  await once(res, 'data');
  res.destroy();
  await until(source.stopped);
});

test('a slow reader holds the source back, a reader that takes nothing is cut off', async (t) => {
  let asked = 0;
  let stopped = false;
  const payload = jsonPayload('x'.repeat(60_000));
  const { url } = await open(
    t,
    {
      async *outputs(_session, _after, signal) {
        signal.addEventListener('abort', () => {
          stopped = true;
        });
        for (let n = 1; ; n++) {
          asked = n;
          yield { n, bucket: 'out', name: `${n}`, payload };
        }
      },
    },
    { tickMs: 20, streamStallMs: 100 },
  );
  const res = await openStream(url, OUTPUTS);
  await until(() => stopped);
  // What fits into the buffers of two sockets, not what the source could give.
  assert.ok(asked < 1_000, String(asked));
  res.destroy();
});

test('closing the gateway ends streams without an end event, even of a source that ignores its signal', async (t) => {
  const { gateway, url } = await open(t, {
    async *outputs() {
      yield { n: 1, bucket: 'out', name: 'x', payload: jsonPayload(1) };
      await new Promise(() => {});
    },
  });
  const res = await openStream(url, OUTPUTS);
  let text = '';
  res.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await until(() => text.includes('output'));
  await Promise.all([gateway.close(), once(res, 'end')]);
  assert.doesNotMatch(text, /event: end/);
});

test('streams have a limit', async (t) => {
  const { url } = await open(t, { outputs: endless().outputs });
  const { STREAMS_MAX } = await import('./limits.ts');
  const streams = await Promise.all(Array.from({ length: STREAMS_MAX }, () => openStream(url, OUTPUTS)));
  const answer = await send(url, 'GET', OUTPUTS);
  assert.equal(answer.status, 429);
  assert.equal(answer.json().code, 'E_RATE_LIMITED');
  for (const stream of streams) stream.destroy();
});

test('logs are one JSON object a line', async (t) => {
  const { url, plane } = await open(t);
  const answer = await send(url, 'GET', `/v1/logs?app=shop&session=${SESSION}&tail=5`);
  assert.equal(answer.headers['content-type'], 'application/x-ndjson');
  const lines = answer.body.toString().split('\n');
  assert.deepEqual(
    lines.slice(0, 2).map((line) => JSON.parse(line).message),
    ['one', 'two'],
  );
  assert.deepEqual(lines.slice(2), ['']);
  assert.deepEqual(plane.calls.at(-1)?.args[0], { app: 'shop', session: SESSION, follow: false, tail: 5 });
  assert.equal((await send(url, 'GET', '/v1/logs?tail=-1')).json().parameter, 'tail');
  assert.equal((await send(url, 'GET', '/v1/logs?follow=yes')).json().parameter, 'follow');
});

test('followed logs come as they are written', async (t) => {
  const entries: ((entry: LogEntry) => void)[] = [];
  const { url } = await open(t, {
    async *logs() {
      for (;;) yield await new Promise<LogEntry>((resolve) => entries.push(resolve));
    },
  });
  const res = await openStream(url, '/v1/logs?follow=true');
  res.setEncoding('utf8');
  for (const message of ['a', 'b']) {
    await until(() => entries.length > 0);
    entries.pop()?.({ at: '', app: 'shop', version: 'v', level: 'info', message });
    const [line] = await once(res, 'data');
    assert.equal(JSON.parse(line).message, message);
  }
  res.destroy();
});
