// Sorts records by their keys, without moving more than 12 bytes per record before the order is known.

import { RECORD_BYTES } from './records.ts';

/**
 * Writes the records of all `runs` into `sorted`, in the order of their keys; equal keys keep the order of the runs.
 *
 * The first six bytes of a key are one number, the other four another; what is sorted is the numbers of the records.
 */
export function sortInto(sorted: Uint8Array, runs: readonly Uint8Array[]): void {
  const count = sorted.length / RECORD_BYTES;
  const heads = new Float64Array(count);
  const tails = new Uint32Array(count);
  const runOf = new Uint32Array(count);
  const firstOf: number[] = [];
  let record = 0;
  for (const [index, run] of runs.entries()) {
    firstOf.push(record);
    for (let at = 0; at < run.length; at += RECORD_BYTES) {
      heads[record] = numberOf(run, at, 6);
      tails[record] = numberOf(run, at + 6, 4);
      runOf[record] = index;
      record++;
    }
  }
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  order.sort(
    (a, b) => (heads[a] as number) - (heads[b] as number) || (tails[a] as number) - (tails[b] as number) || a - b,
  );
  for (let i = 0; i < count; i++) {
    const from = order[i] as number;
    const run = runOf[from] as number;
    const at = (from - (firstOf[run] as number)) * RECORD_BYTES;
    sorted.set((runs[run] as Uint8Array).subarray(at, at + RECORD_BYTES), i * RECORD_BYTES);
  }
}

/** Unsigned, most significant byte first. */
function numberOf(bytes: Uint8Array, at: number, length: number): number {
  let number = 0;
  for (let i = at; i < at + length; i++) number = number * 256 + (bytes[i] as number);
  return number;
}
