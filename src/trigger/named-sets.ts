// bySet and dynamicJoin: one firing per session, when a set of objects is complete.
//
//   bySet        awaiting names ------ last name arrives ------> fired
//
//   dynamicJoin  collecting --- join(names) ---> awaiting names --- last name ---> fired
//                    |                                 `-- all there, or none named ---^
//                    `--------- join(count) ---> counting --------- n-th ---------> fired
//                                                      `-- n there already, or 0 -------^
//
// N1. Awaiting names: what is held is exactly the awaited names that have arrived; other names are ignored.
// N2. Fired: nothing is held or remembered; whatever comes is ignored. The one index is '0'.

import { PlatformError } from '../base/index.ts';
import { countOf, entriesOf, fieldsOf, snapshotOf, stringOf } from './decode.ts';
import { HELD_OBJECTS_MAX, REASON_NAMES_MAX } from './limits.ts';
import { assertRoomFor, counted, type Firing, type Join, Machine, type TriggerObject } from './machine.ts';
import type { SpecOf } from './spec.ts';

const ONLY_INDEX = '0';

/** Names in their order, each with the key that arrived under it, or without one. */
class AwaitedNames {
  readonly #keys = new Map<string, string | undefined>();
  #missing: number;

  /** A name that occurs twice counts once. */
  constructor(names: Iterable<string>) {
    for (const name of names) this.#keys.set(name, undefined);
    this.#missing = this.#keys.size;
  }

  get isComplete(): boolean {
    return this.#missing === 0;
  }

  get held(): number {
    return this.#keys.size - this.#missing;
  }

