// Bucket-scoped triggers of all apps.
//
// Owns: their machines, the objects they hold, which objects were taken.
// Does not own: the sessions that firings start, what is on disk, timers (driver).
//
// BT1. An object (session, bucket, name) is taken at most once, until its session has ended.
// BT2. A held object is in exactly the placements whose machines hold it; a firing removes it from its own.
// BT3. `heldBytes` of an app is the sum over its placements, and never above HELD_BYTES_MAX.
// BT4. A placement is either current (at most one per app, bucket and trigger name) or drains: then it takes objects
//      of its own version's sessions only, and goes when it holds nothing and that version has no session.

import { assert, type ErrorData, toErrorData } from '../../base/index.ts';
import type { BucketSpec, EvaluationResult, TriggerSpec } from '../../protocol/index.ts';
import {
  CustomMachine,
  createTrigger,
  type EvaluationPlan,
  type Firing,
  type Now,
  restoreTrigger,
  scopeOf,
  type TriggerMachine,
  type TriggerObject,
} from '../../trigger/index.ts';
import { HELD_BYTES_MAX } from './limits.ts';
import type { StoredObject } from './session.ts';

export interface HeldObject {
  readonly key: string;
  /** Arrival order over all apps. */
  readonly seq: number;
  readonly object: StoredObject;
  readonly durable: boolean;
}

/** One trigger of one bucket, with its state. */
export interface Placement {
  readonly app: string;
  /** Whose functions its firings run. */
  readonly version: string;
  readonly bucket: string;
  readonly trigger: string;
  readonly spec: TriggerSpec;
  readonly draining: boolean;
  /** `<bucket>/<trigger>`; with the index it names a firing. */
  readonly path: string;
}

export type BucketTriggersEffect =
  | { readonly type: 'held'; readonly placement: Placement; readonly held: HeldObject }
  | {
      readonly type: 'fire';
      readonly placement: Placement;
      readonly index: string;
      readonly objects: readonly HeldObject[];
      /** Some of the trigger's functions; undefined: all. */
      readonly run: readonly string[] | undefined;
    }
  /** A custom trigger's class is to be asked; `evaluated` follows. `objects`: those of the plan. */
  | {
      readonly type: 'evaluate';
      readonly placement: Placement;
      /** Who asks: another one after a move. */
      readonly machine: CustomMachine;
      readonly plan: EvaluationPlan;
      readonly objects: ReadonlyMap<string, HeldObject>;
    }
  /** A class has decided: its new state belongs on disk, for it has seen what is durable. */
  | { readonly type: 'decided'; readonly placement: Placement }
  /** A class fails with something again and again; without an object it is the class itself, until it is replaced. */
  | {
      readonly type: 'gave-up';
      readonly placement: Placement;
      readonly error: ErrorData;
      readonly object: HeldObject | undefined;
    }
  /** `atMs` undefined: none pends any more. */
  | { readonly type: 'set-timer'; readonly placement: Placement; readonly atMs: number | undefined }
  /** It drains from now on, or belongs to another version: what is on disk of its objects must say so. */
  | { readonly type: 'placed'; readonly placement: Placement; readonly objects: readonly HeldObject[] }
  /** The trigger was removed: what it held is freed. */
  | { readonly type: 'dropped'; readonly placement: Placement; readonly objects: readonly HeldObject[] }
  | { readonly type: 'removed'; readonly placement: Placement };

export type TakeResult =
  | { readonly type: 'taken' | 'duplicate' | 'no-trigger' }
  | { readonly type: 'refused'; readonly error: ErrorData };

interface State {
  placement: Placement;
  machine: TriggerMachine;
  readonly held: Map<string, HeldObject>;
  timerMs: number | undefined;
  /** It has taken something durable, so its state is kept on disk. */
  durable: boolean;
  /** While what an earlier server left is taken up: keys that the machine holds and whose objects are to come. */
  fromSnapshot?: ReadonlySet<string> | undefined;
}

interface AppState {
  states: State[];
  heldBytes: number;
  /** session -> bucket + NUL + name. */
  readonly taken: Map<string, Set<string>>;
}

export class BucketTriggers {
  readonly #apps = new Map<string, AppState>();
  #seq = 0;

