// immediate and byName: one firing per matching object.
//
//   object, not matching ............................ ignored, not remembered
//   object, matching, key new ------> fires [key], index = its name; the key is taken
//   object, matching, key taken ..................... ignored
//
// Both can also be evaluated where the object is sent, without a machine: `matchesName`, with the same index.

import { fieldsOf, snapshotOf } from './decode.ts';
import { type Firing, Machine, type TriggerObject } from './machine.ts';
import { matchesName, type SpecOf } from './spec.ts';
import { TakenKeys } from './taken-keys.ts';

export class PerObjectMachine extends Machine {
  readonly spec: SpecOf<'immediate'> | SpecOf<'byName'>;
  readonly #taken: TakenKeys;

  constructor(spec: SpecOf<'immediate'> | SpecOf<'byName'>, taken = new TakenKeys('session')) {
    super();
    this.spec = spec;
    this.#taken = taken;
  }

  static restore(spec: SpecOf<'immediate'> | SpecOf<'byName'>, snapshot: unknown): PerObjectMachine {
    return new PerObjectMachine(spec, TakenKeys.restore('session', fieldsOf(spec.kind, snapshot).taken));
  }

  onObject(object: TriggerObject): Firing[] {
    if (!matchesName(this.spec, object.name) || this.#taken.has(object)) return [];
    this.#taken.assertRoom(this.spec.kind);
    this.#taken.add(object);
    return [{ index: object.name, objects: [object.key] }];
  }

  get held(): number {
    return 0;
  }

  heldKeys(): Iterable<string> {
    return [];
  }

  waitsFor(): undefined {
    return undefined;
  }

  snapshot(): unknown {
    return snapshotOf(this.spec.kind, { taken: this.#taken.snapshot() });
  }
}
