// redundant: fires with the first k of n objects; the later ones are dropped.
//
//   Session scope, once per session:
//     collecting --- k-th object ---> fired   (whatever comes later is dropped; nothing is remembered)
//
//   Bucket scope, once per group:
//     (no group) --- object ---> collecting --- k-th ---> fired --- n-th ---> (forgotten)
//                                     `------- k-th, k = n ----------------------^
//
// R1. A group is forgotten when its n-th object has arrived: its value may then be used again.
// R2. At most REDUNDANT_GROUPS_MAX groups are open. The oldest that has fired makes room, as if its n-th had arrived:
//     where losers fail they never come, and the bucket must go on.
// R3. The index is '0' in session scope, '<count of firings>:<group>' in bucket scope (a value can be used again).

import { PlatformError } from '../base/index.ts';
import { countOf, entriesOf, fieldsOf, flagOf, recordOf, snapshotOf, stringsOf } from './decode.ts';
import { REDUNDANT_GROUPS_MAX } from './limits.ts';
import { assertRoomFor, counted, type Firing, Machine, type TriggerObject } from './machine.ts';
import { type SpecOf, scopeOf } from './spec.ts';
import { TakenKeys } from './taken-keys.ts';

export class RedundantInSessionMachine extends Machine {
  readonly spec: SpecOf<'redundant'>;
  #held = new Set<string>();
  #fired = false;

  constructor(spec: SpecOf<'redundant'>) {
    super();
    this.spec = spec;
  }

  static restore(spec: SpecOf<'redundant'>, snapshot: unknown): RedundantInSessionMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new RedundantInSessionMachine(spec);
    machine.#held = new Set(stringsOf(fields.held, 'held'));
    machine.#fired = flagOf(fields.fired, 'fired');
    return machine;
  }

  onObject(object: TriggerObject): Firing[] {
    if (this.#fired) return [];
    this.#held.add(object.key);
    if (this.#held.size < this.spec.k) return [];
    const objects = [...this.#held];
    this.#held.clear();
    this.#fired = true;
    return [{ index: '0', objects }];
  }

  get held(): number {
    return this.#held.size;
  }

  heldKeys(): Iterable<string> {
    return this.#held;
  }

  waitsFor(): string | undefined {
    if (this.#fired) return undefined;
    return `waits for ${this.spec.k - this.#held.size} of ${counted(this.spec.k, 'object')}`;
  }

  snapshot(): unknown {
    return snapshotOf(this.spec.kind, { held: [...this.#held], fired: this.#fired });
  }
}

interface Group {
  /** Objects that have arrived, those dropped included. */
  arrived: number;
  /** Keys, until it fires. */
  held: string[];
  fired: boolean;
}

export class RedundantInBucketMachine extends Machine {
  readonly spec: SpecOf<'redundant'>;
  #taken = new TakenKeys('bucket');
  /** All open groups. */
  readonly #groups = new Map<string, Group>();
  /** Those of them that have fired, oldest firing first. */
  readonly #firedGroups = new Set<string>();
  #held = 0;
  #firings = 0;

  constructor(spec: SpecOf<'redundant'>) {
    super();
    this.spec = spec;
  }

  static restore(spec: SpecOf<'redundant'>, snapshot: unknown): RedundantInBucketMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new RedundantInBucketMachine(spec);
    machine.#taken = TakenKeys.restore('bucket', fields.taken);
    machine.#firings = countOf(fields.firings, 'firings');
    for (const [name, value] of entriesOf(fields.groups, 'groups')) {
      const { arrived, held, fired } = recordOf(value, 'groups');
      const group = {
        arrived: countOf(arrived, 'arrived'),
        held: stringsOf(held, 'held'),
        fired: flagOf(fired, 'fired'),
      };
      machine.#groups.set(name, group);
      machine.#held += group.held.length;
    }
    for (const name of stringsOf(fields.firedGroups, 'firedGroups')) machine.#firedGroups.add(name);
    return machine;
  }

  onObject(object: TriggerObject): Firing[] {
    if (this.#taken.has(object)) return [];
    this.#taken.assertRoom(this.spec.kind);
    assertRoomFor(this.spec.kind, this.#held);
    const group = this.#groups.get(object.group) ?? this.#openGroup(object.group);
    this.#taken.add(object);
    group.arrived++;
    let firings: Firing[] = [];
    if (!group.fired) {
      group.held.push(object.key);
      this.#held++;
      if (group.held.length >= this.spec.k) firings = [this.#fire(object.group, group)];
    }
    if (group.arrived >= this.spec.n) this.#forgetGroup(object.group); // (R1)
    return firings;
  }

  override forgetSession(session: string): void {
    this.#taken.forgetSession(session);
  }

  override keepOnly(isKept: (key: string) => boolean): void {
    for (const [name, group] of this.#groups) {
      const kept = group.held.filter(isKept);
      const lost = group.held.length - kept.length;
      group.held = kept;
      group.arrived -= lost;
      this.#held -= lost;
      if (group.arrived === 0) this.#forgetGroup(name);
    }
  }

  get held(): number {
    return this.#held;
  }

  *heldKeys(): Generator<string> {
    for (const group of this.#groups.values()) yield* group.held;
  }

  waitsFor(): string | undefined {
    if (this.#held === 0) return undefined;
    const waiting = this.#groups.size - this.#firedGroups.size;
    return `waits for ${counted(waiting, 'group')} to have ${counted(this.spec.k, 'object')} each`;
  }

  snapshot(): unknown {
    return snapshotOf(this.spec.kind, {
      taken: this.#taken.snapshot(),
      groups: Array.from(this.#groups, ([name, group]) => [name, { ...group, held: [...group.held] }]),
      firedGroups: [...this.#firedGroups],
      firings: this.#firings,
    });
  }

  #fire(name: string, group: Group): Firing {
    const objects = group.held;
    this.#held -= objects.length;
    group.held = [];
    group.fired = true;
    this.#firedGroups.add(name);
    return { index: `${this.#firings++}:${name}`, objects, group: name };
  }

  #openGroup(name: string): Group {
    if (this.#groups.size >= REDUNDANT_GROUPS_MAX) this.#makeRoom();
    const group: Group = { arrived: 0, held: [], fired: false };
    this.#groups.set(name, group);
    return group;
  }

  /** (R2) */
  #makeRoom(): void {
    const oldest = this.#firedGroups.values().next();
    if (oldest.done === true) {
      throw new PlatformError(
        'E_QUOTA_EXCEEDED',
        `The redundant trigger has ${REDUNDANT_GROUPS_MAX} groups open of which none has its ` +
          `${counted(this.spec.k, 'object')}, the most it may: complete groups before you begin others.`,
        { details: { limit: 'REDUNDANT_GROUPS_MAX', max: REDUNDANT_GROUPS_MAX } },
      );
    }
    this.#forgetGroup(oldest.value);
  }

  #forgetGroup(name: string): void {
    this.#groups.delete(name);
    this.#firedGroups.delete(name);
  }
}

export function createRedundant(spec: SpecOf<'redundant'>): RedundantInSessionMachine | RedundantInBucketMachine {
  return scopeOf(spec) === 'session' ? new RedundantInSessionMachine(spec) : new RedundantInBucketMachine(spec);
}

export function restoreRedundant(
  spec: SpecOf<'redundant'>,
  snapshot: unknown,
): RedundantInSessionMachine | RedundantInBucketMachine {
  return scopeOf(spec) === 'session'
    ? RedundantInSessionMachine.restore(spec, snapshot)
    : RedundantInBucketMachine.restore(spec, snapshot);
}
