// One slow clock for everything that can hang on a client: bodies that stall, readers that stop reading, idle streams.

import type { MonotonicMs } from '../base/index.ts';
import type { CancelTimer, Clock, Timers } from '../platform/index.ts';

export interface Watched {
  /** Called once a tick while watched. */
  tick(): void;
}

/** The ports of time. */
export interface Time {
  readonly clock: Clock;
  readonly timers: Timers;
}

export function after({ clock, timers }: Time, ms: number, callback: () => void): CancelTimer {
  return timers.set((clock.monotonicMs() + ms) as MonotonicMs, callback);
}

export function every(time: Time, ms: number, callback: () => void): CancelTimer {
  let cancel = after(time, ms, again);
  function again() {
    cancel = after(time, ms, again);
    callback();
  }
  return () => cancel();
}

/** Ticks only while there is something to watch. */
export class Watch {
  readonly #watched = new Set<Watched>();
  readonly #time: Time;
  readonly #tickMs: number;
  #cancel: CancelTimer | undefined;

  constructor(time: Time, tickMs: number) {
    this.#time = time;
    this.#tickMs = tickMs;
  }

  add(watched: Watched): void {
    this.#watched.add(watched);
    // Stopped by a tick that finds nothing, not by the last delete: short requests must not pay for a timer each.
    this.#cancel ??= every(this.#time, this.#tickMs, () => this.#tick());
  }

  delete(watched: Watched): void {
    this.#watched.delete(watched);
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  /** Whole ticks in a time, at least one. */
  ticksOf(ms: number): number {
    return Math.max(1, Math.ceil(ms / this.#tickMs));
  }

  #tick(): void {
    if (this.#watched.size === 0) this.close();
    for (const watched of this.#watched) watched.tick();
  }
}
