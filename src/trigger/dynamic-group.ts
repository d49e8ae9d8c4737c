// dynamicGroup: one firing per group, each with all objects of its group, when no more can come.
//
//   Without producers:
//     collecting --- close ---> closed    (fires all groups; later objects are ignored, the owner refuses them)
//
//   With producers, in rounds, session scope only:
//     collecting --- producer ended ok -----> ready --- quiet, objects held ---> collecting, next round (fires)
//         |                                     |
//         `--- producer failed ---> blocked <---'      quiet does not fire
//     any of them --- close ---> closed   (fires what is held)
//
// G1. Arrival order within a group; groups in the order of their first object; '' is a group like any other.
// G2. The index is '<round>:<group>'; a round ends with a quiet or close that fired.
// G3. A producer that has ended stays noted until a firing: a quiet without objects uses nothing up.
// G4. Blocked is for good.

import { countOf, entriesOf, fieldsOf, flagOf, snapshotOf, stringsOf } from './decode.ts';
import { REASON_NAMES_MAX } from './limits.ts';
import { assertRoomFor, type Firing, Machine, type TriggerObject } from './machine.ts';
import { type SpecOf, scopeOf } from './spec.ts';
import { TakenKeys } from './taken-keys.ts';

export class DynamicGroupMachine extends Machine {
  readonly spec: SpecOf<'dynamicGroup'>;
  #taken: TakenKeys;
  #groups = new Map<string, string[]>();
  #held = 0;
  #round = 0;
  #producerEnded = false;
  #producerFailed = false;
  #closed = false;

  constructor(spec: SpecOf<'dynamicGroup'>) {
    super();
    this.spec = spec;
    this.#taken = new TakenKeys(scopeOf(spec));
  }

  static restore(spec: SpecOf<'dynamicGroup'>, snapshot: unknown): DynamicGroupMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new DynamicGroupMachine(spec);
    machine.#taken = TakenKeys.restore(scopeOf(spec), fields.taken);
    for (const [group, keys] of entriesOf(fields.groups, 'groups')) {
      const held = stringsOf(keys, 'groups');
      machine.#groups.set(group, held);
      machine.#held += held.length;
    }
    machine.#round = countOf(fields.round, 'round');
    machine.#producerEnded = flagOf(fields.producerEnded, 'producerEnded');
    machine.#producerFailed = flagOf(fields.producerFailed, 'producerFailed');
    machine.#closed = flagOf(fields.closed, 'closed');
    return machine;
  }

  onObject(object: TriggerObject): Firing[] {
    if (this.#closed || this.#taken.has(object)) return [];
    this.#taken.assertRoom(this.spec.kind);
    assertRoomFor(this.spec.kind, this.#held);
    this.#taken.add(object);
    const keys = this.#groups.get(object.group);
    if (keys === undefined) this.#groups.set(object.group, [object.key]);
    else keys.push(object.key);
    this.#held++;
    return [];
  }

  override onClose(): Firing[] {
    if (this.#closed) return [];
    this.#closed = true;
    this.#taken.clear();
    return this.#fire();
  }

  override get closed(): boolean {
    return this.#closed;
  }

  override onProducerEnded(functionName: string, outcome: 'ok' | 'failed'): void {
    if (this.#closed || this.spec.producers?.includes(functionName) !== true) return;
    if (outcome === 'ok') this.#producerEnded = true;
    else this.#producerFailed = true;
  }

  override onQuiet(): Firing[] {
    if (this.#producerFailed) return []; // (G4)
    return this.#producerEnded ? this.#fire() : [];
  }

  override forgetSession(session: string): void {
    this.#taken.forgetSession(session);
  }

  override keepOnly(isKept: (key: string) => boolean): void {
    for (const [group, keys] of this.#groups) {
      const kept = keys.filter(isKept);
      this.#held -= keys.length - kept.length;
      if (kept.length === 0) this.#groups.delete(group);
      else this.#groups.set(group, kept);
    }
  }

  get held(): number {
    return this.#held;
  }

  *heldKeys(): Generator<string> {
    for (const keys of this.#groups.values()) yield* keys;
  }

  waitsFor(): string | undefined {
    if (this.#closed || this.#held === 0) return undefined;
    const { producers } = this.spec;
    if (producers === undefined) return 'waits for ctx.closeGroup';
    if (this.#producerFailed) return 'does not fire: one of its producers failed';
    if (this.#producerEnded) return 'waits until nothing of the session can produce any more';
    const more = producers.length > REASON_NAMES_MAX ? `, and ${producers.length - REASON_NAMES_MAX} more` : '';
    return `waits for its producers to end: ${producers.slice(0, REASON_NAMES_MAX).join(', ')}${more}`;
  }

  snapshot(): unknown {
    return snapshotOf(this.spec.kind, {
      taken: this.#taken.snapshot(),
      groups: Array.from(this.#groups, ([group, keys]) => [group, [...keys]]),
      round: this.#round,
      producerEnded: this.#producerEnded,
      producerFailed: this.#producerFailed,
      closed: this.#closed,
    });
  }

  /** Every group that holds objects, in one round; nothing when none does (G3). */
  #fire(): Firing[] {
    if (this.#held === 0) return [];
    const round = this.#round++;
    const firings = Array.from(this.#groups, ([group, objects]) => ({ index: `${round}:${group}`, objects, group }));
    this.#groups = new Map();
    this.#held = 0;
    this.#producerEnded = false;
    return firings;
  }
}
