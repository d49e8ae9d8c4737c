import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeFrame, type Frame, FrameDecoder } from './frame.ts';

// Goal: frames come out as they went in, however the byte stream is cut. Method: random frames, random cuts.
const frames = fc.array(
  fc.record({
    header: fc.record(
      { type: fc.string(), n: fc.integer(), list: fc.array(fc.string(), { maxLength: 3 }) },
      { noNullPrototype: true },
    ),
    blobs: fc.array(fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(new Uint8Array(20_000).fill(7))), {
      maxLength: 4,
    }),
  }),
  { maxLength: 6 },
);

for (const allocates of [false, true]) {
  test(`frames survive any cut of the stream (own memory: ${allocates})`, () => {
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1 }), (sent, cuts) => {
        const bytes = Buffer.concat(sent.flatMap((f) => encodeFrame(f.header, f.blobs)));
        const got: Frame[] = [];
        const decoder = new FrameDecoder({
          blobBytesMax: 1_000_000,
          ...(allocates ? { allocate: (_h: unknown, _i: number, size: number) => new Uint8Array(size) } : {}),
        });
        let at = 0;
        for (let i = 0; at < bytes.length; i++) {
          const size = cuts[i % cuts.length] ?? 1;
          decoder.push(Buffer.from(bytes.subarray(at, at + size)), (frame) => got.push(frame));
          at += size;
        }
        const plain = (list: readonly { header: unknown; blobs: readonly Uint8Array[] }[]) =>
          list.map((f) => ({ header: f.header, blobs: f.blobs.map((b) => [...b]) }));
        assert.deepEqual(plain(got), plain(sent));
      }),
      { numRuns: 150 },
    );
  });
}

test('a frame with more bytes than allowed breaks the connection', () => {
  const decoder = new FrameDecoder({ blobBytesMax: 10 });
  const [bytes] = encodeFrame({}, [new Uint8Array(11)]);
  assert.throws(() => decoder.push(bytes as Uint8Array, () => {}), { code: 'E_PROTOCOL' });
});
