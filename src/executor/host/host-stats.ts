// What one app host counts, and its answer to `stats-get`.
//
// Owns: counts of starts and hand-offs, samples of the time from one start to the next.
// Does not own: what is counted elsewhere (sessions, queue, instances, bytes): it is read when somebody asks.

import type { AppTables } from '../../bucket/index.ts';
import { isStored, type Slab, sizeOf } from '../../bucket/index.ts';
import type { HostStats } from '../../protocol/index.ts';
import type { Invocation, LocalScheduler, SessionMachine } from '../../scheduler/local/index.ts';
import { HopSamples } from './hop-samples.ts';
import type { Spiller } from './spiller.ts';

export interface Counted {
  readonly slab: Slab;
  readonly spiller: Spiller;
  readonly sessions: SessionMachine;
  readonly scheduler: LocalScheduler;
  readonly tables: AppTables;
  /** Attempts that run, overtaken ones too. */
  readonly running: number;
  /** Epoch minus monotonic, ms. */
  readonly epochOffsetMs: number;
}

export class HostCounts {
  readonly #hops: HopSamples[];
  readonly #startKinds: Record<string, number> = {};
  #zeroCopyHandOffs = 0;
  #objectBytesMoved = 0;

  constructor(functionCount: number) {
    this.#hops = Array.from({ length: functionCount }, () => new HopSamples());
  }

  attemptStarted(kind: string): void {
    this.#startKinds[kind] = (this.#startKinds[kind] ?? 0) + 1;
  }

  /** An invocation that a firing made has started. */
  handedOn(invocation: Invocation, startedAtMs: number): void {
    this.#hops[invocation.row.index]?.add(startedAtMs - invocation.queuedAtMs);
    for (const input of invocation.inputs) {
      this.#objectBytesMoved += sizeOf(input);
      if (isStored(input.content)) this.#zeroCopyHandOffs++;
    }
  }

  stats({ slab, spiller, sessions, scheduler, tables, running, epochOffsetMs }: Counted): HostStats {
    let objects = 0;
    let inlineBytes = 0;
    for (const session of sessions.sessions()) {
      objects += session.objects.length;
      inlineBytes += session.inlineBytes;
    }
    const { blocks } = spiller;
    return {
      memoryBytes: inlineBytes + blocks.memoryBytes,
      spilledBytes: blocks.spilledBytes,
      store: {
        usedBytes: slab.usedBytes,
        budgetBytes: slab.budgetBytes,
        capacityBytes: slab.capacityBytes,
        blockBytes: blocks.pageBytes,
        fileBytes: spiller.fileBytes,
      },
      objects,
      sessions: sessions.sessionCount,
      queued: scheduler.waiting,
      running,
      zeroCopyHandOffs: this.#zeroCopyHandOffs,
      objectBytesMoved: this.#objectBytesMoved,
      startKinds: { ...this.#startKinds },
      instances: Array.from(scheduler.instances(), (instance) => ({
        instance: instance.id,
        pool: instance.pool,
        state: instance.state,
        startedAt: new Date(instance.startedAtMs + epochOffsetMs).toISOString(),
        useCount: instance.useCount,
        whyStarted: instance.whyStarted,
        whyKept: scheduler.whyKept(instance),
      })),
      hops: tables.functions
        .map((row) => ({ row, samples: this.#hops[row.index] as HopSamples }))
        .filter(({ samples }) => samples.count > 0)
        .map(({ row, samples }) => ({
          function: row.name,
          count: samples.count,
          p50Ms: samples.percentile(0.5),
          p99Ms: samples.percentile(0.99),
        })),
    };
  }
}
