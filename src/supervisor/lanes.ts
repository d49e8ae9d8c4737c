// Connections of a host's instances: a session that is given to an idle instance itself saves the way over the host.
//
// LN1. A lane has at most one session at a time: what an instance does is known here only as far as it was given here.
// LN2. When a lane ends, its session is given to the host, which ignores it if it has heard of it (session-start, `run`).
// LN3. A lane's session is watched: the host is told to look after LANE_WATCH_MS, since the instance may not tell it.

import type { MonotonicMs } from '../base/index.ts';
import type { CancelTimer, Channel, Clock, Timers } from '../platform/index.ts';
import type { ServerToHost } from '../protocol/index.ts';
import { LANE_WATCH_MS, LANES_MAX } from './limits.ts';

interface Lane {
  readonly channel: Channel;
  readonly functions: ReadonlySet<string>;
  session: string | undefined;
  /** How to give the session to the host instead. */
  giveToHost: (() => void) | undefined;
}

export interface LanePorts {
  readonly clock: Clock;
  readonly timers: Timers;
}

export class Lanes {
  readonly #ports: LanePorts;
  readonly #flush: () => void;
  readonly #lanes = new Set<Lane>();
  readonly #bySession = new Map<string, Lane>();
  #watch: CancelTimer | undefined;

  /** @param flush tells the host to read what its instances told. */
  constructor(ports: LanePorts, flush: () => void) {
    this.#ports = ports;
    this.#flush = flush;
  }

  add(channel: Channel, functions: readonly string[]): void {
    if (this.#lanes.size >= LANES_MAX) {
      channel.close();
      return;
    }
    const lane: Lane = { channel, functions: new Set(functions), session: undefined, giveToHost: undefined };
    this.#lanes.add(lane);
    channel.onClose(() => {
      this.#lanes.delete(lane);
      const { session, giveToHost } = lane;
      if (session === undefined) return;
      this.#bySession.delete(session);
      giveToHost?.();
    });
  }

  /** Sessions that lanes have now. */
  get busy(): number {
    return this.#bySession.size;
  }

  /** @returns false when no lane of the function's pool is free: then the host gets it. */
  give(
    functionName: string,
    message: ServerToHost & { type: 'session-start' },
    blobs: readonly Uint8Array[],
    giveToHost: () => void,
  ): boolean {
    for (const lane of this.#lanes) {
      if (lane.session !== undefined || !lane.functions.has(functionName)) continue;
      lane.session = message.session;
      lane.giveToHost = giveToHost;
      this.#bySession.set(message.session, lane);
      lane.channel.send(message, blobs);
      this.#watch ??= this.#setWatch();
      return true;
    }
    return false;
  }

  /** The session is over, or in the host's hands for good. */
  done(session: string): void {
    const lane = this.#bySession.get(session);
    if (lane === undefined) return;
    this.#bySession.delete(session);
    lane.session = undefined;
    lane.giveToHost = undefined;
  }

  close(): void {
    this.#watch?.();
    this.#watch = undefined;
    for (const lane of this.#lanes) {
      lane.session = undefined;
      lane.channel.close();
    }
    this.#bySession.clear();
  }

  #setWatch(): CancelTimer {
    const atMs = (this.#ports.clock.monotonicMs() + LANE_WATCH_MS) as MonotonicMs;
    return this.#ports.timers.set(atMs, () => {
      this.#watch = undefined;
      if (this.#bySession.size === 0) return;
      this.#flush();
      this.#watch = this.#setWatch();
    });
  }
}
