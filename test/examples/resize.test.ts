// Goal: a 12-megapixel image goes through three functions, its pixels right and never copied between them. Method: the
// real server for the content, against a reference computed here; an app host in this process for its own figures.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'antrail/client';
import { samplesOf, sumOf } from '../../examples/metrics.ts';
import type { Fact } from '../../examples/resize/app.ts';
import { checksumOf, parsePpm, syntheticPpm } from '../../examples/resize/image.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';
import { hostOfApp } from './fixtures/host-of-app.ts';

type Resize = typeof import('../../examples/resize/app.ts').default;

const WIDTH = 4_000;
const HEIGHT = 3_000;
const photo = syntheticPpm(WIDTH, HEIGHT, 12);

describe('resize', () => {
  let server: ExampleServer;
  before(async () => {
    server = await openServer();
    await server.deploy('examples/resize/app.ts');
  });
  after(() => server?.close());

  test('answers with the thumbnail, and reports that no hand-over copied the pixels', async () => {
    const client = connect<Resize>({ app: 'resize', url: server.url });
    const handle = await client.start('normalise', photo);
    const values: unknown[] = [];
    for await (const output of handle.outputs()) values.push(output.value);
    const [file, facts, ...more] = values as [Uint8Array, readonly Fact[]];
    assert.equal(more.length, 0);
    assert.deepEqual(Buffer.from(await handle.result()), Buffer.from(file));

    const { thumbnail, halved, normalised } = reference(parsePpm(photo).pixels);
    const image = parsePpm(file);
    assert.deepEqual([image.width, image.height], [200, 150]);
    assert.ok(Buffer.from(image.pixels).equals(thumbnail), 'the thumbnail is the reference’s');
    assert.deepEqual(
      facts.map(({ stage, width, height, checksum }) => ({ stage, width, height, checksum })),
      [
        { stage: 'normalise', width: 4_000, height: 3_000, checksum: checksumOf(ppm(4_000, 3_000, normalised)) },
        { stage: 'halve', width: 2_000, height: 1_500, checksum: checksumOf(ppm(2_000, 1_500, halved)) },
        { stage: 'thumbnail', width: 200, height: 150, checksum: checksumOf(file) },
      ],
    );
    assertNotCopied(facts);

    const samples = samplesOf(await server.client.metrics());
    const app = 'resize';
    assert.equal(sumOf(samples, 'antrail_object_hand_offs_zero_copy_total', { app }), 2);
    assert.ok(sumOf(samples, 'antrail_object_bytes_moved_total', { app }) > photo.length);
    assert.equal(sumOf(samples, 'antrail_attempts_started_total', { app }), 4);
    const timed = samples.filter(({ name, value }) => name === 'antrail_hop_seconds' && value >= 0);
    assert.equal(timed.length, 6, 'p50 and p99 of three functions that triggers run');
  });

  test('refuses what is no image, and says what it wants', async () => {
    const client = connect<Resize>({ app: 'resize', url: server.url });
    await assert.rejects(client.invoke('normalise', Buffer.from('GIF89a')), { message: /binary PPM/ });
    await assert.rejects(client.invoke('normalise', Buffer.from('P6\n2 2\n255\nabc')), { message: /have 12 bytes/ });
  });
});

test('the host counts both hand-overs as zero-copy, and frees the images', async () => {
  const host = await hostOfApp('examples/resize/app.ts');
  try {
    const [width, height] = [1_200, 900];
    const { message, outputs } = await host.run('normalise', syntheticPpm(width, height, 3));
    assert.equal(message.state, 'completed', JSON.stringify(message.error));
    assertNotCopied(JSON.parse(Buffer.from(outputs[1]?.bytes ?? []).toString()));
    const stats = await host.stats();
    assert.equal(stats.zeroCopyHandOffs, 2, 'normalise to halve to thumbnail');
    // What halve and thumbnail got, and three small facts.
    const moved = stats.objectBytesMoved - width * height * 3 - (width * height * 3) / 4;
    assert.ok(moved > 0 && moved < 5_000, `${stats.objectBytesMoved} bytes moved`);
    assert.equal(stats.objects, 0);
    assert.ok(stats.memoryBytes < 1_000_000, `${stats.memoryBytes} bytes are left`);
  } finally {
    await host.close();
  }
});

/** What a stage got lies where the one before made it. */
function assertNotCopied(facts: readonly Fact[]): void {
  assert.deepEqual(
    facts.map(({ stage }) => stage),
    ['normalise', 'halve', 'thumbnail'],
  );
  for (const [i, { got, made, stage }] of facts.entries()) {
    assert.ok(got.shared && made.shared, `${stage} reads and writes shared memory`);
    if (i > 0) assert.deepEqual(got, facts[i - 1]?.made, `${stage} reads where the stage before wrote`);
  }
}

/** The three stages in floating point, pixel by pixel. */
function reference(pixels: Uint8Array): { normalised: Buffer; halved: Buffer; thumbnail: Buffer } {
  let low = 255;
  let high = 0;
  for (let i = 0; i < pixels.length; i++) {
    low = Math.min(low, pixels[i] as number);
    high = Math.max(high, pixels[i] as number);
  }
  const normalised = Buffer.alloc(pixels.length);
  for (let i = 0; i < pixels.length; i++) {
    normalised[i] = Math.floor((((pixels[i] as number) - low) * 255) / (high - low) + 0.5);
  }
  const halved = boxMeans(normalised, WIDTH, HEIGHT, 2);
  return { normalised, halved, thumbnail: boxMeans(halved, WIDTH / 2, HEIGHT / 2, 10) };
}

/** Adds every pixel to the sum of its box, then divides. */
function boxMeans(pixels: Buffer, width: number, height: number, factor: number): Buffer {
  const sums = new Float64Array((width / factor) * (height / factor) * 3);
  for (let at = 0; at < pixels.length; at++) {
    const pixel = Math.floor(at / 3);
    const box =
      Math.floor(Math.floor(pixel / width) / factor) * (width / factor) + Math.floor((pixel % width) / factor);
    const sum = box * 3 + (at % 3);
    sums[sum] = (sums[sum] as number) + (pixels[at] as number);
  }
  return Buffer.from(sums.map((sum) => Math.floor(sum / (factor * factor) + 0.5)));
}

function ppm(width: number, height: number, pixels: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`P6\n${width} ${height}\n255\n`), pixels]);
}
