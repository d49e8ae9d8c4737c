// Where the windows of a byTime end: on a grid of equal windows, or at the runs of a cron expression.

import { Cron } from 'croner';
import { type Fields, numberOf, recordOf } from './decode.ts';
import type { Now } from './machine.ts';
import type { SpecOf } from './spec.ts';

export interface WindowClock {
  /** Aims at the end of the window that `now` lies in. */
  open(now: Now): void;
  /** Whether the end aimed at has come; if it has not, aims anew (a wall clock may have been set back). */
  isOver(now: Now): boolean;
  /** Monotonic ms of the end aimed at; undefined: there is none. */
  readonly endMs: number | undefined;
  snapshot(now: Now): unknown;
  /** Continues with a snapshot; if that was made under other options, opens a window under these. */
  restore(snapshot: unknown, now: Now): void;
}

export function windowClockOf(spec: SpecOf<'byTime'>, now: Now): WindowClock {
  return spec.cron === undefined ? new Grid(spec.windowMs ?? 0, now) : new CronRuns(spec.cron);
}

/** The expression of a `cron`, in UTC so that every node computes the same runs. @throws what croner says of it. */
export function parseCron(expression: string): Cron {
  return new Cron(expression, { mode: '5-or-6-parts', timezone: 'UTC', paused: true });
}

/**
 * Half-open windows [origin + n * windowMs, origin + (n + 1) * windowMs).
 * Ends are computed from the origin each time: adding windows up would drift with fractions of milliseconds.
 */
class Grid implements WindowClock {
  readonly #windowMs: number;
  #originMs: number;
  #endMs: number | undefined;

  constructor(windowMs: number, now: Now) {
    this.#windowMs = windowMs;
    this.#originMs = now.monotonicMs;
  }

  open(now: Now): void {
    let n = Math.floor((now.monotonicMs - this.#originMs) / this.#windowMs) + 1;
    // Division and multiplication round apart: the end must lie after now, whatever the fractions.
    while (this.#originMs + n * this.#windowMs <= now.monotonicMs) n++;
    this.#endMs = this.#originMs + n * this.#windowMs;
  }

  isOver(now: Now): boolean {
    return this.#endMs !== undefined && now.monotonicMs >= this.#endMs;
  }

  get endMs(): number | undefined {
    return this.#endMs;
  }

  snapshot(now: Now): unknown {
    return {
      windowMs: this.#windowMs,
      sinceOriginMs: now.monotonicMs - this.#originMs,
      untilEndMs: this.#endMs === undefined ? null : this.#endMs - now.monotonicMs,
    };
  }

  restore(snapshot: unknown, now: Now): void {
    const fields = recordOf(snapshot, 'clock');
    if (fields.windowMs !== this.#windowMs) {
      this.open(now);
      return;
    }
    this.#originMs = now.monotonicMs - numberOf(fields.sinceOriginMs, 'sinceOriginMs');
    this.#endMs = fields.untilEndMs === null ? undefined : now.monotonicMs + numberOf(fields.untilEndMs, 'untilEndMs');
  }
}

/**
 * The wall clock decides when a run has come; the monotonic end is only where to set the timer, and is aimed anew
 * whenever it turns out to have been early.
 */
class CronRuns implements WindowClock {
  readonly #expression: string;
  readonly #cron: Cron;
  #endEpochMs: number | undefined;
  #endMs: number | undefined;

  constructor(expression: string) {
    this.#expression = expression;
    this.#cron = parseCron(expression);
  }

  open(now: Now): void {
    this.#endEpochMs = this.#cron.nextRun(new Date(now.epochMs))?.getTime();
    this.#aim(now);
  }

  isOver(now: Now): boolean {
    if (this.#endEpochMs === undefined) return false;
    if (now.epochMs >= this.#endEpochMs) return true;
    this.#aim(now);
    return false;
  }

  get endMs(): number | undefined {
    return this.#endMs;
  }

  snapshot(): unknown {
    return { cron: this.#expression, endEpochMs: this.#endEpochMs ?? null };
  }

  restore(snapshot: unknown, now: Now): void {
    const fields: Fields = recordOf(snapshot, 'clock');
    if (fields.cron !== this.#expression) {
      this.open(now);
      return;
    }
    this.#endEpochMs = fields.endEpochMs === null ? undefined : numberOf(fields.endEpochMs, 'endEpochMs');
    this.#aim(now);
  }

  #aim(now: Now): void {
    this.#endMs = this.#endEpochMs === undefined ? undefined : now.monotonicMs + (this.#endEpochMs - now.epochMs);
  }
}
