import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { encodeFrame, type Frame, FrameDecoder } from './frame.ts';
import { LANE_MARK, laneHeaderBytesMax } from './lane-frame.ts';
import { INPUT_BUCKET } from './manifest.ts';
import { CONTENT_BYTES, CONTENT_JSON } from './values.ts';

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

const contentType = fc.oneof(
  fc.constant(CONTENT_JSON),
  fc.constant(CONTENT_BYTES),
  fc.string(),
  fc.string({ unit: 'grapheme' }),
);
const blob = fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.constant(new Uint8Array(20_000).fill(7)));
const run = fc.nat();
const ms = fc.double({ min: 0, noNaN: true });
const started = fc
  .record({
    session: fc.string({ unit: 'grapheme' }),
    run,
    name: fc.string({ maxLength: 1_100 }),
    priority: fc.integer(),
  })
  .chain(({ session, run, name, priority }) =>
    fc
      .record({
        input: fc.option(fc.record({ contentType, blob })),
        group: fc.constantFrom('', '', '', 'g'),
        rest: fc.record(
          { deadlineInMs: ms, givenAtMs: fc.nat(), open: fc.constant({ idleTimeoutMs: 5 }) },
          { requiredKeys: [] },
        ),
      })
      .map(({ input, group, rest }) => {
        const inputs =
          input === null
            ? []
            : [
                {
                  bucket: INPUT_BUCKET,
                  name: '0',
                  group,
                  session,
                  contentType: input.contentType,
                  size: input.blob.length,
                },
              ];
        const { givenAtMs, ...others } = rest;
        const header = {
          type: 'session-start' as const,
          session,
          run,
          entries: [{ function: name, inputs }],
          priority,
          durable: false,
          ...others,
          ...(givenAtMs === undefined || givenAtMs === 0 ? {} : { givenAtMs }),
        };
        return { header, blobs: input === null ? [] : [input.blob] };
      }),
  );
const outcome = fc
  .record({
    said: fc.record({ session: fc.string(), run, final: fc.boolean(), busyMs: ms }, { noNullPrototype: true }),
    payload: fc.option(fc.record({ contentType, blob })),
    account: fc.option(fc.record({ objects: fc.nat(), bytes: fc.nat(), meteredMs: ms }, { noNullPrototype: true })),
  })
  .map(({ said, payload, account }) => ({
    header: {
      type: 'session-outcome' as const,
      ...said,
      ...(payload === null ? {} : { payload: { contentType: payload.contentType, size: payload.blob.length } }),
      ...(account === null ? {} : { account }),
    },
    blobs: payload === null ? [] : [payload.blob],
  }));

test('the messages of lanes come out as they went in, whether or not they fit their layout', () => {
  let fitted = 0;
  fc.assert(
    fc.property(
      fc.array(fc.oneof(started, outcome), { minLength: 1, maxLength: 5 }),
      fc.nat({ max: 50 }),
      (sent, cut) => {
        const got: Frame[] = [];
        const decoder = new FrameDecoder({ blobBytesMax: 1_000_000 });
        const bytes = Buffer.concat(sent.flatMap(({ header, blobs }) => encodeFrame(header, blobs)));
        for (const part of [bytes.subarray(0, cut), bytes.subarray(cut)])
          decoder.push(Buffer.from(part), (f) => got.push(f));
        const plain = (list: readonly { header: unknown; blobs: readonly Uint8Array[] }[]) =>
          list.map((f) => ({ header: f.header, blobs: f.blobs.map((b) => [...b]) }));
        assert.deepEqual(plain(got), plain(sent));
        fitted += sent.filter(({ header, blobs }) => laneHeaderBytesMax(header, blobs) > 0).length;
      },
    ),
    { numRuns: 300 },
  );
  assert.ok(fitted > 100, 'most of them fit');
});

test('a header that only begins like one of a lane breaks the connection', () => {
  const [good] = encodeFrame({ type: 'session-outcome', session: 'e1-a', run: 1, final: true, busyMs: 1 });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat({ max: 60 }), (noise, from) => {
      const frame = Buffer.from(good as Uint8Array);
      frame.set(noise.subarray(0, Math.max(0, frame.length - 7 - from)), Math.min(7 + from, frame.length));
      assert.equal(frame[6], LANE_MARK);
      try {
        new FrameDecoder({ blobBytesMax: 10 }).push(frame, () => {});
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'E_PROTOCOL');
      }
    }),
  );
});

test('a frame with more bytes than allowed breaks the connection', () => {
  const decoder = new FrameDecoder({ blobBytesMax: 10 });
  const [bytes] = encodeFrame({}, [new Uint8Array(11)]);
  assert.throws(() => decoder.push(bytes as Uint8Array, () => {}), { code: 'E_PROTOCOL' });
});
