// Reads what instances tell.
//
// Owns: the order in which records are read, when the host sleeps, and whether it expects news.
// Does not own: what a record means (driver), the rings themselves (Instances).
//
// HO1. What an instance told is read in its order; news of an invocation that is not known yet is read after the rings of
//      all others, because whoever made it told so first.
// HO4. Instances that tell without end keep nobody from the host: it reads what was told when it began to look.

import { type EventRecord, readRecord } from '../shared/index.ts';
import type { Instances, RunningInstance } from './instances.ts';

export interface RingPorts {
  /** Its firing, or its session when an instance was given that, may still be in another ring. */
  readonly isUnheardOf: (record: EventRecord) => boolean;
  readonly onRecord: (running: RunningInstance, record: EventRecord) => void;
  /** An instance has rung: read, and do what comes of it. */
  readonly onRung: () => void;
}

export class Rings {
  /** Somebody was woken: it will tell something, or must be looked after. */
  expectsNews = false;
  readonly #instances: Instances;
  readonly #ports: RingPorts;
  #sleeping = false;

  constructor(instances: Instances, ports: RingPorts) {
    this.#instances = instances;
    this.#ports = ports;
  }

  /** Falls asleep until an instance rings. False: there is something to read first. */
  sleep(): boolean {
    if (this.#sleeping) return true;
    this.#sleeping = this.#instances.sleep(
      () => this.anythingTold(),
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

  /** Reads everything that was told by now. */
  readAll(): void {
    this.expectsNews = false;
    for (const running of this.#instances.all()) {
      this.#read(running);
      if (running.ready && !this.#instances.bells.isSleeping(running.slot)) this.expectsNews = true;
    }
  }

  #read(running: RunningInstance): void {
    // Whoever reads it further up goes on; what it waits for cannot lie behind what it reads (HO1).
    if (running.beingRead) return;
    running.beingRead = true;
    const { reader } = running;
    const { end } = reader;
    for (;;) {
      const bytes = reader.peek(end);
      if (bytes === undefined) break;
      const record = readRecord(bytes);
      if (record.type === 'started' && this.#ports.isUnheardOf(record)) {
        for (const other of this.#instances.all()) this.#read(other);
      }
      reader.advance();
      this.#ports.onRecord(running, record);
    }
    running.beingRead = false;
  }
}
