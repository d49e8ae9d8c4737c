// Feeds a stream to the deployed app, waits for its last window, and compares what the app kept with the truth.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, connect, connectServer, type SessionHandle, type SessionRecord } from 'antrail/client';
import { type CampaignCount, WINDOW_MS, type WindowSummary } from './app.ts';
import { AdStream } from './generate.ts';

export interface Rate {
  readonly eventsPerSecond: number;
  readonly seconds: number;
}

export interface AdReport {
  readonly events: number;
  readonly purchases: number;
  readonly batches: number;
  /** How long the feeding took; longer than the rates say when the machine is too slow for them. */
  readonly feedMs: number;
  readonly windows: readonly WindowFigures[];
  /** Purchases per campaign, summed over the kept objects of all windows. */
  readonly counted: ReadonlyMap<string, number>;
  readonly truth: ReadonlyMap<string, number>;
  /** One line per campaign whose sum is not the truth. */
  readonly differences: readonly string[];
  /** Windows that closed after the last batch was accepted: at least one, unless the answer took longer than the window. */
  readonly windowsAfterSilence: number;
}

export interface WindowFigures extends WindowSummary {
  readonly closedAt: string;
  /** From the window's close to the start of `aggregate`; undefined when the trace went with its app host. */
  readonly delayMs: number | undefined;
}

const BATCHES_PER_SECOND = 50;
const IN_FLIGHT_MAX = 32;
const POLL_MS = 200;
/** For the windows that are still to come when all batches were accepted. */
const LAST_WINDOW_MS_MAX = 20_000;
/** One more window: nothing may come after what was expected. */
const SILENCE_MS = WINDOW_MS + 2 * POLL_MS;

type AdEvents = typeof import('./app.ts').default;

/**
 * Posts the batches in real time, one rate after the other. Nobody else may feed the app meanwhile.
 * @param options.app a variant of the example, by its name.
 */
export async function driveAds(options: {
  readonly url: string;
  readonly seed: number;
  readonly rates: readonly Rate[];
  readonly app?: string;
}): Promise<AdReport> {
  const { url, seed, rates, app = 'ad-events' } = options;
  const client = connect<AdEvents>({ app: app as 'ad-events', url });
  const stream = new AdStream(seed);
  const collector = new Collector(client);
  await collector.skip();
  const startedMs = performance.now();
  const batches = await feed(client, stream, rates);
  const feedMs = performance.now() - startedMs;
  const silentSince = new Date().toISOString();

  const deadlineMs = performance.now() + LAST_WINDOW_MS_MAX;
  while (collector.purchases < stream.purchaseCount && performance.now() < deadlineMs) {
    await sleep(POLL_MS);
    await collector.collect();
  }
  await sleep(SILENCE_MS);
  await collector.collect();

  const { windows, counted } = collector;
  return {
    events: stream.eventCount,
    purchases: stream.purchaseCount,
    batches,
    feedMs,
    windows,
    counted,
    truth: stream.truth,
    differences: differencesOf(counted, stream.truth),
    windowsAfterSilence: windows.filter(({ closedAt }) => closedAt > silentSince).length,
  };
}

/** @returns how many batches were accepted: all, or it throws. */
async function feed(client: Client<AdEvents>, stream: AdStream, rates: readonly Rate[]): Promise<number> {
  const inFlight = new Set<Promise<void>>();
  const startedMs = performance.now();
  let failure: { readonly error: unknown } | undefined;
  let count = 0;
  for (const rate of rates) {
    for (const { atMs, events } of stream.batches({ ...rate, batchesPerSecond: BATCHES_PER_SECOND })) {
      const earlyMs = startedMs + atMs - performance.now();
      if (earlyMs > 1) await sleep(earlyMs);
      while (inFlight.size >= IN_FLIGHT_MAX) await Promise.race(inFlight);
      if (failure !== undefined) throw failure.error;
      count++;
      // The server keeps the batch before it answers.
      const posted = client.start('preprocess', events).then(
        () => {},
        (error: unknown) => {
          failure ??= { error };
        },
      );
      inFlight.add(posted);
      void posted.then(() => inFlight.delete(posted));
    }
  }
  await Promise.all(inFlight);
  if (failure !== undefined) throw failure.error;
  return count;
}

/** Reads what each window kept, once. */
class Collector {
  readonly counted = new Map<string, number>();
  readonly windows: WindowFigures[] = [];
  purchases = 0;
  readonly #client: Client<AdEvents>;
  readonly #seen = new Set<string>();

  constructor(client: Client<AdEvents>) {
    this.#client = client;
  }

  /** Windows of an earlier stream do not count. */
  async skip(): Promise<void> {
    for (const { session } of await this.#endedWindows()) this.#seen.add(session);
  }

  async collect(): Promise<void> {
    for (const session of await this.#endedWindows()) {
      this.#seen.add(session.session);
      await this.#read(session);
    }
  }

  async #endedWindows(): Promise<SessionRecord[]> {
    const { app, url } = this.#client;
    const server = connectServer({ url });
    const found: SessionRecord[] = [];
    let cursor: string | undefined;
    do {
      const page = await server.sessions({ app, limit: 500, cursor });
      for (const session of page.sessions) {
        if (session.function !== 'aggregate' || session.state === 'running' || this.#seen.has(session.session))
          continue;
        if (session.state !== 'completed') throw new Error(`window ${session.session} ${session.state}`);
        found.push(session);
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found.reverse();
  }

  async #read({ session, startedAt }: SessionRecord): Promise<void> {
    const client = this.#client;
    const handle = client.handle<WindowSummary>(session);
    const summary = await handle.result();
    const kept = await Promise.all(summary.names.map((name) => client.get<CampaignCount>('counts', name)));
    for (const { campaign, purchases } of kept) {
      this.counted.set(campaign, (this.counted.get(campaign) ?? 0) + purchases);
      this.purchases += purchases;
    }
    const begunAt = await begunAtOf(handle);
    const delayMs = begunAt === undefined ? undefined : Date.parse(begunAt) - Date.parse(startedAt);
    this.windows.push({ ...summary, closedAt: startedAt, delayMs });
  }
}

async function begunAtOf(handle: SessionHandle): Promise<string | undefined> {
  try {
    const { invocations } = await handle.trace();
    return invocations[0]?.attempts[0]?.startedAt;
  } catch (error) {
    if ((error as { code?: string }).code === 'E_OBJECT_GONE') return undefined;
    throw error;
  }
}

function differencesOf(counted: ReadonlyMap<string, number>, truth: ReadonlyMap<string, number>): string[] {
  const campaigns = new Set([...truth.keys(), ...counted.keys()]);
  return [...campaigns].sort().flatMap((campaign) => {
    const [got, expected] = [counted.get(campaign) ?? 0, truth.get(campaign) ?? 0];
    return got === expected ? [] : [`${campaign}: counted ${got}, truth ${expected}`];
  });
}