  /** Ignores names that are not awaited, or not any more. */
  put(name: string, key: string): void {
    if (!this.#keys.has(name) || this.#keys.get(name) !== undefined) return;
    this.#keys.set(name, key);
    this.#missing--;
  }

  /** In the order of the names. */
  *heldKeys(): Generator<string> {
    for (const key of this.#keys.values()) if (key !== undefined) yield key;
  }

  waitsFor(): string {
    const missing: string[] = [];
    for (const [name, key] of this.#keys) {
      if (key !== undefined) continue;
      if (missing.length === REASON_NAMES_MAX) {
        missing.push(`and ${this.#missing - REASON_NAMES_MAX} more`);
        break;
      }
      missing.push(name);
    }
    return `waits for ${this.#missing} of ${counted(this.#keys.size, 'name')}: ${missing.join(', ')}`;
  }

  /** [name, key] or [name]. */
  entries(): unknown {
    return Array.from(this.#keys, ([name, key]) => (key === undefined ? [name] : [name, key]));
  }

  static fromEntries(snapshot: unknown): AwaitedNames {
    const entries = entriesOf(snapshot, 'names');
    const awaited = new AwaitedNames(entries.map(([name]) => name));
    for (const [name, key] of entries) if (key !== undefined) awaited.put(name, stringOf(key, 'names'));
    return awaited;
  }
}

export class BySetMachine extends Machine {
  readonly spec: SpecOf<'bySet'>;
  /** undefined: fired. */
  #awaited: AwaitedNames | undefined;

  constructor(spec: SpecOf<'bySet'>) {
    super();
    this.spec = spec;
    this.#awaited = new AwaitedNames(spec.names);
  }

  static restore(spec: SpecOf<'bySet'>, snapshot: unknown): BySetMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new BySetMachine(spec);
    if (fields.held === null) machine.#awaited = undefined;
    else for (const [name, key] of entriesOf(fields.held, 'held')) machine.#awaited?.put(name, stringOf(key, 'held'));
    return machine;
  }

  onObject(object: TriggerObject): Firing[] {
    const awaited = this.#awaited;
    if (awaited === undefined) return [];
    awaited.put(object.name, object.key);
    if (!awaited.isComplete) return [];
    this.#awaited = undefined;
    return [{ index: ONLY_INDEX, objects: [...awaited.heldKeys()] }];
  }

  get held(): number {
    return this.#awaited?.held ?? 0;
  }

  heldKeys(): Iterable<string> {
    return this.#awaited?.heldKeys() ?? [];
  }

  waitsFor(): string | undefined {
    return this.#awaited?.waitsFor();
  }

  snapshot(): unknown {
    // The names themselves are in the spec: only what has arrived is state.
    const entries = this.#awaited?.entries() as [string, string?][] | undefined;
    return snapshotOf(this.spec.kind, { held: entries?.filter((entry) => entry.length === 2) ?? null });
  }
}

type JoinState =
  /** Arrivals, name to key, in order; `wanted` is undefined until the join. */
  | { readonly phase: 'collecting'; readonly arrived: Map<string, string>; wanted: number | undefined }
  | { readonly phase: 'awaiting'; readonly awaited: AwaitedNames }
  | { readonly phase: 'fired' };

export class DynamicJoinMachine extends Machine {
  readonly spec: SpecOf<'dynamicJoin'>;
  #state: JoinState = { phase: 'collecting', arrived: new Map(), wanted: undefined };
  #joinedBy: string | undefined;

  constructor(spec: SpecOf<'dynamicJoin'>) {
    super();
    this.spec = spec;
  }

  static restore(spec: SpecOf<'dynamicJoin'>, snapshot: unknown): DynamicJoinMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new DynamicJoinMachine(spec);
    machine.#joinedBy = fields.joinedBy === null ? undefined : stringOf(fields.joinedBy, 'joinedBy');
    if (fields.phase === 'fired') machine.#state = { phase: 'fired' };
    else if (fields.phase === 'awaiting') {
      machine.#state = { phase: 'awaiting', awaited: AwaitedNames.fromEntries(fields.names) };
    } else {
      const arrived = new Map<string, string>();
      for (const [name, key] of entriesOf(fields.arrived, 'arrived')) arrived.set(name, stringOf(key, 'arrived'));
      const wanted = fields.wanted === null ? undefined : countOf(fields.wanted, 'wanted');
      machine.#state = { phase: 'collecting', arrived, wanted };
    }
    return machine;
  }

  onObject(object: TriggerObject): Firing[] {
    const state = this.#state;
    if (state.phase === 'collecting' && !state.arrived.has(object.name)) {
      assertRoomFor(this.spec.kind, state.arrived.size);
      state.arrived.set(object.name, object.key);
    } else if (state.phase === 'awaiting') state.awaited.put(object.name, object.key);
    return this.#fireIfComplete();
  }

  override onJoin(join: Join, by: string): Firing[] {
    if (this.#joinedBy === by) return [];
    if (this.#joinedBy !== undefined) {
      throw new PlatformError(
        'E_OBJECT_EXISTS',
        'Another invocation has joined this bucket: there is one join per bucket and session. ' +
          'Join from one invocation only, or use a bucket of its own for each join.',
        { details: { joinedBy: this.#joinedBy } },
      );
    }
    const wanted = wantedOf(join);
    this.#joinedBy = by;
    const state = this.#state;
    if (state.phase !== 'collecting') return [];
    if (typeof wanted === 'number') state.wanted = wanted;
    else {
      for (const [name, key] of state.arrived) wanted.put(name, key);
      this.#state = { phase: 'awaiting', awaited: wanted };
    }
    return this.#fireIfComplete();
  }

  get held(): number {
    const state = this.#state;
    if (state.phase === 'collecting') return state.arrived.size;
    return state.phase === 'awaiting' ? state.awaited.held : 0;
  }

  heldKeys(): Iterable<string> {
    const state = this.#state;
    if (state.phase === 'collecting') return state.arrived.values();
    return state.phase === 'awaiting' ? state.awaited.heldKeys() : [];
  }

  waitsFor(): string | undefined {
    const state = this.#state;
    if (state.phase === 'fired') return undefined;
    if (state.phase === 'awaiting') return state.awaited.waitsFor();
    if (state.wanted === undefined) return 'waits for ctx.join to name the set';
    return `waits for ${state.wanted - state.arrived.size} of ${counted(state.wanted, 'object')}`;
  }

  snapshot(): unknown {
    const state = this.#state;
    return snapshotOf(this.spec.kind, {
      phase: state.phase,
      joinedBy: this.#joinedBy ?? null,
      ...(state.phase === 'awaiting' ? { names: state.awaited.entries() } : {}),
      ...(state.phase === 'collecting' ? { arrived: [...state.arrived], wanted: state.wanted ?? null } : {}),
    });
  }

  #fireIfComplete(): Firing[] {
    const objects = completed(this.#state);
    if (objects === undefined) return [];
    this.#state = { phase: 'fired' };
    return [{ index: ONLY_INDEX, objects }];
  }
}

/** The objects to fire with, or undefined while some are missing. */
function completed(state: JoinState): string[] | undefined {
  if (state.phase === 'fired') return undefined;
  if (state.phase === 'awaiting') return state.awaited.isComplete ? [...state.awaited.heldKeys()] : undefined;
  if (state.wanted === undefined || state.arrived.size < state.wanted) return undefined;
  const objects: string[] = [];
  for (const key of state.arrived.values()) {
    if (objects.length === state.wanted) break;
    objects.push(key);
  }
  return objects;
}

/** What a join asks for, checked. */
function wantedOf(join: Join): AwaitedNames | number {
  const { names, count } = join;
  if ((names === undefined) === (count === undefined)) {
    throw new PlatformError('E_OPTION_INVALID', 'A join takes either names or a count: give exactly one of them.');
  }
  if (count !== undefined && (!Number.isSafeInteger(count) || count < 0)) {
    throw new PlatformError('E_OPTION_INVALID', `The count of a join is a whole number from 0 on, not ${count}.`);
  }
  const width = count ?? new Set(names).size;
  if (width > HELD_OBJECTS_MAX) {
    throw new PlatformError(
      'E_QUOTA_EXCEEDED',
      `A join waits for at most ${HELD_OBJECTS_MAX} objects, not ${width}: join in stages.`,
      { details: { limit: 'HELD_OBJECTS_MAX', max: HELD_OBJECTS_MAX } },
    );
  }
  return count ?? new AwaitedNames(names ?? []);
}
