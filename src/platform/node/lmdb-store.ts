// KeyValueStore over LMDB. Writes that come while one is under way share a transaction, and its flush.

import { dirname } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { assert } from '../../base/index.ts';
import type { KeyValueChange, KeyValueRange, KeyValueStore } from '../ports.ts';
import { assertRoom, type FreeBytes } from './disk-room.ts';
import { checkLmdbFile } from './lmdb-file.ts';

/** LMDB's own limit with 4 KiB pages. */
const KEY_BYTES_MAX = 1_978;

export class LmdbStore implements KeyValueStore {
  readonly #database: RootDatabase<Buffer, Buffer>;
  readonly #folder: string;
  readonly #freeBytes: FreeBytes | undefined;
  #bytesUnderWay = 0;
  #closing: Promise<void> | undefined;

  /**
   * @param file made when it is not there. One process only: the data folder's lock guards it.
   * @param freeBytes default: as the system says.
   * @throws E_CHECKSUM when it is damaged, or is not there although others of its folder are.
   */
  constructor(file: string, freeBytes?: FreeBytes) {
    checkLmdbFile(file);
    this.#folder = dirname(file);
    this.#freeBytes = freeBytes;
    this.#database = open<Buffer, Buffer>({
      path: file,
      noSubdir: true,
      encoding: 'binary',
      keyEncoding: 'binary',
      // A commit is its flush: beside each other they are no faster here, and where one fails nobody is told of the other.
      overlappingSync: false,
      // With it LMDB makes a promise of its own for each turn, and nobody can hear of its failure: a full disk would end us.
      eventTurnBatching: false,
    });
  }

  get(key: string): Uint8Array | undefined {
    return this.#database.get(keyOf(key));
  }

  *range(range: KeyValueRange): Iterable<readonly [key: string, value: Uint8Array]> {
    const from = keyOf(range.from);
    const to = keyOf(range.to);
    const limit = range.limit === undefined ? {} : { limit: range.limit };
    // In reverse LMDB takes `start` inclusive and `end` exclusive, the wrong way round for us: cut the two ends here.
    const entries = range.reverse
      ? this.#database.getRange({ start: to, reverse: true })
      : this.#database.getRange({ start: from, end: to, ...limit });
    let left = range.limit ?? Number.POSITIVE_INFINITY;
    for (const { key, value } of entries) {
      if (Buffer.compare(key, to) >= 0) continue;
      if (left-- <= 0 || Buffer.compare(key, from) < 0) return;
      yield [key.toString(), value];
    }
  }

  /** @throws E_QUOTA_EXCEEDED when the disk is nearly full. */
  async transaction(changes: readonly KeyValueChange[]): Promise<void> {
    assert(this.#closing === undefined, 'a closed store is not written');
    let bytes = 0;
    for (const change of changes) if ('put' in change) bytes += change.value.length;
    assertRoom(this.#folder, bytes, this.#bytesUnderWay, this.#freeBytes);
    this.#bytesUnderWay += bytes;
    try {
      await this.#database.batch(() => {
        for (const change of changes) {
          const written =
            'put' in change
              ? this.#database.put(keyOf(change.put), asBuffer(change.value))
              : this.#database.remove(keyOf(change.delete));
          // Each fails with the batch, which is where it is heard of.
          written.catch(() => {});
        }
      });
    } catch (error) {
      throw await writeError(error);
    } finally {
      this.#bytesUnderWay -= bytes;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#database.flushed.then(() => this.#database.close());
    return this.#closing;
  }
}

/** LMDB tells the reason, a full disk for one, by a promise of its own, which is settled at about the same time. */
async function writeError(error: unknown): Promise<Error> {
  const reason = (error as { commitError?: Promise<never> }).commitError;
  const said = await Promise.race([reason?.catch((why: unknown) => why), new Promise((turn) => setImmediate(turn))]);
  const why = said instanceof Error ? said.message : 'the reason is in the output of the server';
  return new Error(`The data folder cannot be written to: ${why}`, { cause: error });
}

function keyOf(key: string): Buffer {
  const bytes = Buffer.from(key);
  assert(bytes.length > 0 && bytes.length <= KEY_BYTES_MAX, 'a key is 1 to KEY_BYTES_MAX bytes');
  return bytes;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
