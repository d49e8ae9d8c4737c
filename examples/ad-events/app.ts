// Purchases per advertising campaign in windows of one second: the streaming workload of the Pheromone paper (NSDI 2023),
// after the Yahoo streaming benchmark.
//
//   preprocess ── purchases ──▶ lookup ── matches ──▶ aggregate ── counts: one kept object per campaign and window
//               immediate               byTime, 1 s
//
// A window closes by a timer, so the last one arrives although the stream has fallen silent. Windows take objects of all
// sessions; each runs `aggregate` in a session of its own.
//
//   antrail invoke ad-events @batch.json --async

import { app, bucket, byTime, fn, immediate } from 'antrail';
import { campaignOf } from './ads.ts';

export const WINDOW_MS = 1_000;

export interface AdEvent {
  readonly user_id: string;
  readonly page_id: string;
  readonly ad_id: string;
  readonly ad_type: 'banner' | 'modal' | 'sponsored-search' | 'mail' | 'mobile';
  readonly event_type: 'view' | 'click' | 'purchase';
  /** Milliseconds since 1970. */
  readonly event_time: number;
  readonly ip_address: string;
}

type Counts = Readonly<Record<string, number>>;

/** What `aggregate` returns: where its counts are. */
export interface WindowSummary {
  readonly window: string;
  /** How many objects the window held. */
  readonly objects: number;
  readonly purchases: number;
  /** Names in the bucket `counts`. */
  readonly names: readonly string[];
}

/** An object in the bucket `counts`. */
export interface CampaignCount {
  readonly campaign: string;
  readonly window: string;
  readonly purchases: number;
}

const preprocess = fn<readonly AdEvent[]>((ctx, [batch]) => {
  const ads = batch
    .json()
    .filter((event) => event.event_type === 'purchase')
    .map((event) => event.ad_id);
  if (ads.length > 0) ctx.send('purchases', ads);
});

const lookup = fn<readonly string[]>((ctx, [purchases]) => {
  const counts = new Map<string, number>();
  for (const ad of purchases.json()) {
    const campaign = campaignOf(ad) ?? 'unknown';
    counts.set(campaign, (counts.get(campaign) ?? 0) + 1);
  }
  ctx.send('matches', Object.fromEntries(counts));
});

const aggregate = fn<Counts, WindowSummary>((ctx, matches) => {
  // The session of a firing keeps its id when it is executed again: a second execution writes the same objects, not more.
  const window = ctx.session;
  const sums = new Map<string, number>();
  for (const match of matches) {
    for (const [campaign, count] of Object.entries(match.json<Counts>())) {
      sums.set(campaign, (sums.get(campaign) ?? 0) + count);
    }
  }
  const names: string[] = [];
  let total = 0;
  for (const [campaign, purchases] of sums) {
    const name = `${window}.${campaign}`;
    ctx.send('counts', { campaign, window, purchases } satisfies CampaignCount, { name, persist: true });
    names.push(name);
    total += purchases;
  }
  return { window, objects: matches.length, purchases: total, names };
});

export default app('ad-events', {
  entry: 'preprocess',
  functions: { preprocess, lookup, aggregate },
  buckets: {
    purchases: bucket({ on: { each: immediate({ run: 'lookup' }) } }),
    matches: bucket({ on: { everySecond: byTime({ windowMs: WINDOW_MS, run: 'aggregate' }) } }),
    counts: bucket({}),
  },
});
