// The app that suite `idle` deploys, ten times over: with a bit of everything that could keep a host awake.

import { app, bucket, dynamicGroup, fn, immediate } from '../../sdk/index.ts';

const fan = fn<number>((ctx, [count]) => {
  for (let i = 0; i < count.json(); i++) ctx.send('parts', i);
});
const part = fn<number>((ctx, [one]) => ctx.send('sums', one.json()));
const sum = fn<number>((ctx, all) => ctx.output(all.length));

export default app('bench-idle', {
  entry: 'fan',
  functions: { fan, part, sum },
  buckets: {
    parts: bucket({ on: { each: immediate({ run: 'part' }) } }),
    sums: bucket({ on: { all: dynamicGroup({ producers: ['part'], run: 'sum' }) } }),
  },
});
