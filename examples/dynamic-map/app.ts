// A function over a list whose length only the request knows: one invocation per item, joined in the list's order.
//
//   split ── items ──▶ square × n ── squares ──▶ collect
//     │    immediate                    ▲ dynamicJoin
//     └── ctx.join: the names to wait for
//
// An empty list is a list too: then the join is complete at once, and `collect` runs with nothing.
//
//   antrail invoke dynamic-map '[3, 1, 2]'        [9, 1, 4]

import { app, bucket, dynamicJoin, fn, immediate, TerminalError } from 'antrail';

const split = fn<readonly number[]>((ctx, [list]) => {
  const numbers = list?.json() ?? [];
  if (!Array.isArray(numbers)) throw new TerminalError('give a list of numbers');
  const names = numbers.map((_, index) => String(index));
  // Before or after the sends: what has arrived when it is called counts.
  ctx.join('squares', names);
  for (const [index, number] of numbers.entries()) ctx.send('items', number, { name: String(index) });
});

const square = fn<number>((ctx, [item]) => {
  ctx.send('squares', item.json() ** 2, { name: item.name });
});

const collect = fn<number>((ctx, squares) => {
  // In the order of the names that were joined, whatever came first.
  ctx.output(squares.map((one) => one.json()));
});

export default app('dynamic-map', {
  entry: 'split',
  functions: { split, square, collect },
  buckets: {
    items: bucket({ on: { each: immediate({ run: 'square' }) } }),
    squares: bucket({ on: { all: dynamicJoin({ run: 'collect' }) } }),
  },
});
