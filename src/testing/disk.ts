// The disk of the simulated machine: it outlives the server's process, but not what was not flushed.
//
// DI1. A transaction is visible some time after it was asked for and durable some time later; order is kept. When the
//      machine's server dies, a prefix of what was not durable yet survives, of any length.
// DI2. A file is there as a whole or not at all.

import { assert } from '../base/index.ts';
import {
  type DataFolder,
  type KeyValueChange,
  type KeyValueRange,
  type KeyValueStore,
  MemoryKeyValueStore,
} from '../platform/index.ts';
import type { Actor, World } from './world.ts';

interface Pending {
  readonly changes: readonly KeyValueChange[];
  committed: boolean;
}

export class SimDisk {
  readonly #world: World;
  #durable = new Map<string, Uint8Array>();
  #visible = new MemoryKeyValueStore();
  #pending: Pending[] = [];
  readonly files = new Map<string, Uint8Array>();
  #unwritten: { readonly path: string; readonly bytes: Uint8Array }[] = [];
  #lastCommitMs = 0;
  #lastFlushMs = 0;
  /** How long a write takes, at the most. */
  slownessMs = 2;
  /** For planted bugs: it says that something is durable when it is only asked for. */
  isHasty = false;
  /** For planted bugs: what is written at all. */
  filter: (change: KeyValueChange) => boolean = () => true;

  constructor(world: World) {
    this.#world = world;
  }

  get keyCount(): number {
    return this.#durable.size;
  }

  /** What is durable below a prefix. */
  keys(prefix: string): string[] {
    return [...this.#durable.keys()].filter((key) => key.startsWith(prefix));
  }

  store(actor: Actor): KeyValueStore {
    return {
      get: (key) => this.#visible.get(key),
      range: (range: KeyValueRange) => this.#visible.range(range),
      transaction: (changes) => this.#write(actor, changes),
      close: async () => {},
    };
  }

  folder(actor: Actor): DataFolder {
    const world = this.#world;
    const wait = <T>(what: string, act: () => T): Promise<T> =>
      new Promise((resolve) => {
        if (actor.alive) world.soon(actor, this.slownessMs, what, () => resolve(act()));
      });
    return {
      path: '/sim',
      write: (path, bytes) => {
        const one = { path, bytes: bytes.slice() };
        this.#unwritten.push(one);
        return wait('', () => {
          this.#unwritten = this.#unwritten.filter((other) => other !== one);
          this.files.set(path, one.bytes);
        });
      },
      read: (path, range) =>
        wait('', () => {
          const bytes = this.files.get(path);
          return range === undefined ? bytes?.slice() : bytes?.slice(range.start, range.end);
        }),
      remove: (path) =>
        wait('', () => {
          for (const name of [...this.files.keys()]) {
            if (name === path || name.startsWith(`${path}/`)) this.files.delete(name);
          }
        }),
      list: (path) =>
        wait('', () => {
          const names = new Set<string>();
          for (const name of this.files.keys()) {
            if (name.startsWith(`${path}/`)) names.add(name.slice(path.length + 1).split('/')[0] ?? '');
          }
          return [...names];
        }),
      link: async () => {},
    };
  }

  /** The server's process has died (DI1). */
  crash(): void {
    const kept = this.#world.schedule.int(this.#pending.length + 1);
    this.#world.note(`disk: ${kept} of ${this.#pending.length} transactions survive`);
    for (const { changes } of this.#pending.slice(0, kept)) applyTo(this.#durable, changes);
    this.#pending = [];
    this.#visible = new MemoryKeyValueStore();
    const puts = Array.from(this.#durable, ([put, value]) => ({ put, value }));
    void this.#visible.transaction(puts);
    for (const { path, bytes } of this.#unwritten.splice(0)) {
      if (this.#world.schedule.float() < 0.5) this.files.set(path, bytes);
    }
  }

  #write(actor: Actor, changes: readonly KeyValueChange[]): Promise<void> {
    if (!actor.alive) return new Promise(() => {});
    const world = this.#world;
    const one: Pending = { changes: changes.filter(this.filter).map(copyOf), committed: false };
    this.#pending.push(one);
    return new Promise((resolve) => {
      if (this.isHasty) resolve();
      this.#lastCommitMs = Math.max(this.#lastCommitMs, world.nowMs + world.schedule.float() * this.slownessMs * 0.2);
      this.#lastFlushMs = Math.max(
        this.#lastFlushMs + TINY_MS,
        this.#lastCommitMs + world.schedule.float() * this.slownessMs,
      );
      const { flushed } = { flushed: this.#lastFlushMs };
      world.at(actor, this.#lastCommitMs, '', () => this.#commitUpTo(one));
      world.at(actor, flushed, 'disk: durable', () => {
        this.#commitUpTo(one);
        assert(this.#pending[0] === one, 'transactions become durable in order');
        this.#pending.shift();
        applyTo(this.#durable, one.changes);
        resolve();
      });
    });
  }

  #commitUpTo(last: Pending): void {
    for (const one of this.#pending) {
      if (!one.committed) {
        one.committed = true;
        void this.#visible.transaction(one.changes);
      }
      if (one === last) return;
    }
  }
}

/** Two writes are never durable at the same instant, so that their order is sure. */
const TINY_MS = 1e-6;

function copyOf(change: KeyValueChange): KeyValueChange {
  return 'put' in change ? { put: change.put, value: change.value.slice() } : change;
}

function applyTo(values: Map<string, Uint8Array>, changes: readonly KeyValueChange[]): void {
  for (const change of changes) {
    if ('put' in change) values.set(change.put, change.value);
    else values.delete(change.delete);
  }
}
