// A review of a film is composed of parts that four functions make side by side, then kept: the "compose review" of the
// media service in the serverless literature.
//
//              ┌▶ uniqueId ─┐
//   web ──▶    ├▶ text     ─┤ parts ──▶ compose ──▶ store ──▶ reviews (kept)
//    requests  ├▶ movieId  ─┤   bySet
//   immediate  └▶ rating   ─┘
//
//   antrail invoke media-review '{"user": "ann", "title": "The Ants", "text": "So many legs.", "rating": 4}'
//   curl http://127.0.0.1:7070/v1/apps/media-review/buckets/reviews/objects/<id>

import { app, bucket, bySet, fn, immediate, TerminalError } from 'antrail';
import { MOVIES } from './movies.ts';

export interface ReviewRequest {
  readonly user: string;
  readonly title: string;
  readonly text: string;
  /** 0 to 5. */
  readonly rating: number;
}

export interface Review {
  readonly id: string;
  readonly user: string;
  readonly movie: number;
  readonly text: string;
  readonly words: number;
  readonly rating: number;
}

const TEXT_CHARS_MAX = 256;
const PARTS = ['id', 'text', 'movie', 'rating'] as const;

const web = fn<ReviewRequest>((ctx, [request]) => {
  // One object, four functions: each gets the same bytes.
  ctx.send('requests', request, { name: 'request' });
});

const uniqueId = fn<ReviewRequest>((ctx, [request]) => {
  // The same in every attempt, and nowhere else.
  ctx.send('parts', { id: `r-${ctx.session}`, user: request.json().user }, { name: 'id' });
});

const text = fn<ReviewRequest>((ctx, [request]) => {
  const clean = request.json().text.replace(/\s+/g, ' ').trim().slice(0, TEXT_CHARS_MAX);
  ctx.send('parts', { text: clean, words: clean === '' ? 0 : clean.split(' ').length }, { name: 'text' });
});

const movieId = fn<ReviewRequest>((ctx, [request]) => {
  const { title } = request.json();
  const movie = MOVIES.indexOf(title);
  if (movie < 0) throw new TerminalError(`there is no film called ${title}`);
  ctx.send('parts', { movie }, { name: 'movie' });
});

const rating = fn<ReviewRequest>((ctx, [request]) => {
  const { rating } = request.json();
  if (!(rating >= 0 && rating <= 5)) throw new TerminalError(`a rating is from 0 to 5, not ${rating}`);
  ctx.send('parts', { rating: Math.round(rating) }, { name: 'rating' });
});

const compose = fn<Partial<Review>>((ctx, parts) => {
  const review = Object.assign({}, ...parts.map((part) => part.json<Partial<Review>>())) as Review;
  ctx.send('composed', review);
});

const store = fn<Review>((ctx, [review]) => {
  // Kept under its id, and the answer.
  ctx.send('reviews', review, { name: review.json().id, persist: true, output: true });
});

export default app('media-review', {
  entry: 'web',
  functions: { web, uniqueId, text, movieId, rating, compose, store },
  buckets: {
    requests: bucket({ on: { each: immediate({ run: ['uniqueId', 'text', 'movieId', 'rating'] }) } }),
    parts: bucket({ on: { all: bySet({ names: PARTS, run: 'compose' }) } }),
    composed: bucket({ on: { each: immediate({ run: 'store' }) } }),
    reviews: bucket({}),
  },
});
