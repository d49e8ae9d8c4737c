// The tail of what apps log, and who follows it.

import { Fifo } from '../base/index.ts';
import type { LogEntry } from '../protocol/index.ts';

export const LOG_ENTRIES_MAX = 10_000;
/** Characters of their messages together, so that long lines do not fill the memory. */
export const LOG_CHARS_MAX = 16 * 1024 * 1024;
/** A follower that reads slower than entries come loses the oldest. */
const FOLLOWER_ENTRIES_MAX = 1_000;

interface Query {
  readonly app?: string;
  readonly session?: string;
  readonly follow: boolean;
  readonly tail: number;
}

interface Follower {
  readonly query: Query;
  readonly entries: Fifo<LogEntry>;
  wake: () => void;
}

export class LogBook {
  readonly #entries = new Fifo<LogEntry>(LOG_ENTRIES_MAX);
  readonly #followers = new Set<Follower>();
  #chars = 0;
  #closed = false;

  add(entry: LogEntry): void {
    this.#chars += entry.message.length;
    while (this.#entries.size >= LOG_ENTRIES_MAX || (this.#chars > LOG_CHARS_MAX && this.#entries.size > 0)) {
      this.#chars -= this.#entries.shift()?.message.length ?? 0;
    }
    this.#entries.push(entry);
    for (const follower of this.#followers) {
      if (!matches(entry, follower.query)) continue;
      if (!follower.entries.push(entry)) {
        follower.entries.shift();
        follower.entries.push(entry);
      }
      follower.wake();
    }
  }

  /** The kept tail, then what follows while `follow`. */
  async *read(query: Query, signal: AbortSignal): AsyncIterable<LogEntry> {
    const kept: LogEntry[] = [];
    for (const entry of this.#entries) if (matches(entry, query)) kept.push(entry);
    const follower: Follower = { query, entries: new Fifo(FOLLOWER_ENTRIES_MAX), wake: () => {} };
    const aborted = () => follower.wake();
    if (query.follow) this.#followers.add(follower);
    signal.addEventListener('abort', aborted);
    try {
      if (query.tail > 0) yield* kept.slice(-query.tail);
      while (query.follow && !signal.aborted && !this.#closed) {
        const entry = follower.entries.shift();
        if (entry !== undefined) {
          yield entry;
          continue;
        }
        await new Promise<void>((resolve) => {
          follower.wake = resolve;
        });
      }
    } finally {
      this.#followers.delete(follower);
      signal.removeEventListener('abort', aborted);
    }
  }

  close(): void {
    this.#closed = true;
    for (const follower of this.#followers) follower.wake();
  }
}

function matches(entry: LogEntry, query: Query): boolean {
  return (
    (query.app === undefined || entry.app === query.app) &&
    (query.session === undefined || entry.session === query.session)
  );
}
