// Records as the sort benchmarks have them: 100 bytes, of which the first 10 are the key. Any record can be made by itself,
// so mappers make their own part of the input, and a checker all of it.

export const RECORD_BYTES = 100;
export const KEY_BYTES = 10;
const RECORD_WORDS = RECORD_BYTES / 4;
/** One record in so many is a copy of another one: duplicates must survive. */
const COPY_EVERY = 50;

/** Writes records `from` … `from + count - 1` of the input with this seed and size. */
export function writeRecords(
  to: Uint8Array,
  input: { readonly seed: number; readonly records: number },
  { from, count }: { readonly from: number; readonly count: number },
): void {
  const { seed, records } = input;
  const words = new Uint32Array(to.buffer, to.byteOffset, count * RECORD_WORDS);
  for (let i = 0; i < count; i++) {
    let n = from + i;
    if (n % COPY_EVERY === 0 && records > 1) n = 2 * (mix(n ^ seed) % (records >>> 1)) + 1;
    let state = mix(seed + Math.imul(n, 0x9e3779b1));
    const begin = i * RECORD_WORDS;
    // The key and two bytes more: the first word decides the others. Then the record's number, and noise in all the rest.
    words[begin] = state;
    state = mix(state + 0x6d2b79f5);
    words[begin + 1] = state;
    state = mix(state + 0x6d2b79f5);
    words[begin + 2] = state;
    words[begin + 3] = n;
    for (let at = begin + 4; at < begin + RECORD_WORDS; at++) words[at] = state;
  }
}

/** Of a set of records, whatever their order: how many, and 64 bits of their sum. */
export interface Checksum {
  readonly records: number;
  readonly sum: string;
}

export class Checksummer {
  #records = 0;
  #low = 0;
  #high = 0;

  /** @param bytes whole records, at a multiple of four bytes. */
  add(bytes: Uint8Array): void {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    for (let begin = 0; begin < words.length; begin += RECORD_WORDS) {
      let low = 0x811c9dc5;
      let high = 0x9e3779b9;
      for (let at = begin; at < begin + RECORD_WORDS; at++) {
        const word = words[at] as number;
        low = Math.imul(low ^ word, 0x01000193);
        high = Math.imul(high + word, 0x85ebca6b) ^ (high >>> 13);
      }
      this.#low = (this.#low + mix(low)) | 0;
      this.#high = (this.#high + mix(high)) | 0;
      this.#records++;
    }
  }

  /** The checksum of both sets together. */
  addSum({ records, sum }: Checksum): void {
    this.#records += records;
    this.#high = (this.#high + Number.parseInt(sum.slice(0, 8), 16)) | 0;
    this.#low = (this.#low + Number.parseInt(sum.slice(8), 16)) | 0;
  }

  get(): Checksum {
    const hex = (half: number) => (half >>> 0).toString(16).padStart(8, '0');
    return { records: this.#records, sum: hex(this.#high) + hex(this.#low) };
  }
}

/** Keys in order, as unsigned bytes from the first on: a partition is a range of their first four. */
export function partitionOf(bytes: Uint8Array, record: number, partitions: number): number {
  const at = record * RECORD_BYTES;
  const first = (bytes[at] as number) * 0x1_00_00_00 + (bytes[at + 1] as number) * 0x1_00_00;
  const head = first + (bytes[at + 2] as number) * 0x1_00 + (bytes[at + 3] as number);
  return Math.floor((head * partitions) / 0x1_0000_0000);
}

/** How many records have the key of another one, each such key counted once less: records less different keys. */
export function equalKeysOf(input: { readonly seed: number; readonly records: number }): number {
  const chunk = new Uint8Array(10_000 * RECORD_BYTES);
  const words = new Uint32Array(chunk.buffer);
  const firstWords = new Uint32Array(input.records);
  for (let from = 0; from < input.records; from += 10_000) {
    const count = Math.min(10_000, input.records - from);
    writeRecords(chunk, input, { from, count });
    for (let i = 0; i < count; i++) firstWords[from + i] = words[i * RECORD_WORDS] as number;
  }
  firstWords.sort();
  let equal = 0;
  for (let i = 1; i < firstWords.length; i++) if (firstWords[i] === firstWords[i - 1]) equal++;
  return equal;
}

/** Negative, 0 or positive, as the key of record `a` comes before, with or after that of `b`. */
export function compareKeys(aBytes: Uint8Array, a: number, bBytes: Uint8Array, b: number): number {
  for (let i = 0; i < KEY_BYTES; i++) {
    const difference = (aBytes[a * RECORD_BYTES + i] as number) - (bBytes[b * RECORD_BYTES + i] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

export function keyOf(bytes: Uint8Array, record: number): string {
  const at = record * RECORD_BYTES;
  return Buffer.from(bytes.subarray(at, at + KEY_BYTES)).toString('hex');
}

function mix(x: number): number {
  let mixed = Math.imul(x ^ (x >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
