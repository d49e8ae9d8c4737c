// How risky is a place? Three functions in a row, called synchronously: the smallest workload of the Pheromone paper's
// first version.
//
//   filterLoc ── places ──▶ queryCount ── counts ──▶ riskLevel ──▶ "count,level"
//             immediate               immediate
//
//   antrail invoke risk-query '["user:7", "loc:Harbour"]'        "57,High"

import { app, bucket, fn, immediate, TerminalError } from 'antrail';

/** Confirmed cases; every other place has none. */
export const CASES: Readonly<Record<string, number>> = {
  Harbour: 57,
  Airport: 33,
  Market: 21,
  Station: 20,
  Campus: 8,
  Stadium: 3,
  Library: 1,
};
const HIGH_ABOVE = 20;
const PLACE = 'loc:';

export type Level = 'High' | 'Medium' | 'Low';

const filterLoc = fn<readonly string[]>((ctx, [request]) => {
  const given: unknown = request?.json();
  const place = Array.isArray(given) ? given.map(String).find((argument) => argument.startsWith(PLACE)) : undefined;
  if (place === undefined) throw new TerminalError(`give a list of arguments, one of them ${PLACE}<place>`);
  ctx.send('places', place.slice(PLACE.length));
});

const queryCount = fn<string>((ctx, [place]) => {
  const name = place.json();
  ctx.send('counts', Object.hasOwn(CASES, name) ? CASES[name] : 0);
});

const riskLevel = fn<number>((ctx, [count]) => {
  const cases = count.json();
  const level: Level = cases > HIGH_ABOVE ? 'High' : cases > 0 ? 'Medium' : 'Low';
  ctx.output(`${cases},${level}`);
});

export default app('risk-query', {
  entry: 'filterLoc',
  functions: { filterLoc, queryCount, riskLevel },
  buckets: {
    places: bucket({ on: { each: immediate({ run: 'queryCount' }) } }),
    counts: bucket({ on: { each: immediate({ run: 'riskLevel' }) } }),
  },
});
