// Reads what instances tell.
//
// Owns: the order in which records are read, when the host sleeps, and whether it expects news.
// Does not own: what a record means (driver), the rings themselves (Instances).
//
// HO1. What an instance told is read in its order. Whoever makes an invocation tells so before anybody can begin it: so
//      news of one that is not known yet waits, and its ring with it, until that was read in another ring.
// HO4. Instances that tell without end keep nobody from the host: it reads what was told when it began to look, and where
//      others may come first, it looks up after HOST_SLICE_MS and goes on with the next ring.

import { type EndedRecord, type EventRecord, readRecord } from '../shared/index.ts';
import type { Instances, RunningInstance } from './instances.ts';
import { HOST_SLICE_MS } from './limits.ts';

/** A ring that waits is seen, what it waits for is looked for, and it is read on. */
const PASSES_MIN = 3;
/** After so many slices one look goes to the end: only then can it be known that news is lost. */
const CUTS_IN_A_ROW_MAX = 200;
/** Records between two looks at the clock. */
const RECORDS_PER_LOOK = 32;

export interface RingPorts {
  /** Its firing, or its session when an instance was given that, may still be in another ring. */
  readonly isUnheardOf: (record: EventRecord) => boolean;
  readonly now: () => number;
  readonly onRecord: (running: RunningInstance, record: EventRecord) => void;
  /** Instances want something else than to be read. */
  readonly hasMore: () => boolean;
  /** An instance has rung: read, and do what comes of it. */
  readonly onRung: () => void;
}

export class Rings {
  /** Somebody was woken: it will tell something, or must be looked after. */
  expectsNews = false;
  readonly #instances: Instances;
  readonly #ports: RingPorts;
  #sleeping = false;
  #cutAtMs = Number.POSITIVE_INFINITY;
  #cuts = 0;
  /** Slot of the instance whose ring is read first: the one after that at which the last slice was cut. */
  #nextSlot = 0;

  constructor(instances: Instances, ports: RingPorts) {
    this.#instances = instances;
    this.#ports = ports;
  }

  /** Falls asleep until an instance rings. False: there is something to read first. */
  sleep(): boolean {
    if (this.#sleeping) return true;
    this.#sleeping = this.#instances.sleep(
      () => this.anythingTold() || this.#ports.hasMore(),
      () => {
        this.#sleeping = false;
        this.#ports.onRung();
      },
    );
    return this.#sleeping;
  }

  anythingTold(): boolean {
    for (const running of this.#instances.all()) if (running.reader.peek() !== undefined) return true;
    return false;
  }

  /**
   * Reads what was told by now. News that waits for what was told later, by instances that go on telling, may be left:
   * then `anythingTold`.
   * @param slice reads no longer than HOST_SLICE_MS, and may leave anything.
   */
  readAll(slice = false): void {
    this.expectsNews = false;
    const sliceEndsMs = this.#ports.now() + HOST_SLICE_MS;
    this.#cutAtMs = slice && this.#cuts < CUTS_IN_A_ROW_MAX ? sliceEndsMs : Number.POSITIVE_INFINITY;
    /** Rings that wait, and at which record. */
    let before = new Map<RunningInstance, number>();
    for (let pass = 1; ; pass++) {
      // What a ring waits for was told by now: this is read before it is taken for lost.
      for (const running of this.#instances.all()) running.readTo = running.reader.end;
      const waiting = new Map<RunningInstance, number>();
      const all = [...this.#instances.all()];
      const cut = this.#readEach(all, waiting);
      if (cut || waiting.size === 0) break;
      for (const [running, record] of waiting) {
        if (before.get(running) === record) this.#takeIfLost(running, waiting.keys());
      }
      before = waiting;
      if (pass >= PASSES_MIN && this.#ports.now() >= sliceEndsMs) break; // (HO4)
    }
    for (const running of this.#instances.all()) {
      if (running.ready && !this.#instances.bells.isSleeping(running.slot)) this.expectsNews = true;
    }
  }

  /** Takes the next record already if it is the end that its instance has told the server, of this session. */
  takeToldEnd(running: RunningInstance, sessionNo: number): EndedRecord | undefined {
    const bytes = running.reader.peek(running.readTo);
    if (bytes === undefined) return undefined;
    const record = readRecord(bytes);
    if (record.type !== 'ended' || !record.told || record.sessionNo !== sessionNo) return undefined;
    running.reader.advance();
    running.recordsRead++;
    return record;
  }

  /** @returns whether time was up before all was read. */
  #readEach(all: readonly RunningInstance[], waiting: Map<RunningInstance, number>): boolean {
    const first = Math.max(
      0,
      all.findIndex(({ slot }) => slot >= this.#nextSlot),
    );
    for (let i = 0; i < all.length; i++) {
      const running = all[(first + i) % all.length] as RunningInstance;
      const read = this.#read(running);
      if (read === 'cut') {
        this.#nextSlot = running.slot + 1;
        this.#cuts++;
        return true;
      }
      if (read === 'waits') waiting.set(running, running.recordsRead);
    }
    this.#nextSlot = 0;
    this.#cuts = 0;
    return false;
  }

  /** `waits`: it stands at news of an invocation that is not known yet. */
  #read(running: RunningInstance): 'all' | 'waits' | 'cut' {
    const { reader } = running;
    for (let count = 1; ; count++) {
      if (count % RECORDS_PER_LOOK === 0 && this.#ports.now() >= this.#cutAtMs) return 'cut';
      const bytes = reader.peek(running.readTo);
      if (bytes === undefined) return 'all';
      const record = readRecord(bytes);
      if (record.type === 'started' && this.#ports.isUnheardOf(record)) return 'waits';
      this.#take(running, record);
    }
  }

  #take(running: RunningInstance, record: EventRecord): void {
    running.reader.advance();
    running.recordsRead++;
    this.#ports.onRecord(running, record);
  }

  /**
   * What a ring waits for was told before, and all rings were read but for those that wait. If it is not ahead in one of
   * them, it will never be read: its session is over, or it was overtaken.
   */
  #takeIfLost(running: RunningInstance, waiting: Iterable<RunningInstance>): void {
    for (const other of waiting) if (other !== running && tells(other, running)) return;
    const bytes = running.reader.peek();
    if (bytes !== undefined) this.#take(running, readRecord(bytes));
  }
}

/** Whether `teller` tells, further on, of the invocation that `waiter` stands at. */
function tells(teller: RunningInstance, waiter: RunningInstance): boolean {
  const bytes = waiter.reader.peek();
  if (bytes === undefined) return false;
  const { sessionNo, id } = readRecord(bytes);
  for (const ahead of teller.reader.ahead()) {
    const record = readRecord(ahead);
    if (record.type !== 'sent' || record.sessionNo !== sessionNo) continue;
    if (record.firings?.some((firing) => firing.id.hi === id.hi && firing.id.lo === id.lo)) return true;
  }
  return false;
}
