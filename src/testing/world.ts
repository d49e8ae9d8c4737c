// Virtual time, and everything that happens in it, in one thread.
//
// Owns: what happens next, who is alive, the trace of what happened and its hash.
// Does not own: what the parts of the simulated machine are (machine), what goes wrong when (faults).
//
// WO1. The same seed makes the same trace: all time and chance come from here, and one event is done at a time, with all
//      promises that it settles.
// WO2. What is dead does nothing: its events are dropped, and a thread that dies in the middle of a turn does not go on.

import { Heap, Prng } from '../base/index.ts';

/** A process, a thread, or the world itself. */
export interface Actor {
  readonly name: string;
  alive: boolean;
  /** It stands still until then (SIGSTOP, a loop without end). */
  pausedUntilMs: number;
  /** It dies after so many further calls of its ports; 0 = not so. */
  dyingIn: number;
  /** What follows from its death. */
  onDeath: (() => void) | undefined;
}

interface Happening {
  readonly atMs: number;
  readonly tie: number;
  readonly actor: Actor;
  readonly what: string;
  callback: (() => void) | undefined;
}

/** Thrown through a thread that dies in the middle of a turn. */
export const DEAD = Symbol('dead');

/** What reading the clock costs, so that no loop that waits for time to pass is without end. */
const TICK_MS = 0.0005;
/** Lines of the trace that are kept for whoever reads a failure. */
const TRACE_LINES_MAX = 400;

export class World {
  readonly seed: number;
  /** Which of several things is first, and how long each takes. */
  readonly schedule: Prng;
  readonly trace: string[] = [];
  /** Every line of the trace, when somebody wants all of it. */
  onTrace: ((line: string) => void) | undefined;
  /** After every event. */
  onSettled: (() => void) | undefined;
  /** Errors that nobody caught: bugs. */
  readonly uncaught: unknown[] = [];
  #nowMs = 1_000;
  #hash = 0x811c9dc5;
  #events = 0;
  #postponed = 0;
  readonly #heap: Heap<Happening>;
  readonly #self: Actor = this.actor('world');
  #current: Actor = this.#self;

  constructor(seed: number) {
    this.seed = seed;
    this.schedule = this.random('schedule');
    this.#heap = new Heap((a, b) => a.atMs < b.atMs || (a.atMs === b.atMs && a.tie < b.tie));
  }

  /** A source of chance of its own, so that one use of chance does not change another. */
  random(purpose: string): Prng {
    return new Prng((hashOf(purpose, this.seed) ^ Math.imul(this.seed, 0x9e3779b1)) >>> 0);
  }

  actor(name: string): Actor {
    return { name, alive: true, pausedUntilMs: 0, dyingIn: 0, onDeath: undefined };
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get eventCount(): number {
    return this.#events;
  }

  /** Of everything that happened so far. */
  get hash(): string {
    return this.#hash.toString(16).padStart(8, '0');
  }

  /** What an actor's clock shows. */
  readClock(actor: Actor): number {
    this.touch(actor);
    this.#nowMs += TICK_MS;
    return this.#nowMs;
  }

  /** A port was called: the place where an actor may die in the middle of what it does. */
  touch(actor: Actor): void {
    if (!actor.alive) throw DEAD;
    if (actor.dyingIn === 0 || --actor.dyingIn > 0) return;
    this.kill(actor, 'in the middle of a turn');
    throw DEAD;
  }

  /** @returns how to take it back. */
  at(actor: Actor, atMs: number, what: string, callback: () => void): () => void {
    const one: Happening = { atMs: Math.max(atMs, this.#nowMs), tie: this.schedule.uint32(), actor, what, callback };
    this.#heap.push(one);
    return () => {
      one.callback = undefined;
    };
  }

  /** In a while of up to `withinMs`. */
  soon(actor: Actor, withinMs: number, what: string, callback: () => void): () => void {
    return this.at(actor, this.#nowMs + this.schedule.float() * withinMs, what, callback);
  }

  /** Of the world itself: faults, clients. */
  later(atMs: number, what: string, callback: () => void): () => void {
    return this.at(this.#self, atMs, what, callback);
  }

  kill(actor: Actor, why: string): void {
    if (!actor.alive) return;
    actor.alive = false;
    this.note(`${actor.name} dies: ${why}`);
    actor.onDeath?.();
  }

  note(text: string): void {
    const line = `${this.#nowMs.toFixed(3).padStart(12)}  ${text}`;
    for (let i = 0; i < line.length; i++) this.#hash = Math.imul(this.#hash ^ line.charCodeAt(i), 0x01000193) >>> 0;
    this.trace.push(line);
    if (this.trace.length > 2 * TRACE_LINES_MAX) this.trace.splice(0, TRACE_LINES_MAX);
    this.onTrace?.(line);
  }

  /** Lets things happen until `isOver`, or until nothing is left before `untilMs`. */
  async run(untilMs: number, isOver: () => boolean = () => false): Promise<void> {
    await settled();
    while (!isOver()) {
      const next = this.#heap.peek();
      if (next === undefined || next.atMs > untilMs) {
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return;
      }
      this.#heap.pop();
      const { callback, actor } = next;
      if (callback === undefined || !actor.alive) continue;
      if (actor.pausedUntilMs > next.atMs) {
        if (Number.isFinite(actor.pausedUntilMs)) this.#postpone(next, actor.pausedUntilMs);
        continue;
      }
      next.callback = undefined;
      this.#current = actor;
      this.#events++;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      if (next.what !== '') this.note(`${actor.name}: ${next.what}`);
      try {
        callback();
      } catch (error) {
        this.caught(error);
      }
      await settled();
      this.onSettled?.();
      if (this.uncaught.length > 0) return;
    }
  }

  /** Nobody caught it: a bug, unless it comes of dying in the middle of something. */
  caught(error: unknown): void {
    if (error !== DEAD && this.#current.alive) this.uncaught.push(error);
  }

  /** Its order among what waits with it stays. */
  #postpone(one: Happening, atMs: number): void {
    this.#heap.push({ ...one, atMs, tie: this.#postponed++ });
  }
}

/** (WO1) One turn of the event loop comes after all promises that are settled now. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function hashOf(text: string, seed: number): number {
  let hash = seed ^ 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
