// The app that suite `soak` deploys: a small session of everything that a session can leave behind.

import { app, bucket, dynamicJoin, fn, immediate } from '../../sdk/index.ts';

export const ANSWER = 3;

const begin = fn((ctx) => {
  ctx.join('joined', 2);
  ctx.send('parts', 1, { name: 'one' });
  ctx.send('parts', 2, { name: 'two' });
});
const part = fn<number>((ctx, [one]) => ctx.send('joined', one.json()));
const join = fn<number>((ctx, all) => ctx.output(all.reduce((sum, one) => sum + one.json<number>(), 0)));

export default app('bench-soak', {
  entry: 'begin',
  functions: { begin, part, join },
  buckets: {
    parts: bucket({ on: { each: immediate({ run: 'part' }) } }),
    joined: bucket({ on: { all: dynamicJoin({ run: 'join' }) } }),
  },
});
