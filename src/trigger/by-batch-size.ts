// byBatchSize: fires each `size` objects, in arrival order; with `maxWaitMs` also the smaller rest.
//
//   empty --- object ---> filling --- size-th object -----------------> empty   (fires `size`)
//                           |  timer: oldest arrival + maxWaitMs -----> empty   (fires the rest)
//                           `-- object that comes at or after that time: the rest fires first, then it is held
//
// B1. Between events fewer than `size` are held, except after a restore under a smaller `size`: then a timer is due.
// B2. The index counts firings from '0'.

import { countOf, fieldsOf, numberOf, snapshotOf, stringsOf } from './decode.ts';
import { assertRoomFor, counted, type Firing, Machine, type Now, type TriggerObject } from './machine.ts';
import { type SpecOf, scopeOf } from './spec.ts';
import { TakenKeys } from './taken-keys.ts';

export class ByBatchSizeMachine extends Machine {
  readonly spec: SpecOf<'byBatchSize'>;
  #taken: TakenKeys;
  #held: string[] = [];
  /** Monotonic arrival time of the oldest object held; of no meaning while none is. */
  #oldestMs = 0;
  #firings = 0;

  constructor(spec: SpecOf<'byBatchSize'>) {
    super();
    this.spec = spec;
    this.#taken = new TakenKeys(scopeOf(spec));
  }

  static restore(spec: SpecOf<'byBatchSize'>, snapshot: unknown, now: Now): ByBatchSizeMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new ByBatchSizeMachine(spec);
    machine.#taken = TakenKeys.restore(scopeOf(spec), fields.taken);
    machine.#held = stringsOf(fields.held, 'held');
    machine.#oldestMs = now.monotonicMs - numberOf(fields.oldestAgeMs, 'oldestAgeMs');
    machine.#firings = countOf(fields.firings, 'firings');
    return machine;
  }

  onObject(object: TriggerObject, now: Now): Firing[] {
    if (this.#taken.has(object)) return this.onTimer(now);
    this.#taken.assertRoom(this.spec.kind);
    assertRoomFor(this.spec.kind, this.#held.length);
    const firings = this.onTimer(now);
    this.#taken.add(object);
    if (this.#held.length === 0) this.#oldestMs = now.monotonicMs;
    this.#held.push(object.key);
    if (this.#held.length >= this.spec.size) firings.push(this.#fire(this.spec.size));
    return firings;
  }

  override onTimer(now: Now): Firing[] {
    const firings: Firing[] = [];
    while (this.#held.length >= this.spec.size) firings.push(this.#fire(this.spec.size));
    const dueMs = this.nextTimerMs();
    if (dueMs !== undefined && now.monotonicMs >= dueMs) firings.push(this.#fire(this.#held.length));
    return firings;
  }

  override nextTimerMs(): number | undefined {
    if (this.#held.length >= this.spec.size) return this.#oldestMs; // (B1)
    if (this.#held.length === 0 || this.spec.maxWaitMs === undefined) return undefined;
    return this.#oldestMs + this.spec.maxWaitMs;
  }

  override forgetSession(session: string): void {
    this.#taken.forgetSession(session);
  }

  get held(): number {
    return this.#held.length;
  }

  heldKeys(): Iterable<string> {
    return this.#held;
  }

  waitsFor(): string | undefined {
    if (this.#held.length === 0) return undefined;
    const missing = `waits for ${this.spec.size - this.#held.length} of ${counted(this.spec.size, 'object')}`;
    return this.spec.maxWaitMs === undefined ? missing : `${missing}, at most ${this.spec.maxWaitMs} ms`;
  }

  snapshot(now: Now): unknown {
    return snapshotOf(this.spec.kind, {
      taken: this.#taken.snapshot(),
      held: [...this.#held],
      oldestAgeMs: this.#held.length === 0 ? 0 : now.monotonicMs - this.#oldestMs,
      firings: this.#firings,
    });
  }

  #fire(count: number): Firing {
    const objects = this.#held;
    this.#held = objects.splice(count);
    return { index: String(this.#firings++), objects };
  }
}
