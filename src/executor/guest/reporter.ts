// What this instance tells the host, and when it wakes it for it.
//
// RP1. A record is in the ring before anything that follows from it can be seen elsewhere.
// RP2. The host is rung at the end of a turn at the latest for what it must act on, and within LAZY_RING_MS for what it
//      only has to know: a wake costs both sides more than a short invocation does.

import { type Bells, type EventRingWriter, HOST_BELL } from '../shared/index.ts';
import { LAZY_RING_MS, QUIET_MS } from './limits.ts';

export interface ReporterPorts {
  readonly monotonicMs: () => number;
  readonly later: (delayMs: number, callback: () => void) => void;
}

export class Reporter {
  readonly ring: EventRingWriter;
  readonly #bells: Bells;
  readonly #ports: ReporterPorts;
  /** Since when something untold waits; -1: nothing does. */
  #sinceMs = -1;
  #urgent = false;
  #wanted = false;
  #lazyPending = false;

  constructor(ring: EventRingWriter, bells: Bells, ports: ReporterPorts) {
    this.ring = ring;
    this.#bells = bells;
    this.#ports = ports;
  }

  /** A record was written. @param urgent the host must act on it. */
  told(nowMs: number, urgent: boolean): void {
    if (urgent) {
      this.#urgent = true;
      this.#wanted = true;
    }
    if (this.#sinceMs < 0) this.#sinceMs = nowMs;
    else if (this.#wanted && nowMs - this.#sinceMs > QUIET_MS) this.ringNow();
  }

  /** The host may help with what was told, if this turn goes on for long: others can see to it without it. */
  helpWanted(): void {
    this.#wanted = true;
  }

  /** The turn ends: the host is rung if it must act. */
  turnEnds(): void {
    if (this.#sinceMs < 0) return;
    if (this.#urgent) this.ringNow();
    else this.#ringLater();
  }

  ringNow(): void {
    this.heard();
    this.#bells.ring(HOST_BELL);
  }

  /** The host is about to hear from us in another way, and reads the ring first. */
  heard(): void {
    this.#sinceMs = -1;
    this.#urgent = false;
    this.#wanted = false;
  }

  #ringLater(): void {
    if (this.#lazyPending) return;
    this.#lazyPending = true;
    this.#ports.later(LAZY_RING_MS, () => {
      this.#lazyPending = false;
      if (this.#sinceMs >= 0) this.ringNow();
    });
  }
}
