// What the host offers to its instances.
//
// Owns: the host's tickets in the slots of each pool, which instances are woken for them, how long an attempt is thought
// to take.
// Does not own: what is offered and when (LocalScheduler), slots and bells (executor/shared).

import { type ErrorData, refusalData } from '../../base/index.ts';
import { ByteWriter, type Slab, type SlabRef } from '../../bucket/index.ts';
import type { Invocation } from '../../scheduler/local/index.ts';
import { stepsAheadOf, TICKET_BYTES, type Ticket, ticketBytesMax, writeTicket } from '../shared/index.ts';
import type { Instances, PoolMemory } from './instances.ts';
import { BODY_WEIGHT, WAKE_WORTH_MS } from './limits.ts';

export interface OfferPorts {
  /** Invocations of the pool that wait in the queue, behind what is offered. */
  readonly backlogOf: (pool: string) => number;
  /** No slot is free. */
  readonly onRefused: (invocation: Invocation) => void;
  /** It can never be offered. */
  readonly onFailed: (invocation: Invocation, error: ErrorData) => void;
  /** Everything was offered; `anybody`: an instance was woken. */
  readonly onWoken: (anybody: boolean) => void;
}

export class Offers {
  readonly #instances: Instances;
  readonly #slab: Slab;
  readonly #ports: OfferPorts;
  readonly #toWake = new Set<PoolMemory>();
  readonly #bodyMsOf = new Map<string, number>();

  constructor(instances: Instances, slab: Slab, ports: OfferPorts) {
    this.#instances = instances;
    this.#slab = slab;
    this.#ports = ports;
  }

  /** Puts its ticket into a slot of its pool; the instances are woken at the end of the turn. */
  offer(invocation: Invocation): void {
    const { session } = invocation;
    const pool = this.#instances.pool(invocation.row.pool);
    const slot = pool.tickets.take();
    if (slot === undefined) {
      this.#ports.onRefused(invocation);
      return;
    }
    const ticket = ticketOf(invocation);
    const { function: functionIndex, sessionNo, id } = ticket;
    const begun = invocation.firing !== undefined || invocation.attempts > 0;
    const stepsAhead = stepsAheadOf(session.priority + invocation.row.priority, begun);
    const key = { function: functionIndex, sessionNo, hi: id.hi, lo: id.lo, stepsAhead };
    const bytesMax = ticketBytesMax(ticket);
    if (bytesMax <= TICKET_BYTES) {
      const writer = new ByteWriter(slot.body);
      writeTicket(writer, ticket);
      pool.tickets.publish(slot.slot, key, writer.at);
    } else {
      let block: SlabRef;
      try {
        block = this.#slab.allocate(bytesMax);
      } catch (refusal) {
        pool.tickets.done(slot.slot);
        this.#ports.onFailed(invocation, refusalData(refusal));
        return;
      }
      writeTicket(new ByteWriter(this.#slab.buffer(block)), ticket);
      pool.tickets.publish(slot.slot, key, 0, block);
    }
    this.wakeSoon(pool);
  }

  /** Takes its ticket out of its slot, if it is still there. */
  withdraw(invocation: Invocation): void {
    const { session, id } = invocation;
    const block = this.#instances.pool(invocation.row.pool).tickets.withdraw(session.no, id.hi, id.lo);
    if (block !== undefined && block !== null) this.#slab.free(block);
  }

  /** An attempt in the pool took this long. */
  learnBody(pool: string, ms: number): void {
    const old = this.#bodyMsOf.get(pool) ?? ms;
    this.#bodyMsOf.set(pool, old + BODY_WEIGHT * (ms - old));
  }

  /**
   * Wakes when the turn has offered all it has: a wake costs as much as several short invocations, so as many instances
   * are woken as the work is worth, not one per offer.
   */
  wakeSoon(pool: PoolMemory): void {
    if (this.#toWake.size === 0) queueMicrotask(this.#wakeAll);
    this.#toWake.add(pool);
  }

  readonly #wakeAll = (): void => {
    let anybody = false;
    for (const pool of this.#toWake) {
      pool.tickets.backlog = this.#ports.backlogOf(pool.name);
      const offers = pool.tickets.readyCount;
      const wakes = Math.min(offers, Math.max(1, Math.ceil((offers * this.#bodyMs(pool)) / WAKE_WORTH_MS)));
      for (let i = 0; i < wakes && this.#instances.wakeOne(pool); i++) anybody = true;
    }
    this.#toWake.clear();
    this.#ports.onWoken(anybody);
  };

  /** Estimated time of one attempt in the pool, ms. */
  #bodyMs(pool: PoolMemory): number {
    return this.#bodyMsOf.get(pool.name) ?? WAKE_WORTH_MS;
  }
}

function ticketOf(invocation: Invocation): Ticket {
  const { session } = invocation;
  return {
    sessionNo: session.no,
    session: session.id,
    run: session.run,
    id: invocation.id,
    function: invocation.row.index,
    fence: invocation.fence,
    attempt: invocation.attempts + 1,
    tableVersion: session.tables.version,
    inline: !invocation.hostEvaluates,
    wantsResult: invocation.wantsResult,
    direct: isDirect(invocation),
    priority: session.priority,
    deadlineMs: session.deadlineMs,
    queuedAtMs: invocation.queuedAtMs,
    inputs: invocation.inputs,
  };
}

/** Whoever sees such a session to its end may answer for it: nobody else has a say in its outcome. */
function isDirect({ session, wantsResult, attempts }: Invocation): boolean {
  return (
    wantsResult && attempts === 0 && session.entries.length === 1 && !session.durable && session.open === undefined
  );
}
