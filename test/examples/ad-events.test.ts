// Goal: over windows of real time every purchase is counted once, and the last window comes although the stream is
// silent. Method: seeded streams of three rates through a real server; the generator knows the truth.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect } from 'antrail/client';
import { ADS, CAMPAIGNS, campaignOf } from '../../examples/ad-events/ads.ts';
import { driveAds } from '../../examples/ad-events/drive.ts';
import { AdStream } from '../../examples/ad-events/generate.ts';
import { adReportLines } from '../../examples/ad-events/report.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';

describe('ad events', () => {
  let server: ExampleServer;
  before(async () => {
    server = await openServer();
    await server.deploy('examples/ad-events/app.ts');
  });
  after(() => server?.close());

  test('at 1,000, 10,000 and 50,000 events/s the sums over windows are the truth', async (t) => {
    const rates = [1_000, 10_000, 50_000].map((eventsPerSecond) => ({ eventsPerSecond, seconds: 1.2 }));
    const report = await driveAds({ url: server.url, seed: 7, rates });
    t.diagnostic(adReportLines(report).join('\n'));
    // Only a timer can have closed the last window: nothing has arrived since.
    assert.deepEqual(report.differences, []);
    assert.equal(report.events, 61_000 * 1.2);
    assert.equal(report.truth.size, CAMPAIGNS);
    assert.deepEqual([...report.counted].sort(), [...report.truth].sort());
    assert.equal(sum(report.windows.map(({ purchases }) => purchases)), report.purchases);
    assert.equal(sum(report.windows.map(({ objects }) => objects)), report.batches, 'every batch sells something');
  });

  test('a second stream is counted by itself', async () => {
    const report = await driveAds({ url: server.url, seed: 8, rates: [{ eventsPerSecond: 1_000, seconds: 0.2 }] });
    assert.deepEqual(report.differences, []);
    assert.equal(report.events, 200);
  });

  test('an event of an unknown advertisement is counted as such', async () => {
    const client = connect<typeof import('../../examples/ad-events/app.ts').default>({
      app: 'ad-events',
      url: server.url,
    });
    const [batch] = new AdStream(1).batches({ eventsPerSecond: 10, batchesPerSecond: 1, seconds: 1 });
    const events = (batch?.events ?? []).map((event) => ({ ...event, event_type: 'purchase' as const, ad_id: 'none' }));
    const handle = await client.start('preprocess', events);
    assert.equal(await handle.result(), null);
    const matches = await waitFor(async () => {
      const { sessions } = await server.client.sessions({ app: 'ad-events', state: 'completed' });
      return sessions.find(({ function: name, causes }) => name === 'aggregate' && causes.includes(handle.session));
    });
    const kept = await client.get('counts', `${matches.session}.unknown`);
    assert.deepEqual(kept, { campaign: 'unknown', window: matches.session, purchases: 10 });
  });
});

test('a stream is the same for the same seed, and knows its own truth', () => {
  const rate = { eventsPerSecond: 1_000, batchesPerSecond: 7, seconds: 3 };
  const [one, again, other] = [new AdStream(5), new AdStream(5), new AdStream(6)];
  const batches = [...one.batches(rate)];
  assert.deepEqual([...again.batches(rate)], batches);
  assert.notDeepEqual([...other.batches(rate)], batches);
  const events = batches.flatMap((batch) => batch.events);
  assert.equal(events.length, 3_000);
  const truth = new Map<string, number>();
  for (const { event_type, ad_id } of events) {
    const campaign = campaignOf(ad_id);
    assert.ok(campaign !== undefined);
    if (event_type === 'purchase') truth.set(campaign, (truth.get(campaign) ?? 0) + 1);
  }
  assert.deepEqual(one.truth, truth);
  assert.equal(one.purchaseCount, sum(truth.values()));
  const [later] = one.batches(rate);
  assert.equal(later?.atMs, 3_000, 'it goes on where it was');
});

test('there are 100 campaigns of 10 advertisements', () => {
  assert.equal(new Set(ADS.map(({ id }) => id)).size, 1_000);
  assert.ok(ADS.every(({ id }) => id.length === 36));
  const sizes = new Map<string, number>();
  for (const { campaign } of ADS) sizes.set(campaign, (sizes.get(campaign) ?? 0) + 1);
  assert.deepEqual([...sizes.values()], Array(CAMPAIGNS).fill(10));
});

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

async function waitFor<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((wake) => setTimeout(wake, 100));
  }
}
