// Connections of a host's instances: a session that is given to an idle instance itself saves the way over the host.
//
// LN1. A lane has one session at a time, or up to LANE_DEPTH_MAX of functions that take so little time that waking another
//      instance would cost more than waiting for this one. An instance that is not free hands what it gets to its host.
// LN2. When a lane ends, its sessions are given to the host: it ignores one that it knows to be under way (session-start,
//      `run`), and tells again how one ended whose instance may not have got to say so (`account`).
// LN3. A lane's session is watched: the host is told to look after LANE_WATCH_MS, since the instance may not tell it, and is
//      given the session too, since the instance may be at something else that nobody knew of: it may not even have read it.
//      One that reads a session so late does not begin it (`givenAtMs`).

import type { MonotonicMs } from '../base/index.ts';
import type { CancelTimer, Channel, Clock, Timers } from '../platform/index.ts';
import { LANE_DEPTH_MAX, type ServerToHost } from '../protocol/index.ts';
import { LANE_LATE_MS, LANE_WATCH_MS, LANE_WEIGHT, LANE_WORTH_MS, LANES_MAX } from './limits.ts';

interface Lane {
  readonly channel: Channel;
  readonly functions: ReadonlySet<string>;
  /** What it has, oldest first, and how to give it to the host instead. */
  readonly sessions: Map<string, Given>;
  /** When it got the first of them, or ended the one before. */
  busySinceMs: number;
}

interface Given {
  readonly function: string;
  readonly givenAtMs: number;
  readonly giveToHost: () => void;
  /** Its time of LN3 is over. */
  isLate: boolean;
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
  /** Estimated time that an instance is busy with one session of a function, ms. */
  readonly #busyMs = new Map<string, number>();
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
    const lane: Lane = { channel, functions: new Set(functions), sessions: new Map(), busySinceMs: 0 };
    this.#lanes.add(lane);
    channel.onClose(() => {
      this.#lanes.delete(lane);
      for (const [session, { giveToHost }] of lane.sessions) {
        this.#bySession.delete(session);
        giveToHost();
      }
      lane.sessions.clear();
    });
  }

  /** @returns false when no lane of the function's pool is free: then the host gets it. */
  give(
    functionName: string,
    message: ServerToHost & { type: 'session-start' },
    blobs: readonly Uint8Array[],
    giveToHost: () => void,
  ): boolean {
    const lane = this.#choose(functionName);
    if (lane === undefined) return false;
    const nowMs = this.#ports.clock.monotonicMs();
    if (lane.sessions.size === 0) lane.busySinceMs = nowMs;
    lane.sessions.set(message.session, { function: functionName, givenAtMs: nowMs, giveToHost, isLate: false });
    this.#bySession.set(message.session, lane);
    lane.channel.send(message, blobs);
    this.#watch ??= this.#setWatch();
    return true;
  }

  /** One that is at work and will soon have time, else one that has nothing to do. */
  #choose(functionName: string): Lane | undefined {
    const busyMs = this.#busyMs.get(functionName) ?? LANE_WORTH_MS;
    let idle: Lane | undefined;
    for (const lane of this.#lanes) {
      if (!lane.functions.has(functionName)) continue;
      if (lane.sessions.size === 0) idle ??= lane;
      else if (lane.sessions.size < LANE_DEPTH_MAX && this.#workMs(lane) + busyMs <= LANE_WORTH_MS) return lane;
    }
    return idle;
  }

  /** What a lane has to do, as far as is known: a function that nobody knows may take for ever. */
  #workMs(lane: Lane): number {
    if (this.#ports.clock.monotonicMs() - lane.busySinceMs > LANE_LATE_MS) return Number.POSITIVE_INFINITY;
    let sum = 0;
    for (const { function: name } of lane.sessions.values()) {
      sum += this.#busyMs.get(name) ?? Number.POSITIVE_INFINITY;
      if (sum > LANE_WORTH_MS) break;
    }
    return sum;
  }

  /** An instance was busy for so long with a session. */
  learn(session: string, ms: number): void {
    const name = this.#bySession.get(session)?.sessions.get(session)?.function;
    if (name === undefined) return;
    const old = this.#busyMs.get(name) ?? ms;
    this.#busyMs.set(name, old + LANE_WEIGHT * (ms - old));
  }

  /** The session is over, or in the host's hands for good. */
  done(session: string): void {
    const lane = this.#bySession.get(session);
    if (lane === undefined) return;
    this.#bySession.delete(session);
    lane.sessions.delete(session);
    lane.busySinceMs = this.#ports.clock.monotonicMs();
  }

  close(): void {
    this.#watch?.();
    this.#watch = undefined;
    for (const lane of this.#lanes) {
      lane.sessions.clear();
      lane.channel.close();
    }
    this.#bySession.clear();
  }

  /** (LN3) */
  #giveUp(): void {
    const beforeMs = this.#ports.clock.monotonicMs() - LANE_WATCH_MS;
    for (const { sessions } of this.#lanes) {
      for (const given of sessions.values()) {
        if (given.givenAtMs > beforeMs) break;
        if (given.isLate) continue;
        given.isLate = true;
        given.giveToHost();
      }
    }
  }

  #setWatch(): CancelTimer {
    const atMs = (this.#ports.clock.monotonicMs() + LANE_WATCH_MS) as MonotonicMs;
    return this.#ports.timers.set(atMs, () => {
      this.#watch = undefined;
      if (this.#bySession.size === 0) return;
      this.#flush();
      this.#giveUp();
      this.#watch = this.#setWatch();
    });
  }
}
