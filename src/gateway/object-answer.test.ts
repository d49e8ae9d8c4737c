// Goal: however many read a large object and however slowly, the gateway holds one part for each, and closes what it opened
// whatever ends the answer. Method: a source that counts what is asked of it, behind a real loopback socket whose other end
// reads when the test says so.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type TestContext, test } from 'node:test';
import { OBJECT_PART_BYTES } from '../protocol/index.ts';
import { createGateway } from './index.ts';
import { scriptedControlPlane } from './internal.ts';
import type { GatewayTiming } from './limits.ts';

const SIZE = 40 * OBJECT_PART_BYTES + 17;
const PATH = '/v1/apps/shop/buckets/b/objects/o';

async function open(t: TestContext, timing: Partial<GatewayTiming> = {}, failsAt = Number.POSITIVE_INFINITY) {
  const counts = { opened: 0, closed: 0, reads: 0, furthest: 0 };
  const plane = scriptedControlPlane({
    openObject: async () => {
      counts.opened++;
      let isOpen = true;
      return {
        contentType: 'application/octet-stream',
        size: SIZE,
        version: 'v',
        read: async (start, end) => {
          assert.ok(isOpen, 'what is read is open');
          if (start >= failsAt) throw new Error('the disk is gone');
          counts.reads++;
          counts.furthest = Math.max(counts.furthest, start);
          const part = new Uint8Array(Math.min(end - start, OBJECT_PART_BYTES));
          for (let i = 0; i < part.length; i++) part[i] = (start + i) % 251;
          return part;
        },
        close: () => {
          if (isOpen) counts.closed++;
          isOpen = false;
        },
      };
    },
  });
  const gateway = await createGateway(plane, { host: '127.0.0.1', port: 0, timing, log: () => {} });
  t.after(() => gateway.close());
  return { url: gateway.url, counts };
}

async function begin(url: string, headers: Record<string, string> = {}): Promise<IncomingMessage> {
  const request = get(`${url}${PATH}`, { headers, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => {});
  return response;
}

test('an object of many parts arrives whole, in order, and so do ranges of it', async (t) => {
  const { url, counts } = await open(t);
  for (const [range, start, end] of [
    [undefined, 0, SIZE],
    ['bytes=1000000-3200000', 1_000_000, 3_200_001],
    [`bytes=-${3 * OBJECT_PART_BYTES}`, SIZE - 3 * OBJECT_PART_BYTES, SIZE],
  ] as const) {
    const response = await begin(url, range === undefined ? {} : { range });
    const body = Buffer.concat(await response.toArray());
    assert.equal(response.statusCode, range === undefined ? 200 : 206);
    assert.equal(body.length, end - start);
    for (let i = 0; i < body.length; i += 997) assert.equal(body[i], (start + i) % 251);
  }
  assert.equal(counts.closed, counts.opened);
});

test('a reader that takes nothing is asked for no more than the sockets hold, and is cut off', async (t) => {
  const { url, counts } = await open(t, { tickMs: 20, streamStallMs: 60 });
  const slow = await Promise.all(Array.from({ length: 32 }, () => begin(url)));
  for (const response of slow) response.pause();
  while (counts.closed < 32) await new Promise((resolve) => setImmediate(resolve));
  // What a loopback socket takes, not the object.
  assert.ok(counts.reads < 32 * 20, `${counts.reads} parts were asked for`);
  assert.ok(counts.furthest < SIZE - OBJECT_PART_BYTES, `part at ${counts.furthest} was asked for`);
  for (const response of slow) response.destroy();
});

test('a reader that goes closes what it read', async (t) => {
  const { url, counts } = await open(t);
  const response = await begin(url);
  response.destroy();
  while (counts.closed === 0) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(counts.closed, 1);
});

test('an object that cannot be read to its end is cut, not ended', async (t) => {
  const { url, counts } = await open(t, {}, 3 * OBJECT_PART_BYTES);
  const response = await begin(url);
  await assert.rejects(response.toArray(), /aborted/);
  assert.equal(counts.closed, 1);
});