  /** Makes the triggers of `buckets` the current ones. State moves where bucket, name and kind are equal. */
  configure(
    app: string,
    version: string,
    buckets: Readonly<Record<string, BucketSpec>>,
    now: Now,
    effects: BucketTriggersEffect[],
  ): void {
    const state = this.#appOf(app);
    const wanted = new Map<string, { bucket: string; trigger: string; spec: TriggerSpec }>();
    for (const [bucket, { on }] of Object.entries(buckets)) {
      for (const [trigger, spec] of Object.entries(on ?? {})) {
        if (scopeOf(spec) === 'bucket') wanted.set(`${bucket}/${trigger}`, { bucket, trigger, spec });
      }
    }
    for (const one of [...state.states]) {
      if (one.placement.draining) continue;
      const next = wanted.get(one.placement.path);
      if (next !== undefined && next.spec.kind === one.placement.spec.kind) {
        wanted.delete(one.placement.path);
        if (one.placement.version === version && sameSpec(one.placement.spec, next.spec)) continue;
        one.machine = restoreTrigger(next.spec, one.machine.snapshot(now), now);
        effects.push({ type: 'set-timer', placement: one.placement, atMs: undefined });
        one.timerMs = undefined;
        one.placement = { ...one.placement, version, spec: next.spec };
        effects.push({ type: 'placed', placement: one.placement, objects: [...one.held.values()] });
        this.#apply(state, one, one.machine.onTimer(now), now, effects);
        continue;
      }
      this.#drain(state, one, effects);
    }
    for (const [path, { bucket, trigger, spec }] of wanted) {
      const placement = { app, version, bucket, trigger, spec, draining: false, path };
      const one: State = {
        placement,
        machine: createTrigger(spec, now),
        held: new Map(),
        timerMs: undefined,
        durable: false,
      };
      state.states.push(one);
      this.#apply(state, one, [], now, effects);
    }
  }

  /** Removes one current trigger at run time and frees what it holds. */
  remove(app: string, bucket: string, trigger: string, effects: BucketTriggersEffect[]): void {
    const state = this.#apps.get(app);
    const path = `${bucket}/${trigger}`;
    const one = state?.states.find(({ placement }) => !placement.draining && placement.path === path);
    if (state === undefined || one === undefined) return;
    this.#drop(state, one, effects);
  }

  removeApp(app: string, effects: BucketTriggersEffect[]): void {
    const state = this.#apps.get(app);
    for (const one of [...(state?.states ?? [])]) if (state !== undefined) this.#drop(state, one, effects);
    this.#apps.delete(app);
  }

  /** Whether triggers that drain still run functions of this version. */
  usesVersion(app: string, version: string): boolean {
    return (
      this.#apps.get(app)?.states.some(({ placement }) => placement.draining && placement.version === version) === true
    );
  }

  heldOf(app: string): { objects: number; bytes: number } {
    const state = this.#apps.get(app);
    let objects = 0;
    for (const one of state?.states ?? []) objects += one.held.size;
    return { objects, bytes: state?.heldBytes ?? 0 };
  }

  /** Triggers that hold objects and wait for more. */
  waitsOf(app: string): { bucket: string; trigger: string; held: number; waitsFor: string }[] {
    const waits: { bucket: string; trigger: string; held: number; waitsFor: string }[] = [];
    for (const { placement, machine, held } of this.#apps.get(app)?.states ?? []) {
      const waitsFor = machine.waitsFor();
      if (held.size === 0 || waitsFor === undefined) continue;
      waits.push({ bucket: placement.bucket, trigger: placement.trigger, held: held.size, waitsFor });
    }
    return waits;
  }

