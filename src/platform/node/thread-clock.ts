// One monotonic clock for all threads of a process. `performance.now()` is fast, but counts from each thread's own start;
// `hrtime` counts from the same instant everywhere, but costs several times as much. So: the first, shifted by the second.

/** Milliseconds between the two on this thread. */
function offsetMs(): number {
  return Number(process.hrtime.bigint()) / 1e6 - performance.now();
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
