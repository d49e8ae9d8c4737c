// What happens to a trigger in one check: objects, starts of its sources, and when.

import type { Prng } from '../base/index.ts';

/** The choices of one seed. */
export interface CheckRandom {
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number;
  /** True with probability `p`. */
  chance(p: number): boolean;
  pick<T>(list: readonly T[]): T;
}

/** An object as its author makes it for a check. */
export interface MadeObject<V = any> {
  /** What `json()` gives. Default: nothing was sent (null). */
  readonly value?: V;
  /** Default: a name of its own. A name that is there already in its session is a repeat, which a trigger never sees. */
  readonly name?: string;
  readonly group?: string;
  /** Default: that of the value. Above 64 KiB the class cannot read the value. */
  readonly size?: number;
}

export interface StoryObject<V = any> {
  /** As the class sees it: the name, in bucket scope `<session>/<name>`. */
  readonly id: string;
  readonly name: string;
  readonly session: string;
  readonly group: string;
  readonly size: number;
  readonly value: V;
}

export type StoryEvent<V = any> =
  | { readonly type: 'object'; readonly atMs: number; readonly object: StoryObject<V> }
  | {
      readonly type: 'source-started';
      readonly atMs: number;
      readonly source: { readonly function: string; readonly invocation: string };
    };

/** What the trigger was told, in order. Times are ms since its state began. */
export interface TriggerStory<V = any> {
  readonly events: readonly StoryEvent<V>[];
  /** When the check ends: timers due by then have been served. */
  readonly endMs: number;
}

/** A firing as a reference expects it. */
export interface ExpectedFiring {
  /** Objects or their ids, in order. */
  readonly objects: readonly (StoryObject | string)[];
  /** Default: all functions of the trigger. */
  readonly run?: string | readonly string[] | undefined;
  readonly group?: string | undefined;
}

export interface StoryOptions {
  readonly scope: 'session' | 'bucket';
  readonly sources: readonly string[];
  readonly eventsMax: number;
  readonly object: (random: CheckRandom, n: number) => MadeObject;
}

/** Gaps between events, ms: mostly none, sometimes long. */
const GAPS_MS = [0, 0, 0, 0, 1, 3, 10, 50, 100, 250, 1_000, 5_000, 60_000];
const SESSIONS = ['s1', 's2', 's3'];

/** @param tell plays the event; gives when the trigger's timer is due then: a good time for the next one, as is 1 ms before. */
export function makeStory(
  random: CheckRandom,
  { scope, sources, eventsMax, object }: StoryOptions,
  tell: (event: StoryEvent) => number | undefined,
): TriggerStory {
  const events: StoryEvent[] = [];
  const taken = new Set<string>();
  let atMs = 0;
  let timerAtMs: number | undefined;
  const happen = (event: StoryEvent): void => {
    events.push(event);
    timerAtMs = tell(event);
  };
  const count = random.int(1, eventsMax);
  for (let n = 0; n <= count; n++) {
    if (timerAtMs === undefined || !random.chance(0.3)) atMs += random.pick(GAPS_MS);
    else atMs = Math.max(atMs, timerAtMs + random.int(-1, 1));
    if (n === count) break;
    if (sources.length > 0 && random.chance(0.3)) {
      const source = { function: random.pick(sources), invocation: `i${n}` };
      happen({ type: 'source-started', atMs, source });
      continue;
    }
    const made = object(random, n);
    const session = scope === 'bucket' ? random.pick(SESSIONS) : 's1';
    const name = made.name ?? `o${n}`;
    const id = scope === 'bucket' ? `${session}/${name}` : name;
    if (taken.has(id)) continue;
    taken.add(id);
    const value = made.value ?? null;
    const size = made.size ?? new TextEncoder().encode(JSON.stringify(value)).length;
    happen({ type: 'object', atMs, object: { id, name, session, group: made.group ?? '', size, value } });
  }
  return { events, endMs: atMs };
}

/** Smaller stories, the smallest first: without some of the events, then with less time between them. */
export function* smaller(story: TriggerStory): Generator<TriggerStory> {
  const { events, endMs } = story;
  for (let size = events.length; size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < events.length; from += size) {
      yield { events: [...events.slice(0, from), ...events.slice(from + size)], endMs };
    }
  }
  const lastMs = events.at(-1)?.atMs ?? 0;
  if (endMs > lastMs) yield { events, endMs: lastMs };
  for (let i = 0; i < events.length; i++) {
    const gapMs = (events[i]?.atMs ?? 0) - (events[i - 1]?.atMs ?? 0);
    if (gapMs === 0) continue;
    const moved = events.map((event, k) => (k < i ? event : { ...event, atMs: event.atMs - gapMs }));
    yield { events: moved, endMs: endMs - gapMs };
  }
}

export function choices(prng: Prng): CheckRandom {
  const int = (min: number, max: number): number => min + Math.floor(prng.float() * (max - min + 1));
  return {
    int,
    chance: (p) => prng.float() < p,
    pick: (list) => {
      if (list.length === 0) throw new RangeError('there is nothing to pick from');
      return list[int(0, list.length - 1)] as (typeof list)[number];
    },
  };
}
