// byTime: fires at the end of each window, by a timer, with all objects that arrived in that window.
//
//   idle --- object ---> open --- timer: end of the window -----------------------> idle   (fires what is held)
//                         `--- object that comes at or after the end: fires first, then opens a window for it
//
//   fireEmpty (bucket scope): always open; the end of a window fires with what is held, or with nothing, and opens
//   the next one.
//
// W1. An object belongs to the window that its arrival lies in, however late the timer is. A boundary belongs to the
//     window that starts there.
// W2. Late by several windows: one firing, and the next end is again on the grid.
// W3. Without fireEmpty no timer pends while nothing is held: an idle trigger costs nothing, and a session can end.
// W4. The index counts firings from '0'. It is not the window's time: a wall clock that is set back would repeat one.

import { countOf, fieldsOf, flagOf, snapshotOf, stringsOf } from './decode.ts';
import { assertRoomFor, type Firing, Machine, type Now, type TriggerObject } from './machine.ts';
import { type SpecOf, scopeOf } from './spec.ts';
import { TakenKeys } from './taken-keys.ts';
import { type WindowClock, windowClockOf } from './window-clock.ts';

export class ByTimeMachine extends Machine {
  readonly spec: SpecOf<'byTime'>;
  readonly #clock: WindowClock;
  readonly #fireEmpty: boolean;
  #taken: TakenKeys;
  #held: string[] = [];
  #isOpen = false;
  #firings = 0;

  constructor(spec: SpecOf<'byTime'>, now: Now) {
    super();
    this.spec = spec;
    this.#clock = windowClockOf(spec, now);
    this.#fireEmpty = spec.fireEmpty === true && scopeOf(spec) === 'bucket';
    this.#taken = new TakenKeys(scopeOf(spec));
    if (this.#fireEmpty) this.#open(now);
  }

  static restore(spec: SpecOf<'byTime'>, snapshot: unknown, now: Now): ByTimeMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new ByTimeMachine(spec, now);
    machine.#taken = TakenKeys.restore(scopeOf(spec), fields.taken);
    machine.#held = stringsOf(fields.held, 'held');
    machine.#firings = countOf(fields.firings, 'firings');
    machine.#clock.restore(fields.clock, now);
    const wasOpen = flagOf(fields.open, 'open');
    machine.#isOpen = machine.#held.length > 0 || machine.#fireEmpty;
    if (machine.#isOpen && !wasOpen) machine.#clock.open(now);
    return machine;
  }

  onObject(object: TriggerObject, now: Now): Firing[] {
    if (this.#taken.has(object)) return this.onTimer(now);
    this.#taken.assertRoom(this.spec.kind);
    assertRoomFor(this.spec.kind, this.#held.length);
    const firings = this.onTimer(now); // (W1)
    if (!this.#isOpen) this.#open(now);
    this.#taken.add(object);
    this.#held.push(object.key);
    return firings;
  }

  override onTimer(now: Now): Firing[] {
    if (!this.#isOpen || !this.#clock.isOver(now)) return [];
    const objects = this.#held;
    this.#held = [];
    this.#isOpen = false;
    if (this.#fireEmpty) this.#open(now); // (W2)
    return [{ index: String(this.#firings++), objects }];
  }

  override nextTimerMs(): number | undefined {
    return this.#isOpen ? this.#clock.endMs : undefined;
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
    const { cron, windowMs } = this.spec;
    return cron === undefined ? `waits for the end of its window of ${windowMs} ms` : `waits for the cron ${cron}`;
  }

  snapshot(now: Now): unknown {
    return snapshotOf(this.spec.kind, {
      taken: this.#taken.snapshot(),
      held: [...this.#held],
      open: this.#isOpen,
      firings: this.#firings,
      clock: this.#clock.snapshot(now),
    });
  }

  #open(now: Now): void {
    this.#clock.open(now);
    this.#isOpen = true;
  }
}