  /** An object arrived from a session of `version`. */
  take(
    source: { app: string; version: string; object: StoredObject; durable: boolean },
    now: Now,
    effects: BucketTriggersEffect[],
  ): TakeResult {
    const { app, version, object, durable } = source;
    const { session, bucket, name, group } = object.header;
    const state = this.#appOf(app);
    const listeners = state.states.filter((one) => listens(one.placement, bucket, version));
    if (listeners.length === 0) return { type: 'no-trigger' };
    const mark = `${bucket}\u0000${name}`;
    let taken = state.taken.get(session);
    if (taken?.has(mark)) return { type: 'duplicate' }; // (BT1)
    const closed = listeners.find(({ machine }) => machine.closed);
    if (closed !== undefined) {
      const message =
        `Bucket '${bucket}' was closed, for all sessions: send before ctx.closeGroup, or remove its trigger ` +
        `'${closed.placement.trigger}' and add it again.`;
      return { type: 'refused', error: { code: 'E_SESSION_ENDED', message } };
    }
    if (state.heldBytes + object.bytes.length * listeners.length > HELD_BYTES_MAX) {
      const message =
        `The bucket-scoped triggers of app '${app}' hold ${state.heldBytes} bytes, and ${object.bytes.length} more are ` +
        `too many: let them fire before you send more.`;
      const details = { limit: 'HELD_BYTES_MAX', max: HELD_BYTES_MAX };
      return { type: 'refused', error: { code: 'E_QUOTA_EXCEEDED', message, details } };
    }
    const held: HeldObject = { key: keyOf(object), seq: ++this.#seq, object, durable };
    let refusal: ErrorData | undefined;
    let takers = 0;
    for (const one of listeners) {
      try {
        const firings = one.machine.onObject({ key: held.key, name, group, session }, now);
        takers++;
        this.#hold(state, one, held, effects);
        this.#apply(state, one, firings, now, effects);
      } catch (error) {
        // A machine that throws has changed nothing; when another trigger took the object it counts as taken.
        if ((error as { code?: unknown }).code === undefined) throw error;
        refusal = toErrorData(error);
      }
    }
    if (takers === 0 && refusal !== undefined) return { type: 'refused', error: refusal };
    if (taken === undefined) {
      taken = new Set();
      state.taken.set(session, taken);
    }
    taken.add(mark);
    return { type: 'taken' };
  }

  /** `ctx.closeGroup` and its like from outside. Does nothing when no bucket-scoped group is there. */
  close(app: string, bucket: string, version: string, now: Now, effects: BucketTriggersEffect[]): void {
    const state = this.#apps.get(app);
    for (const one of state?.states ?? []) {
      if (state === undefined || one.placement.spec.kind !== 'dynamicGroup') continue;
      if (!listens(one.placement, bucket, version)) continue;
      this.#apply(state, one, one.machine.onClose(now), now, effects);
    }
  }

  timerFired(placement: Placement, now: Now, effects: BucketTriggersEffect[]): void {
    const state = this.#apps.get(placement.app);
    const one = state?.states.find((candidate) => candidate.placement === placement);
    if (state === undefined || one === undefined) return;
    one.timerMs = undefined;
    this.#apply(state, one, one.machine.onTimer(now), now, effects);
  }

  /** Its objects that were taken. */
  takenOf(app: string, session: string): { bucket: string; name: string }[] {
    return Array.from(this.#apps.get(app)?.taken.get(session) ?? [], (mark) => {
      const at = mark.indexOf('\u0000');
      return { bucket: mark.slice(0, at), name: mark.slice(at + 1) };
    });
  }

  /** None of its objects can come again. */
  sessionEnded(app: string, session: string): void {
    const state = this.#apps.get(app);
    if (state === undefined || !state.taken.delete(session)) return;
    for (const one of state.states) one.machine.forgetSession(session);
  }

  /** No session of this version is live: what drains and could only be filled by one fires its rest. */
  versionUnused(app: string, version: string, now: Now, effects: BucketTriggersEffect[]): void {
    const state = this.#apps.get(app);
    for (const one of [...(state?.states ?? [])]) {
      if (state === undefined || !one.placement.draining || one.placement.version !== version) continue;
      if (one.held.size > 0 && one.machine.nextTimerMs() !== undefined) continue;
      if (one.machine instanceof CustomMachine && one.machine.isBusy) continue;
      const rest = { index: 'rest', objects: [...one.held.keys()] };
      this.#apply(state, one, rest.objects.length === 0 ? [] : [rest], now, effects);
      this.#removeState(state, one, effects);
    }
  }

  /** After a restart, after `configure`: an object held on disk. In the order of `seq`. */
  restoreHeld(placement: Omit<Placement, 'path'>, held: HeldObject, now: Now, effects: BucketTriggersEffect[]): void {
    const state = this.#appOf(placement.app);
    const one = this.#stateFor(state, placement, now);
    this.#seq = Math.max(this.#seq, held.seq);
    one.held.set(held.key, held);
    one.durable = true;
    state.heldBytes += held.object.bytes.length;
    // Before anything fires it must be known what of its snapshot was lost.
    if (one.fromSnapshot !== undefined && !(one.machine instanceof CustomMachine)) return;
    const firings = one.machine.onObject(triggerObjectOf(held), now);
    // A class is asked when everything is back.
    if (!(one.machine instanceof CustomMachine)) this.#apply(state, one, firings, now, effects);
  }

