// A photo becomes a thumbnail in three functions. Each reads the pixels where the one before wrote them: an object is
// memory that the app's functions share, and what is handed over is its place.
//
//   normalise ── normalised ──▶ halve ── halved ──▶ thumbnail ── thumbnails ──▶ the result
//        └───────────────────────┴──── facts ─────────┴──▶ report
//
//   antrail invoke resize @photo.ppm > thumbnail.ppm

import { app, bucket, type Ctx, dynamicGroup, type EpheObject, fn, immediate } from 'antrail';
import { beginPpm, checksumOf, parsePpm, ppmSize, rangeOf, shrink, stretch } from './image.ts';

export const THUMBNAIL_WIDTH = 200;

/** Where the bytes of an object lie. */
export interface Place {
  readonly bytes: number;
  readonly shared: boolean;
  /** Offset in the shared memory: the same at sender and receiver when nothing was copied. */
  readonly offset: number;
}

/** What one stage saw. */
export interface Fact {
  readonly stage: 'normalise' | 'halve' | 'thumbnail';
  readonly got: Place;
  readonly made: Place;
  readonly width: number;
  readonly height: number;
  /** Of the file it made. */
  readonly checksum: string;
}

const normalise = fn<Uint8Array>((ctx, [photo]) => {
  const { width, height, pixels } = parsePpm(photo.bytes);
  const object = ctx.createObject('normalised', ppmSize(width, height));
  stretch(pixels, beginPpm(object.bytes, width, height), rangeOf(pixels));
  tell(ctx, 'normalise', photo, object, width, height);
  ctx.sendObject(object);
});

const halve = fn<Uint8Array>((ctx, [photo]) => {
  const image = parsePpm(photo.bytes);
  const [width, height] = [Math.floor(image.width / 2), Math.floor(image.height / 2)];
  const object = ctx.createObject('halved', ppmSize(width, height));
  shrink(image, beginPpm(object.bytes, width, height), 2);
  tell(ctx, 'halve', photo, object, width, height);
  ctx.sendObject(object);
});

const thumbnail = fn<Uint8Array>((ctx, [photo]) => {
  const image = parsePpm(photo.bytes);
  const factor = Math.max(1, Math.floor(image.width / THUMBNAIL_WIDTH));
  const [width, height] = [Math.floor(image.width / factor), Math.floor(image.height / factor)];
  const object = ctx.createObject('thumbnails', 'thumbnail.ppm', ppmSize(width, height));
  shrink(image, beginPpm(object.bytes, width, height), factor);
  tell(ctx, 'thumbnail', photo, object, width, height);
  // The session's first output is the answer to a synchronous call.
  ctx.sendObject(object, { output: true });
});

const report = fn<Fact>((ctx, facts) => {
  const stages = facts.map((fact) => fact.json()).sort((a, b) => b.made.bytes - a.made.bytes);
  ctx.output(stages);
});

export default app('resize', {
  entry: 'normalise',
  functions: { normalise, halve, thumbnail, report },
  buckets: {
    normalised: bucket({ on: { each: immediate({ run: 'halve' }) } }),
    halved: bucket({ on: { each: immediate({ run: 'thumbnail' }) } }),
    thumbnails: bucket({}),
    facts: bucket({ on: { all: dynamicGroup({ producers: ['thumbnail'], run: 'report' }) } }),
  },
});

function tell(ctx: Ctx, stage: Fact['stage'], got: EpheObject, made: EpheObject, width: number, height: number): void {
  const checksum = checksumOf(made.bytes);
  ctx.send('facts', { stage, got: placeOf(got), made: placeOf(made), width, height, checksum } satisfies Fact);
}

function placeOf({ bytes }: EpheObject): Place {
  const shared = bytes.buffer instanceof SharedArrayBuffer;
  return { bytes: bytes.length, shared, offset: bytes.byteOffset };
}
