// The store of tests and of the simulator. Durable means: in the map.

import { assert } from '../base/index.ts';
import type { KeyValueChange, KeyValueRange, KeyValueStore } from './ports.ts';

export class MemoryKeyValueStore implements KeyValueStore {
  readonly #values = new Map<string, Uint8Array>();
  #sorted: { key: string; bytes: Buffer }[] | undefined;
  #closed = false;

  get(key: string): Uint8Array | undefined {
    return this.#values.get(key)?.slice();
  }

  *range(range: KeyValueRange): Iterable<readonly [key: string, value: Uint8Array]> {
    this.#sorted ??= Array.from(this.#values.keys(), (key) => ({ key, bytes: Buffer.from(key) })).sort((a, b) =>
      Buffer.compare(a.bytes, b.bytes),
    );
    const from = Buffer.from(range.from);
    const to = Buffer.from(range.to);
    const inside = this.#sorted.filter(
      ({ bytes }) => Buffer.compare(bytes, from) >= 0 && Buffer.compare(bytes, to) < 0,
    );
    if (range.reverse) inside.reverse();
    for (const { key } of inside.slice(0, range.limit)) {
      const value = this.#values.get(key);
      if (value !== undefined) yield [key, value.slice()];
    }
  }

  async transaction(changes: readonly KeyValueChange[]): Promise<void> {
    assert(!this.#closed, 'a closed store is not written');
    for (const change of changes) {
      if ('put' in change) this.#values.set(change.put, change.value.slice());
      else this.#values.delete(change.delete);
    }
    this.#sorted = undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}
