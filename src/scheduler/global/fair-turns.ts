// Who goes next when several want more than one round has: deficit round robin (Shreedhar and Varghese, 1995).
//
// FT1. In a round at most `perRound` turns are given; whoever has something gets at least `quantum` × its weight before it
//      comes round again. So shares of those who always want more are as their weights, and nobody waits for ever.
// FT2. What a round has left goes to whoever wants it: a turn is lost only when nobody does.

import { assert } from '../../base/index.ts';

export interface FairTurnsOptions {
  readonly roundMs: number;
  readonly perRound: number;
  /** Turns of weight 1. */
  readonly quantum: number;
}

interface Member {
  readonly weight: number;
  /** Turns that it may still take before the next one comes; can be a fraction. */
  credit: number;
}

export class FairTurns<K> {
  readonly #options: FairTurnsOptions;
  /** Those who want more than they got, in the order in which their turns come. */
  readonly #wanting = new Map<K, Member>();
  #roundEndsMs = Number.NEGATIVE_INFINITY;
  #left = 0;

  constructor(options: FairTurnsOptions) {
    assert(options.quantum > 0 && options.perRound >= 1 && options.roundMs > 0, 'a round has turns and an end');
    this.#options = options;
  }

  /** When the next round begins, monotonic ms; undefined when nobody waits for it. */
  get nextRoundMs(): number | undefined {
    return this.#wanting.size === 0 ? undefined : this.#roundEndsMs;
  }

  /** One turn at once, if nobody else waits for one. False: `want` it. */
  takeAtOnce(nowMs: number): boolean {
    if (this.#wanting.size > 0) return false;
    if (nowMs >= this.#roundEndsMs) this.#beginRound(nowMs);
    if (this.#left <= 0) return false;
    this.#left--;
    return true;
  }

  /** It waits for turns until `serve` finds that it has no use for one. @param weight above 0. */
  want(key: K, weight: number): void {
    if (!this.#wanting.has(key)) this.#wanting.set(key, { weight, credit: 0 });
  }

  /** Nobody will ask for it any more. */
  forget(key: K): void {
    this.#wanting.delete(key);
  }

  /** Gives what the round has left. @param use takes one turn; false: it had no use for it and wants no more. */
  serve(nowMs: number, use: (key: K) => boolean): void {
    if (nowMs >= this.#roundEndsMs) this.#beginRound(nowMs);
    while (this.#left > 0) {
      const [first] = this.#wanting;
      if (first === undefined) return;
      const [key, member] = first;
      if (member.credit < 1) member.credit += this.#options.quantum * member.weight;
      while (member.credit >= 1 && this.#left > 0) {
        if (!use(key)) {
          this.#wanting.delete(key);
          break;
        }
        member.credit--;
        this.#left--;
      }
      // With credit left it goes on in the next round.
      if (member.credit < 1 && this.#wanting.delete(key)) this.#wanting.set(key, member);
    }
  }

  #beginRound(nowMs: number): void {
    this.#roundEndsMs = nowMs + this.#options.roundMs;
    this.#left = this.#options.perRound;
  }
}
