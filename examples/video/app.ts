// Frames of a video are filtered side by side and joined in order.
//
//   split ── frames, parts of the input ──▶ filter × n ── filtered ──▶ join ──▶ the video; a report
//     │                          immediate                  ▲ dynamicJoin
//     └── ctx.join: the frames to wait for ─────────────────┘
//
// A frame is a view of the video that came in, a filtered frame a view of memory that its filter made: whoever reads one
// reads it where it was written.
//
//   antrail invoke video @clip.gray > edges.gray

import { app, bucket, dynamicJoin, fn, immediate, TerminalError } from 'antrail';
import { edges, HEAD_BYTES, headOf, shapeOf } from './frames.ts';

/** The session's second output. */
export interface VideoReport {
  readonly frames: number;
  /** Frames that `filter` read in the very memory of the input. */
  readonly readInPlace: number;
  /** Filtered frames that `join` read where `filter` had written them. */
  readonly joinedInPlace: number;
}

/** Where bytes begin in the object store's memory. */
interface Place {
  readonly frame: string;
  readonly offset: number;
}

const split = fn<Uint8Array>((ctx, [video]) => {
  if (video === undefined) throw new TerminalError('give a video');
  const { frames, frameBytes } = shapeOf(video.bytes);
  const names = Array.from({ length: frames }, (_, i) => `frame-${i}`);
  ctx.send('shapes', video.bytes.subarray(0, HEAD_BYTES), { name: 'head' });
  ctx.join('filtered', names);
  for (const [i, name] of names.entries()) {
    const begin = HEAD_BYTES + i * frameBytes;
    const frame = video.bytes.subarray(begin, begin + frameBytes);
    ctx.send('places', { frame: name, offset: frame.byteOffset } satisfies Place, { name: `in-${name}` });
    ctx.send('frames', frame, { name });
  }
});

const filter = fn<Uint8Array>(async (ctx, [frame]) => {
  const { width, height } = shapeOf((await ctx.getObject('shapes', 'head')).bytes);
  const object = ctx.createObject('filtered', frame.name, frame.size);
  edges(frame.bytes, object.bytes, width, height);
  ctx.send('places', { frame: frame.name, offset: frame.bytes.byteOffset } satisfies Place, {
    name: `read-${frame.name}`,
  });
  ctx.send('places', { frame: frame.name, offset: object.bytes.byteOffset } satisfies Place, {
    name: `made-${frame.name}`,
  });
  ctx.sendObject(object);
});

const join = fn<Uint8Array>(async (ctx, frames) => {
  const head = (await ctx.getObject('shapes', 'head')).bytes;
  const { width, height, frameBytes } = shapeOf(head);
  // Inputs are in the order of the names that were joined.
  const video = ctx.createObject('videos', 'filtered', HEAD_BYTES + frames.length * frameBytes);
  video.bytes.set(headOf(width, height, frames.length));
  for (const [i, frame] of frames.entries()) video.bytes.set(frame.bytes, HEAD_BYTES + i * frameBytes);
  ctx.sendObject(video, { output: true });

  const offset = async (what: 'in' | 'read' | 'made', name: string) =>
    (await ctx.getObject<Place>('places', `${what}-${name}`)).json().offset;
  let [readInPlace, joinedInPlace] = [0, 0];
  for (const { name, bytes } of frames) {
    if ((await offset('in', name)) === (await offset('read', name))) readInPlace++;
    if ((await offset('made', name)) === bytes.byteOffset) joinedInPlace++;
  }
  ctx.output({ frames: frames.length, readInPlace, joinedInPlace } satisfies VideoReport);
});

export default app('video', {
  entry: 'split',
  functions: { split, filter, join },
  buckets: {
    shapes: bucket({}),
    places: bucket({}),
    frames: bucket({ on: { each: immediate({ run: 'filter' }) } }),
    filtered: bucket({ on: { all: dynamicJoin({ run: 'join' }) } }),
    videos: bucket({}),
  },
});
