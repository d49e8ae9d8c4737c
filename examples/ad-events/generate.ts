// A seeded stream of advertising events, in batches, with the truth about it.

import { randomOf } from '../random.ts';
import { ADS, type Ad, uuidOf } from './ads.ts';
import type { AdEvent } from './app.ts';

const AD_TYPES = ['banner', 'modal', 'sponsored-search', 'mail', 'mobile'] as const;
const EVENT_TYPES = ['view', 'click', 'purchase'] as const;
/** Ids cost more than the rest of an event: users and pages come out of a pool. */
const POOL = 1_000;

export interface Batch {
  /** When it is due, milliseconds after the stream's first. */
  readonly atMs: number;
  readonly events: readonly AdEvent[];
}

export class AdStream {
  /** Purchases per campaign in all batches so far: what must come out. */
  readonly truth = new Map<string, number>();
  eventCount = 0;
  purchaseCount = 0;
  readonly #random: () => number;
  readonly #users: readonly string[];
  readonly #pages: readonly string[];
  #atMs = 0;

  constructor(seed: number) {
    this.#random = randomOf(seed);
    this.#users = Array.from({ length: POOL }, () => uuidOf(this.#random));
    this.#pages = Array.from({ length: POOL }, () => uuidOf(this.#random));
  }

  /** Goes on where the stream is: `seconds` long, in `batchesPerSecond` equal batches. */
  *batches(rate: { eventsPerSecond: number; batchesPerSecond: number; seconds: number }): Generator<Batch> {
    const { eventsPerSecond, batchesPerSecond, seconds } = rate;
    const startMs = this.#atMs;
    const total = Math.round(eventsPerSecond * seconds);
    const batchCount = Math.round(batchesPerSecond * seconds);
    let made = 0;
    for (let i = 0; i < batchCount; i++) {
      const upTo = Math.floor((total * (i + 1)) / batchCount);
      const events: AdEvent[] = [];
      for (; made < upTo; made++) events.push(this.#event(startMs + (made * 1_000) / eventsPerSecond));
      yield { atMs: startMs + (i * 1_000) / batchesPerSecond, events };
    }
    this.#atMs = startMs + seconds * 1_000;
  }

  #event(atMs: number): AdEvent {
    const ad = this.#pick(ADS) as Ad;
    const event_type = this.#pick(EVENT_TYPES);
    this.eventCount++;
    if (event_type === 'purchase') {
      this.purchaseCount++;
      this.truth.set(ad.campaign, (this.truth.get(ad.campaign) ?? 0) + 1);
    }
    return {
      user_id: this.#pick(this.#users),
      page_id: this.#pick(this.#pages),
      ad_id: ad.id,
      ad_type: this.#pick(AD_TYPES),
      event_type,
      event_time: Date.UTC(2026, 0, 1) + Math.floor(atMs),
      ip_address: `10.${this.#random() & 255}.${this.#random() & 255}.${this.#random() & 255}`,
    };
  }

  #pick<T>(items: readonly T[]): T {
    return items[this.#random() % items.length] as T;
  }
}
