// The first three answers of four: a slow copy of a model delays nobody.
//
//   resize ── tensors ──▶ classify0 … classify3 ── scores ──▶ average
//            immediate                           redundant, 3 of 4
//
// With `cancelLosers` the fourth copy's `ctx.signal` is aborted as soon as three have answered. Here one copy per request
// is made to straggle, and gives up when it is told to.
//
//   antrail invoke redundant-inference @photo.ppm

import { setTimeout as sleep } from 'node:timers/promises';
import { app, bucket, fn, immediate, redundant } from 'antrail';
import { parsePpm } from '../resize/image.ts';
import { COPIES, classify, LABELS, SIDE, stragglerOf, tensorOf } from './model.ts';

const NEEDED = 3;
/** Long enough that whoever waited for it would be seen to. */
const STRAGGLE_MS = 60_000;

export interface Scores {
  readonly copy: number;
  /** One per label. */
  readonly scores: readonly number[];
}

export interface Inference {
  readonly label: string;
  /** Means of the copies' scores. */
  readonly scores: readonly number[];
  /** Whose scores these are, lowest first. */
  readonly copies: readonly number[];
}

const resize = fn<Uint8Array>((ctx, [photo]) => {
  const image = parsePpm(photo.bytes);
  const object = ctx.createObject('tensors', SIDE * SIDE * 3 * Float32Array.BYTES_PER_ELEMENT);
  tensorOf(image, floatsOf(object.bytes));
  ctx.sendObject(object);
});

const copyOf = (copy: number) =>
  fn<Uint8Array>(
    async (ctx, [object]) => {
      const tensor = floatsOf(object.bytes);
      if (stragglerOf(tensor) === copy) {
        try {
          await sleep(STRAGGLE_MS, undefined, { signal: ctx.signal });
        } catch (error) {
          ctx.log.info('gave up', { copy, code: (ctx.signal.reason as { code?: string }).code });
          throw error;
        }
      }
      ctx.send('scores', { copy, scores: classify(tensor, copy) } satisfies Scores);
    },
    // A copy that waits leaves its instance to others.
    { concurrency: 16 },
  );

const average = fn<Scores>((ctx, inputs) => {
  const answers = inputs.map((input) => input.json<Scores>()).sort((a, b) => a.copy - b.copy);
  const scores = LABELS.map((_, i) => answers.reduce((sum, one) => sum + (one.scores[i] ?? 0), 0) / answers.length);
  const label = LABELS[scores.indexOf(Math.max(...scores))] ?? '';
  ctx.output({ label, scores, copies: answers.map(({ copy }) => copy) } satisfies Inference);
});

const copies = ['classify0', 'classify1', 'classify2', 'classify3'] as const;

export default app('redundant-inference', {
  entry: 'resize',
  functions: {
    resize,
    classify0: copyOf(0),
    classify1: copyOf(1),
    classify2: copyOf(2),
    classify3: copyOf(3),
    average,
  },
  buckets: {
    tensors: bucket({ on: { each: immediate({ run: copies }) } }),
    scores: bucket({
      on: {
        firstThree: redundant({ k: NEEDED, n: COPIES, sources: copies, cancelLosers: true, run: 'average' }),
      },
    }),
  },
});

function floatsOf(bytes: Uint8Array): Float32Array {
  return new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / Float32Array.BYTES_PER_ELEMENT);
}