  /** After a restart, before `restoreHeld`: the state of a machine that cannot be rebuilt from what it holds. */
  restoreSnapshot(placement: Omit<Placement, 'path'>, snapshot: unknown, now: Now): void {
    const one = this.#stateFor(this.#appOf(placement.app), placement, now);
    one.machine = restoreTrigger(one.placement.spec, snapshot, now);
    one.durable = true;
    one.fromSnapshot = new Set(one.machine.heldKeys());
  }

  /**
   * After a restart, when everything that was held is back: what was not durable is gone, and nothing counts it any more.
   * Classes are asked about what they have not decided.
   */
  restored(now: Now, effects: BucketTriggersEffect[]): void {
    for (const state of this.#apps.values()) {
      for (const one of state.states) {
        one.machine.keepOnly((key) => one.held.has(key));
        const { fromSnapshot } = one;
        one.fromSnapshot = undefined;
        if (fromSnapshot !== undefined && !(one.machine instanceof CustomMachine)) {
          // What the snapshot holds was taken then, also if the machine has forgotten its session since.
          const late = [...one.held.values()].filter(({ key }) => !fromSnapshot.has(key));
          const firings = late.flatMap((held) => one.machine.onObject(triggerObjectOf(held), now));
          this.#apply(state, one, firings, now, effects);
        }
        if (one.machine instanceof CustomMachine) this.#apply(state, one, [], now, effects);
      }
    }
  }

  /** What became of the question `id` of a custom trigger's machine. Of a trigger that was moved or removed meanwhile: nothing. */
  evaluated(
    app: string,
    machine: CustomMachine,
    id: number,
    result: EvaluationResult,
    now: Now,
    effects: BucketTriggersEffect[],
  ): void {
    const state = this.#apps.get(app);
    const one = state?.states.find((candidate) => candidate.machine === machine);
    if (state === undefined || one === undefined) return;
    const { placement } = one;
    const { firings, gaveUp } = machine.answered(id, result);
    if (gaveUp !== undefined) {
      const object = gaveUp.key === undefined ? undefined : one.held.get(gaveUp.key);
      effects.push({ type: 'gave-up', placement, error: gaveUp.error, object });
    }
    if (one.durable && (result.evaluated !== undefined || gaveUp !== undefined)) {
      effects.push({ type: 'decided', placement });
    }
    this.#apply(state, one, firings, now, effects);
  }

  /** After a restart: an object that a session, still live, gave and that was taken. */
  restoreTaken(app: string, session: string, bucket: string, name: string): void {
    const { taken } = this.#appOf(app);
    const marks = taken.get(session) ?? new Set();
    taken.set(session, marks.add(`${bucket}\u0000${name}`));
  }

  /** Whether this machine still decides for a trigger. */
  has(app: string, machine: CustomMachine): boolean {
    return this.#apps.get(app)?.states.some((one) => one.machine === machine) === true;
  }

  snapshotOf(placement: Placement, now: Now): unknown {
    const one = this.#apps.get(placement.app)?.states.find((candidate) => candidate.placement === placement);
    return one?.machine.snapshot(now);
  }

  checkInvariants(): void {
    for (const [app, state] of this.#apps) {
      let bytes = 0;
      const current = new Set<string>();
      for (const { placement, machine, held } of state.states) {
        assert(placement.app === app, 'a placement is with its app');
        if (!placement.draining) {
          assert(!current.has(placement.path), 'one current placement per path (BT4)');
          current.add(placement.path);
        }
        assert(machine.held === held.size, 'what a machine holds is what is held for it (BT2)');
        for (const key of machine.heldKeys()) assert(held.has(key), 'a held key has its bytes (BT2)');
        for (const one of held.values()) bytes += one.object.bytes.length;
      }
      assert(bytes === state.heldBytes, 'held bytes are the sum over placements (BT3)');
    }
  }

