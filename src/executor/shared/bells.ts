// Waking threads: only a sleeper is woken, because a wake costs the waker 10 µs and more.
//
// The waiter sets SLEEPING, looks once more for work, then waits on the old value of its bell; the waker makes the
// work visible, then swaps SLEEPING to AWAKE and rings. So no wake-up is lost. Whoever is woken by something else pauses
// its sleep, so that it is not rung for work that it cannot take.

import { INSTANCE_SLOTS_MAX } from './limits.ts';

const AWAKE = 0;
const SLEEPING = 1;

type WaitAsync = (words: Int32Array, index: number, value: number) => { async: boolean; value: unknown };
const waitAsync = (Atomics as unknown as { waitAsync: WaitAsync }).waitAsync;

/** How a thread waits on a word of shared memory. The simulator, whose threads are turns of one, has its own. */
export interface WordWaits {
  /** Calls back once when the word is notified; soon if it no longer has `value`. Never within this call. */
  wait(words: Int32Array, index: number, value: number, wake: () => void): void;
  notify(words: Int32Array, index: number): void;
  /** Stops this thread while the word has `value`, `timeoutMs` at the longest. */
  block(words: Int32Array, index: number, value: number, timeoutMs: number): void;
}

export const ATOMICS_WAITS: WordWaits = {
  wait: (words, index, value, wake) => {
    const waiting = waitAsync(words, index, value);
    if (waiting.async) (waiting.value as Promise<unknown>).then(wake);
    else queueMicrotask(wake);
  },
  notify: (words, index) => void Atomics.notify(words, index),
  block: (words, index, value, timeoutMs) => void Atomics.wait(words, index, value, timeoutMs),
};

/** The host has the last place. */
export const HOST_BELL = INSTANCE_SLOTS_MAX;

export function createBells(): SharedArrayBuffer {
  return new SharedArrayBuffer((INSTANCE_SLOTS_MAX + 1) * 8);
}

export class Bells {
  readonly #words: Int32Array;
  readonly #waits: WordWaits;

  constructor(memory: SharedArrayBuffer, waits: WordWaits = ATOMICS_WAITS) {
    this.#words = new Int32Array(memory);
    this.#waits = waits;
  }

  /** @returns whether `place` slept and was woken by this call. */
  ring(place: number): boolean {
    const words = this.#words;
    if (Atomics.load(words, place * 2) !== SLEEPING) return false;
    if (Atomics.compareExchange(words, place * 2, SLEEPING, AWAKE) !== SLEEPING) return false;
    Atomics.add(words, place * 2 + 1, 1);
    this.#waits.notify(words, place * 2 + 1);
    return true;
  }

  /**
   * `place` was woken by something else: no longer ring it. Its `wake` still comes if it was rung before.
   * @returns whether it slept and nobody had rung it.
   */
  pause(place: number): boolean {
    return Atomics.compareExchange(this.#words, place * 2, SLEEPING, AWAKE) === SLEEPING;
  }

  /** Sleeps on after `pause`. @returns false, awake, when `hasWork` finds some. */
  resume(place: number, hasWork: () => boolean): boolean {
    Atomics.store(this.#words, place * 2, SLEEPING);
    return !hasWork() || !this.pause(place);
  }

  isSleeping(place: number): boolean {
    return Atomics.load(this.#words, place * 2) === SLEEPING;
  }

  /** For a place whose thread is gone or new. */
  reset(place: number): void {
    Atomics.store(this.#words, place * 2, AWAKE);
  }

  /**
   * Calls `wake` once, when `place` is rung; at once (and returns false) when `hasWork` finds some after SLEEPING is set.
   * @returns whether it sleeps now.
   */
  sleep(place: number, hasWork: () => boolean, wake: () => void): boolean {
    const words = this.#words;
    const bell = place * 2 + 1;
    const old = Atomics.load(words, bell);
    Atomics.store(words, place * 2, SLEEPING);
    if (hasWork() && Atomics.compareExchange(words, place * 2, SLEEPING, AWAKE) === SLEEPING) return false;
    this.#waits.wait(words, bell, old, wake);
    return true;
  }
}
