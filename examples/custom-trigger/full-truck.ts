// When a truck leaves: a trigger of one's own.

import type { CustomReaction, CustomTrigger, TriggerObject } from 'antrail';

export interface Parcel {
  readonly id: string;
  readonly kg: number;
}

export interface TruckOptions {
  /** It leaves with the parcel that makes it heavier than this. */
  readonly kg: number;
  /** So long after its first parcel it leaves as it is. Without it a truck that does not get full stays. */
  readonly waitMs?: number;
}

/** Fires with all parcels that have come when their weight passes `kg`, or when the first of them has waited `waitMs`. */
export class FullTruck implements CustomTrigger {
  readonly #options: TruckOptions;
  #kg = 0;
  #parcels = 0;

  constructor(options: TruckOptions) {
    this.#options = options;
  }

  onObject(parcel: TriggerObject<Parcel>, nowMs: number): CustomReaction | undefined {
    const { kg, waitMs } = this.#options;
    this.#kg += parcel.json().kg;
    this.#parcels++;
    if (this.#kg > kg) return this.#leave();
    return this.#parcels === 1 && waitMs !== undefined ? { timerAtMs: nowMs + waitMs } : undefined;
  }

  onTimer(): CustomReaction {
    return this.#leave();
  }

  /** Without `objects` a firing takes all that is held, so that the state need not list it. */
  #leave(): CustomReaction {
    this.#kg = 0;
    this.#parcels = 0;
    return { fire: [{}], timerAtMs: null };
  }

  snapshot(): unknown {
    return { kg: this.#kg, parcels: this.#parcels };
  }

  restore({ kg, parcels }: { kg: number; parcels: number }): void {
    this.#kg = kg;
    this.#parcels = parcels;
  }
}
