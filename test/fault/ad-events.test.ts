// Goal: every purchase is counted once although functions fail, leave their work undone and take their instances with them,
// and the app's process is killed in the middle of the stream. Method: the example with those faults built in, over a real
// server; the generator knows the truth.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { driveAds } from '../../examples/ad-events/drive.ts';
import { adReportLines } from '../../examples/ad-events/report.ts';
import { Served, until } from '../fixtures/served.ts';

const AD_EVENTS = new URL('../../../examples/ad-events/app.ts', import.meta.url).pathname;

/**
 * Of preprocess and lookup, one invocation in a hundred each: throws before it has sent, throws after it, ends its
 * instance, forgets to send (which a rule notices). Each aggregate fails after it has kept its counts.
 */
const FAULTY = `
import { app, bucket, byTime, fn, immediate } from 'antrail';
import adEvents from ${JSON.stringify(AD_EVENTS)};
const { preprocess, lookup, aggregate } = adEvents.functions;
const RETRIES = { retries: { max: 5, minMs: 1, maxMs: 20 } };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const faulty = ({ handler }) => fn(async (ctx, inputs) => {
  const fault = ctx.attempt === 1 ? Number.parseInt(ctx.invocation.slice(-6), 16) % 100 : -1;
  await pause(20);
  if (fault === 1) throw new Error('before its sends');
  if (fault === 2) process.exit(1);
  if (fault === 3 && handler === lookup.handler) return;
  handler(ctx, inputs);
  if (fault === 4) throw new Error('after its sends');
}, RETRIES);

export default app('faulty-ads', {
  entry: 'preprocess',
  functions: {
    preprocess: faulty(preprocess),
    lookup: faulty(lookup),
    aggregate: fn((ctx, inputs) => {
      const summary = aggregate.handler(ctx, inputs);
      if (ctx.attempt === 1) throw new Error('after it has kept its counts');
      return summary;
    }, RETRIES),
  },
  buckets: {
    purchases: bucket({ on: { each: immediate({ run: 'lookup' }) } }),
    matches: bucket({
      on: { everySecond: byTime({ windowMs: 1000, run: 'aggregate' }) },
      rerun: [{ source: 'lookup', expect: 'every-object', timeoutMs: 1000 }],
    }),
    counts: bucket({}),
  },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(FAULTY);
});
after(() => server.close());

test('with faults in functions and a killed process the sums over windows are the truth', async (t) => {
  const driven = driveAds({
    url: server.url,
    app: 'faulty-ads',
    seed: 11,
    rates: [{ eventsPerSecond: 5_000, seconds: 4 }],
  });
  // In the middle of the stream, while a batch is under way.
  await until(async () => {
    const { sessions } = (await server.get('/v1/sessions?app=faulty-ads&limit=500')).json;
    return sessions.filter((one: { state: string }) => one.state === 'completed').length > 60;
  }, 'a part of the stream has been worked off');
  const host = await server.host('faulty-ads');
  process.kill(host, 'SIGKILL');
  const report = await driven;
  t.diagnostic(adReportLines(report).join('\n'));
  assert.deepEqual(report.differences, []);
  assert.deepEqual([...report.counted].sort(), [...report.truth].sort());
  assert.notEqual(await server.host('faulty-ads'), host);
  const { deadLetters } = (await server.get('/v1/dead-letters')).json;
  assert.deepEqual(deadLetters, []);
});
