// The app that suite `overload` deploys: a chain of functions, each of which works a little and calls the next.

import { app, fn } from '../../sdk/index.ts';

export const CHAIN = 16;
/** About 0.2 ms of a core of 2026: a function that does nothing would make the machine spend itself on refusals. */
const WORK_STEPS = 200_000;

let seed = 1;
function work(): void {
  let x = seed;
  for (let i = 0; i < WORK_STEPS; i++) x = (Math.imul(x, 1_664_525) + 1_013_904_223) | 0;
  seed = x;
}

const step = fn<number>((ctx, [left]) => {
  work();
  const after = left.json() - 1;
  if (after > 0) ctx.call('step', after);
  else ctx.output(CHAIN);
});

export default app('bench-overload', { entry: 'step', functions: { step } });
