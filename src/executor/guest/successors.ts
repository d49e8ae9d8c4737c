// Successors that this instance made itself: kept for itself, or offered to whoever is free.
//
// SU1. A successor is in exactly one place: kept here, in a slot, or handed over to the host; the record of its firing is
//      visible to the host before any of it (RP1).

import { assert } from '../../base/index.ts';
import {
  type AppTables,
  ByteWriter,
  type FunctionRow,
  type Slab,
  type SlabRef,
  type StoredObject,
} from '../../bucket/index.ts';
import {
  type Bells,
  type InlineFiring,
  stepsAheadOf,
  TICKET_BYTES,
  type Ticket,
  type Tickets,
  ticketBytesMax,
  writeHandedOver,
  writeTicket,
} from '../shared/index.ts';
import type { Attempt } from './attempt.ts';
import type { DirectReplies } from './direct-replies.ts';
import { TAIL_MS, TAIL_WEIGHT } from './limits.ts';
import type { Reporter } from './reporter.ts';

export interface OfferPool {
  readonly tickets: Tickets;
  /** One byte per slot: 1 = may be woken. */
  readonly members: Uint8Array;
}

export interface SuccessorsOptions {
  readonly slot: number;
  readonly tables: () => AppTables;
  readonly slab: Slab;
  /** Where this instance takes its work from. */
  readonly own: OfferPool;
  /** By name; the own one is among them. */
  readonly pools: ReadonlyMap<string, OfferPool>;
  readonly bells: Bells;
  readonly reporter: Reporter;
  readonly direct: DirectReplies;
}

export class Successors {
  readonly #options: SuccessorsOptions;
  /** Nobody else knows of them yet; oldest first. */
  readonly #kept: Ticket[] = [];
  /** Estimated time that a function goes on computing after its first send, ms. */
  readonly #tailMs: number[] = [];
  readonly #poolOfFunction: (OfferPool | undefined)[] = [];

  constructor(options: SuccessorsOptions) {
    this.#options = options;
  }

  get first(): Ticket | undefined {
    return this.#kept[0];
  }

  shift(): Ticket | undefined {
    return this.#kept.shift();
  }

  /**
   * The first is kept for ourselves, unless this function is known to go on for long and somebody else could begin;
   * the others are for anybody.
   */
  add(attempt: Attempt, object: StoredObject, firings: readonly InlineFiring[], nowMs: number): void {
    if (attempt.firstSendMs === 0) attempt.firstSendMs = nowMs;
    attempt.lastSendMs = nowMs;
    const generous = (this.#tailMs[attempt.ticket.function] ?? 0) > TAIL_MS;
    for (const firing of firings) {
      const { sessionNo, session, run, fence, tableVersion, priority, deadlineMs } = attempt.ticket;
      const ticket: Ticket = {
        sessionNo,
        session,
        run,
        id: firing.id,
        function: firing.function,
        fence,
        attempt: 1,
        tableVersion,
        inline: true,
        wantsResult: false,
        direct: false,
        priority,
        deadlineMs,
        queuedAtMs: nowMs,
        inputs: [object],
      };
      if (
        this.#kept.length === 0 &&
        !(generous && this.#someoneSleeps()) &&
        this.#poolOf(firing.function) === this.#options.own
      ) {
        this.#kept.push(ticket);
        this.#options.direct.kept(sessionNo);
      } else {
        this.offer(ticket);
      }
    }
  }

  /** How long the function went on after its first send. */
  learn(attempt: Attempt, endedAtMs: number): void {
    if (attempt.firstSendMs === 0) return;
    const index = attempt.ticket.function;
    const old = this.#tailMs[index] ?? 0;
    this.#tailMs[index] = old + TAIL_WEIGHT * (endedAtMs - attempt.firstSendMs - old);
  }

  offerKept(): void {
    for (const ticket of this.#kept.splice(0)) this.offer(ticket);
  }

  /** Puts a successor where any instance of its pool can claim it; without room the host queues it. */
  offer(ticket: Ticket): void {
    const { slab, reporter, direct } = this.#options;
    direct.shared(ticket.sessionNo);
    const pool = this.#poolOf(ticket.function);
    const { tickets } = pool;
    const slot = tickets.take();
    if (slot === undefined) {
      this.#handOver(ticket);
      return;
    }
    const { function: functionIndex, sessionNo, id } = ticket;
    const row = this.#options.tables().functions[functionIndex] as FunctionRow;
    const stepsAhead = stepsAheadOf(ticket.priority + row.priority, true);
    const key = { function: functionIndex, sessionNo, hi: id.hi, lo: id.lo, stepsAhead };
    const bytesMax = ticketBytesMax(ticket);
    if (bytesMax <= TICKET_BYTES) {
      const writer = new ByteWriter(slot.body);
      writeTicket(writer, ticket);
      tickets.publish(slot.slot, key, writer.at);
    } else {
      let block: SlabRef;
      try {
        block = slab.allocate(bytesMax);
      } catch {
        tickets.done(slot.slot);
        this.#handOver(ticket);
        return;
      }
      writeTicket(new ByteWriter(slab.buffer(block)), ticket);
      tickets.publish(slot.slot, key, 0, block);
    }
    // Whoever of the pool is free next takes it; meanwhile the host decides whether to start another instance.
    if (this.#wakeOne(pool)) return;
    if (pool.members.includes(1)) reporter.helpWanted();
    else reporter.told(ticket.queuedAtMs, true);
  }

  /** We were woken for an offer and cannot take it now: somebody else may. */
  passOn(): void {
    this.#wakeOne(this.#options.own);
  }

  withdraw(matches: (ticket: Ticket) => boolean): void {
    for (let i = this.#kept.length - 1; i >= 0; i--) if (matches(this.#kept[i] as Ticket)) this.#kept.splice(i, 1);
  }

  #handOver(ticket: Ticket): void {
    writeHandedOver(this.#options.reporter.ring, ticket);
    this.#options.reporter.told(ticket.queuedAtMs, true);
  }

  #poolOf(functionIndex: number): OfferPool {
    const known = this.#poolOfFunction[functionIndex];
    if (known !== undefined) return known;
    const { pool: name } = this.#options.tables().functions[functionIndex] as FunctionRow;
    const pool = this.#options.pools.get(name);
    assert(pool !== undefined, 'an instance knows all pools of its host');
    this.#poolOfFunction[functionIndex] = pool;
    return pool;
  }

  #wakeOne({ members }: OfferPool): boolean {
    const { slot: own, bells } = this.#options;
    for (let slot = 0; slot < members.length; slot++) {
      if (members[slot] === 1 && slot !== own && bells.ring(slot)) return true;
    }
    return false;
  }

  #someoneSleeps(): boolean {
    const { slot: own, bells } = this.#options;
    const { members } = this.#options.own;
    for (let slot = 0; slot < members.length; slot++) {
      if (members[slot] === 1 && slot !== own && bells.isSleeping(slot)) return true;
    }
    return false;
  }
}
