// Goal: a video that is filtered frame by frame, side by side, is the one filtered from its first frame to its last; no
// frame is copied on the way to its reader. Method: a real server; the expected video is computed here, by a convolution.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'antrail/client';
import { samplesOf, sumOf } from '../../examples/metrics.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';
import type { VideoReport } from '../../examples/video/app.ts';
import { HEAD_BYTES, headOf, syntheticVideo } from '../../examples/video/frames.ts';
import { Served, until } from '../fixtures/served.ts';

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/video/app.ts');
});
after(() => server?.close());

const client = () => connect<typeof import('../../examples/video/app.ts').default>({ app: 'video', url: server.url });

async function filtered(video: Uint8Array): Promise<{ video: Uint8Array; report: VideoReport }> {
  const handle = await client().start('split', video);
  const values: unknown[] = [];
  for await (const { value } of handle.outputs()) values.push(value);
  await handle.result();
  assert.equal(values.length, 2);
  return { video: values[0] as Uint8Array, report: values[1] as VideoReport };
}

test('sixty frames come back filtered and in order, none copied on its way', async () => {
  const [width, height, frames] = [200, 150, 60];
  const input = syntheticVideo(width, height, frames, 1);
  const { video, report } = await filtered(input);
  assert.ok(Buffer.from(video).equals(expected(input, width, height, frames)));
  assert.deepEqual(report, { frames, readInPlace: frames, joinedInPlace: frames });
  const samples = samplesOf(await server.client.metrics());
  assert.equal(sumOf(samples, 'antrail_object_hand_offs_zero_copy_total', { app: 'video' }), 2 * frames);
});

test('videos of no frame, one, and tiny ones', async () => {
  for (const [width, height, frames] of [
    [8, 8, 0],
    [8, 8, 1],
    [2, 2, 3],
    [1, 300, 2],
  ] as const) {
    const input = syntheticVideo(width, height, frames, 2);
    const { video, report } = await filtered(input);
    assert.deepEqual(Buffer.from(video), expected(input, width, height, frames));
    assert.equal(report.frames, frames);
  }
});

test('twelve videos at once do not mix their frames', async () => {
  const shapes = Array.from({ length: 12 }, (_, i) => [160 + i, 90 + i, 5 + i] as const);
  const inputs = shapes.map(([width, height, frames], i) => syntheticVideo(width, height, frames, 100 + i));
  const videos = await Promise.all(inputs.map(filtered));
  for (const [i, [width, height, frames]] of shapes.entries()) {
    assert.ok(Buffer.from(videos[i]?.video ?? []).equals(expected(inputs[i] as Uint8Array, width, height, frames)));
  }
});

test('refuses what is no video', async () => {
  await assert.rejects(client().invoke('split', Buffer.from('x')), { message: /a head of 12 bytes/ });
  await assert.rejects(client().invoke('split', headAndOneByte()), {
    message: /3 frames of 4 × 4 have 48 bytes, not 1/,
  });
  await assert.rejects(client().invoke('split'), { message: /give a video/ });
});

test('a video whose process is killed between two frames is filtered all the same', async () => {
  const file = new URL('../../../examples/video/app.ts', import.meta.url).pathname;
  const served = await Served.start();
  try {
    await served.deploy(`
      import { app, fn } from 'antrail';
      import video from ${JSON.stringify(file)};
      const filter = fn(async (ctx, inputs) => {
        await new Promise((resolve) => setTimeout(resolve, 50));
        return video.functions.filter.handler(ctx, inputs);
      });
      export default app('slow-video', {
        entry: 'split', functions: { ...video.functions, filter }, buckets: video.buckets,
      });`);
    const [width, height, frames] = [160, 120, 30];
    const input = syntheticVideo(width, height, frames, 3);
    const session = await served.start('slow-video/split', input);
    await until(async () => {
      const { invocations = [] } = (await served.get(`/v1/sessions/${session}/trace`)).json;
      return invocations.some(
        (one: { function: string; attempts: { outcome: string }[] }) =>
          one.function === 'filter' && one.attempts.at(-1)?.outcome === 'ok',
      );
    }, 'a frame is filtered');
    assert.equal((await served.session(session)).state, 'running');
    process.kill(await served.host('slow-video'), 'SIGKILL');
    const { bytes } = await served.result(session);
    assert.ok(bytes.equals(expected(input, width, height, frames)));
  } finally {
    await served.close();
  }
});

function headAndOneByte(): Uint8Array {
  return Buffer.concat([headOf(4, 4, 3), Buffer.of(0)]);
}

/** Both kernels of the filter over every neighbourhood, frame after frame. */
function expected(input: Uint8Array, width: number, height: number, frames: number): Buffer {
  const across = [-1, 0, 1, -2, 0, 2, -1, 0, 1];
  const down = [-1, -2, -1, 0, 0, 0, 1, 2, 1];
  const output = Buffer.alloc(input.length);
  output.set(input.subarray(0, HEAD_BYTES));
  for (let frame = 0; frame < frames; frame++) {
    const begin = HEAD_BYTES + frame * width * height;
    const at = (x: number, y: number) => begin + y * width + x;
    for (let y = 1; y + 1 < height; y++) {
      for (let x = 1; x + 1 < width; x++) {
        let [sumAcross, sumDown] = [0, 0];
        for (let k = 0; k < 9; k++) {
          const pixel = input[at(x + (k % 3) - 1, y + Math.floor(k / 3) - 1)] ?? Number.NaN;
          sumAcross += (across[k] ?? 0) * pixel;
          sumDown += (down[k] ?? 0) * pixel;
        }
        output[at(x, y)] = Math.min(Math.abs(sumAcross) + Math.abs(sumDown), 255);
      }
    }
  }
  return output;
}
