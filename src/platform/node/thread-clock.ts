// One monotonic clock for all threads of a process. `performance.now()` is fast, but counts from each thread's own start;
// `hrtime` counts from the same instant everywhere, but costs several times as much. So: the first, shifted by the second.

const SAMPLES = 16;

/**
 * Milliseconds between the two on this thread. They are read one after the other, and what passes between makes the
 * difference too small: the largest of several is the nearest. (One alone was up to 0.4 ms off on a thread that had just
 * started, more than a hop takes.)
 */
function offsetMs(): number {
  let largest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < SAMPLES; i++) {
    largest = Math.max(largest, Number(process.hrtime.bigint()) / 1e6 - performance.now());
  }
  return largest;
}

/** The host's offset; goes to its threads. */
export function threadClockOrigin(): number {
  return offsetMs();
}

/** A clock that shows on this thread what `performance.now()` shows on the thread whose origin it is. */
export function threadClock(originMs: number): () => number {
  const shift = offsetMs() - originMs;
  return () => performance.now() + shift;
}
