// Whether what a sort came to is the input in order: no record lost or added, each range sorted, ranges in order, repeated
// keys kept.

import { type Checksum, Checksummer, compareKeys, equalKeysOf, RECORD_BYTES, writeRecords } from './records.ts';

const CHUNK_RECORDS = 10_000;

/** Is given the ranges in their order, each in pieces of any length. */
export class SortCheck {
  readonly checksum = new Checksummer();
  /** Records with the key of the one before. */
  equalKeys = 0;
  readonly #wrong: string[] = [];
  #range = '';
  #isFirst = true;
  #isSorted = true;
  /** The record before, of an earlier range too. */
  #last: Uint8Array | undefined;
  #rest = new Uint8Array(0);

  beginRange(name: string): void {
    this.#range = name;
    this.#isFirst = true;
    this.#isSorted = true;
  }

  add(bytes: Uint8Array): void {
    const joined = new Uint8Array(this.#rest.length + bytes.length);
    joined.set(this.#rest);
    joined.set(bytes, this.#rest.length);
    const count = Math.floor(joined.length / RECORD_BYTES);
    this.#rest = joined.slice(count * RECORD_BYTES);
    if (count === 0) return;
    this.checksum.add(joined.subarray(0, count * RECORD_BYTES));
    if (this.#last !== undefined) this.#compare(compareKeys(this.#last, 0, joined, 0));
    this.#isFirst = false;
    for (let i = 1; i < count; i++) this.#compare(compareKeys(joined, i - 1, joined, i));
    this.#last = joined.slice((count - 1) * RECORD_BYTES, count * RECORD_BYTES);
  }

  endRange(): void {
    if (this.#rest.length > 0) this.#wrong.push(`${this.#range} ends within a record`);
    this.#rest = new Uint8Array(0);
  }

  /** @returns one line per check that failed, against the input made once more from its seed. */
  compareWith(input: { readonly seed: number; readonly records: number }): string[] {
    const wrong = [...this.#wrong];
    const [found, truth, equalKeys] = [this.checksum.get(), truthOf(input), equalKeysOf(input)];
    if (found.records !== truth.records) wrong.push(`${found.records} records came out, ${truth.records} went in`);
    if (found.sum !== truth.sum) wrong.push(`the records are not the input’s: ${found.sum}, not ${truth.sum}`);
    if (this.equalKeys !== equalKeys) wrong.push(`${this.equalKeys} repeated keys came out, ${equalKeys} went in`);
    return wrong;
  }

  #compare(order: number): void {
    if (order === 0) this.equalKeys++;
    if (order <= 0) return;
    if (this.#isFirst) this.#wrong.push(`${this.#range} begins before the range before it ends`);
    else if (this.#isSorted) {
      this.#isSorted = false;
      this.#wrong.push(`${this.#range} is not sorted`);
    }
  }
}

function truthOf(job: { readonly seed: number; readonly records: number }): Checksum {
  const checksum = new Checksummer();
  const chunk = new Uint8Array(CHUNK_RECORDS * RECORD_BYTES);
  for (let from = 0; from < job.records; from += CHUNK_RECORDS) {
    const count = Math.min(CHUNK_RECORDS, job.records - from);
    writeRecords(chunk, job, { from, count });
    checksum.add(chunk.subarray(0, count * RECORD_BYTES));
  }
  return checksum.get();
}
