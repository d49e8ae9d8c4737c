import { createHash, randomBytes } from 'node:crypto';
import type { EpochMs, MonotonicMs } from '../../base/index.ts';
import type { CancelTimer, Clock, Digest, Random, Timers } from '../ports.ts';

/** The longest delay that setTimeout takes; longer ones are cut into pieces. */
const TIMER_DELAY_MS_MAX = 2_147_483_647;
/** Random numbers come in batches: one call into the generator per number costs ten times as much. */
const RANDOM_BATCH = 256;

export const nodeClock: Clock = {
  monotonicMs: () => performance.now() as MonotonicMs,
  epochMs: () => Date.now() as EpochMs,
};

export const nodeTimers: Timers = {
  set(atMs: MonotonicMs, callback: () => void): CancelTimer {
    let handle: NodeJS.Timeout | undefined;
    const arm = () => {
      // setTimeout cuts fractions off, and so may end up to 1 ms early.
      const delayMs = Math.max(0, Math.ceil(atMs - performance.now()));
      handle = setTimeout(
        () => {
          if (performance.now() < atMs) arm();
          else callback();
        },
        Math.min(delayMs, TIMER_DELAY_MS_MAX),
      );
    };
    arm();
    return () => clearTimeout(handle);
  },
};

let batch = new Uint32Array(0);
let used = 0;

export const nodeRandom: Random = {
  uint32() {
    if (used >= batch.length) {
      const bytes = randomBytes(4 * RANDOM_BATCH);
      batch = new Uint32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength));
      used = 0;
    }
    return batch[used++] ?? 0;
  },
  bytes: (count: number) => randomBytes(count),
};

/** SHA-256 over length-prefixed parts, so that two lists of parts never look alike. */
export const nodeDigest: Digest = (parts) => {
  const hash = createHash('sha256');
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    hash.update(`${bytes.length}:`);
    hash.update(bytes);
  }
  return hash.digest('hex');
};
