// Goal: a review is composed of all its parts, kept, and read back, one per request. Method: a real server; what should be
// kept is made here.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'antrail/client';
import type { Review, ReviewRequest } from '../../examples/media-review/app.ts';
import { MOVIES } from '../../examples/media-review/movies.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/media-review/app.ts');
});
after(() => server?.close());

const media = () =>
  connect<typeof import('../../examples/media-review/app.ts').default>({ app: 'media-review', url: server.url });
const submit = (request: ReviewRequest) => media().invoke<Review>('web', request);

const REQUEST: ReviewRequest = { user: 'ann', title: 'Pheromone', text: '  So \n many   legs. ', rating: 4.4 };

test('a review has its parts, and is kept under its id after its session', async () => {
  const handle = await media().start<Review>('web', REQUEST);
  const review = await handle.result();
  assert.deepEqual(review, {
    id: `r-${handle.session}`,
    user: 'ann',
    movie: 2,
    text: 'So many legs.',
    words: 3,
    rating: 4,
  });
  assert.deepEqual(await media().get('reviews', review.id), review);
  const { invocations } = await handle.trace();
  assert.deepEqual(invocations.map((one) => one.function).sort(), [
    'compose',
    'movieId',
    'rating',
    'store',
    'text',
    'uniqueId',
    'web',
  ]);
});

test('a hundred reviews at once are each their own', async () => {
  const requests = Array.from({ length: 100 }, (_, i) => ({
    user: `user-${i}`,
    title: MOVIES[i % MOVIES.length] ?? '',
    text: 'x '.repeat(i),
    rating: i % 6,
  }));
  const reviews = await Promise.all(requests.map(submit));
  for (const [i, review] of reviews.entries()) {
    const { id, ...rest } = review;
    assert.deepEqual(rest, {
      user: `user-${i}`,
      movie: i % MOVIES.length,
      text: Array.from({ length: Math.min(i, 128) }, () => 'x').join(' '),
      words: i,
      rating: i % 6,
    });
    assert.deepEqual(await media().get('reviews', id), review);
  }
  assert.equal(new Set(reviews.map(({ id }) => id)).size, 100);
});

test('a review of a film that does not exist fails with the reason, and nothing is kept', async () => {
  const handle = await media().start('web', { ...REQUEST, title: 'Spiders' });
  await assert.rejects(handle.result(), { code: 'E_FUNCTION_FAILED', message: /no film called Spiders/ });
  const { state, unfired } = await handle.info();
  assert.equal(state, 'failed');
  assert.equal(unfired.length, 1, 'the set that was not filled is named');
  assert.match(JSON.stringify(unfired), /movie/);
  await assert.rejects(media().get('reviews', `r-${handle.session}`), { code: 'E_OBJECT_UNKNOWN' });
  await assert.rejects(submit({ ...REQUEST, rating: 6 }), { message: /from 0 to 5/ });
});
