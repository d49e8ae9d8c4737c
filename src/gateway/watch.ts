// One slow clock for everything that can hang on a client: bodies that stall, readers that stop reading, idle streams.

export interface Watched {
  /** Called once a tick while watched. */
  tick(): void;
}

/** Ticks only while there is something to watch, and keeps no process alive. */
export class Watch {
  readonly #watched = new Set<Watched>();
  readonly #tickMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(tickMs: number) {
    this.#tickMs = tickMs;
  }

  add(watched: Watched): void {
    this.#watched.add(watched);
    // Stopped by a tick that finds nothing, not by the last delete: short requests must not pay for a timer each.
    if (this.#timer === undefined) this.#timer = setInterval(() => this.#tick(), this.#tickMs).unref();
  }

  delete(watched: Watched): void {
    this.#watched.delete(watched);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
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