  #hold(state: AppState, one: State, held: HeldObject, effects: BucketTriggersEffect[]): void {
    one.held.set(held.key, held);
    state.heldBytes += held.object.bytes.length;
    if (held.durable) one.durable = true;
    effects.push({ type: 'held', placement: one.placement, held });
  }

  #apply(state: AppState, one: State, firings: readonly Firing[], now: Now, effects: BucketTriggersEffect[]): void {
    for (const firing of firings) {
      const objects: HeldObject[] = [];
      for (const key of firing.objects) {
        const held = one.held.get(key);
        if (held === undefined) continue; // lost with the server: it was not durable
        one.held.delete(key); // (BT2)
        state.heldBytes -= held.object.bytes.length;
        objects.push(held);
      }
      effects.push({ type: 'fire', placement: one.placement, index: firing.index, objects, run: firing.run });
    }
    // A machine may drop objects without firing them (a redundant's losers): so do we.
    if (one.held.size > one.machine.held) {
      const kept = new Set(one.machine.heldKeys());
      const objects: HeldObject[] = [];
      for (const [key, held] of one.held) {
        if (kept.has(key)) continue;
        one.held.delete(key);
        state.heldBytes -= held.object.bytes.length;
        objects.push(held);
      }
      effects.push({ type: 'dropped', placement: one.placement, objects });
    }
    this.#ask(one, now, effects);
    const timerMs = one.machine.nextTimerMs();
    if (timerMs !== one.timerMs) {
      one.timerMs = timerMs;
      effects.push({ type: 'set-timer', placement: one.placement, atMs: timerMs });
    }
  }

  /** The class of a custom trigger is asked about what has come, unless its last answer is still awaited. */
  #ask(one: State, now: Now, effects: BucketTriggersEffect[]): void {
    const { machine, placement } = one;
    if (!(machine instanceof CustomMachine)) return;
    const plan = machine.begin(now);
    if (plan === undefined) return;
    const objects = new Map<string, HeldObject>();
    for (const { key } of plan.events) {
      if (key === undefined) continue;
      const held = one.held.get(key);
      assert(held !== undefined, 'what a class is asked about is held (BT2)');
      objects.set(key, held);
    }
    effects.push({ type: 'evaluate', placement, machine, plan, objects });
  }

  #drain(state: AppState, one: State, effects: BucketTriggersEffect[]): void {
    effects.push({ type: 'set-timer', placement: one.placement, atMs: undefined });
    one.placement = { ...one.placement, draining: true };
    effects.push({ type: 'placed', placement: one.placement, objects: [...one.held.values()] });
    one.timerMs = one.machine.nextTimerMs();
    if (one.timerMs !== undefined) effects.push({ type: 'set-timer', placement: one.placement, atMs: one.timerMs });
    if (one.held.size === 0 && one.placement.spec.kind === 'byTime') this.#removeState(state, one, effects);
  }

  #drop(state: AppState, one: State, effects: BucketTriggersEffect[]): void {
    const objects = [...one.held.values()];
    for (const held of objects) state.heldBytes -= held.object.bytes.length;
    one.held.clear();
    effects.push({ type: 'dropped', placement: one.placement, objects });
    this.#removeState(state, one, effects);
  }

  #removeState(state: AppState, one: State, effects: BucketTriggersEffect[]): void {
    state.states = state.states.filter((other) => other !== one);
    effects.push({ type: 'set-timer', placement: one.placement, atMs: undefined });
    effects.push({ type: 'removed', placement: one.placement });
  }

  #stateFor(state: AppState, wanted: Omit<Placement, 'path'>, now: Now): State {
    const path = `${wanted.bucket}/${wanted.trigger}`;
    const current = state.states.find(({ placement }) => placement.path === path && !placement.draining);
    if (!wanted.draining && current?.placement.spec.kind === wanted.spec.kind) return current;
    const draining = state.states.find(
      ({ placement }) => placement.path === path && placement.draining && placement.version === wanted.version,
    );
    if (draining !== undefined) return draining;
    const placement = { ...wanted, draining: true, path };
    const one: State = {
      placement,
      machine: createTrigger(wanted.spec, now),
      held: new Map(),
      timerMs: undefined,
      durable: false,
    };
    state.states.push(one);
    return one;
  }

  #appOf(app: string): AppState {
    let state = this.#apps.get(app);
    if (state === undefined) {
      state = { states: [], heldBytes: 0, taken: new Map() };
      this.#apps.set(app, state);
    }
    return state;
  }
}

/** Identifies an object to the machines of bucket scope. */
function keyOf(object: StoredObject): string {
  return `${object.header.session}\u0000${object.header.name}`;
}

function listens(placement: Placement, bucket: string, version: string): boolean {
  return placement.bucket === bucket && (!placement.draining || placement.version === version);
}

function sameSpec(a: TriggerSpec, b: TriggerSpec): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

function triggerObjectOf({ key, object }: HeldObject): TriggerObject {
  const { name, group, session } = object.header;
  return { key, name, group, session };
}
