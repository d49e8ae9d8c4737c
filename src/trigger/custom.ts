// A trigger whose decisions a class of the user's makes, elsewhere and later.
//
// Owns: what has not been evaluated yet, what is held, the class's state and timer between evaluations, when to give up.
// Does not own: the class (custom-evaluation.ts, in an instance), who is asked, the bytes of objects.
//
//   onObject, onSource ──▶ queue ──begin()──▶ in flight ──answered()──▶ held ──▶ fired, dropped
//                            ▲                    │
//                            └──── failed() ◀─────┘   the same events again, at last one by one; then given up
//
// CU1. At most one evaluation is in flight; events are evaluated in the order in which they came.
// CU2. Only an answer to the evaluation in flight changes anything, and it does so as a whole: whatever became of earlier
//      askings, and whether or not the class decides alike twice, each event is decided once.
// CU3. Firings are numbered from 0 in the order in which they were decided; no later event changes a decided one.
// CU4. A key that was taken is in exactly one place: queued or in flight, held, or gone (fired, dropped, given up).
// CU5. An event is not asked about for ever: it is decided or given up after EVALUATION_TRIES_MAX failures of its own.

import { type ErrorData, Fifo, PlatformError } from '../base/index.ts';
import type { Evaluated, Evaluation, EvaluationEvent, EvaluationFailure, EvaluationResult } from '../protocol/index.ts';
import {
  countOf,
  type Fields,
  fieldsOf,
  listOf,
  numberOf,
  recordOf,
  snapshotOf,
  stringOf,
  stringsOf,
} from './decode.ts';
import {
  EVALUATION_EVENTS_MAX,
  EVALUATION_FIRINGS_MAX,
  EVALUATION_LOSSES_MAX,
  EVALUATION_QUEUE_MAX,
  EVALUATION_TRIES_MAX,
} from './limits.ts';
import { assertRoomFor, counted, type Firing, Machine, type Now, type TriggerObject } from './machine.ts';
import { functionsOf, type SpecOf, scopeOf } from './spec.ts';
import { TakenKeys } from './taken-keys.ts';

export interface Source {
  readonly function: string;
  readonly invocation: string;
}

/** What is asked; whoever asks adds metadata and values of the objects. */
export interface EvaluationPlan {
  readonly id: number;
  readonly events: readonly PlannedEvent[];
  readonly state: string | undefined;
  readonly timerAtMs: number | undefined;
  readonly untilMs: number;
}

export type PlannedEvent =
  | { readonly atMs: number; readonly key: string; readonly source?: never }
  | { readonly atMs: number; readonly source: Source; readonly key?: never };

/** What comes of an answer. */
export interface Outcome {
  readonly firings: Firing[];
  /** Objects that will never fire. */
  readonly dropped: readonly string[];
  /** An event that is not asked about any more, or (`setup`) the class itself until another version comes. */
  readonly gaveUp?: {
    readonly what: 'setup' | 'timer' | 'source' | 'object';
    readonly key?: string;
    readonly error: ErrorData;
  };
}

const NOTHING: Outcome = { firings: [], dropped: [] };

export class CustomMachine extends Machine {
  readonly spec: SpecOf<'custom'>;
  #taken: TakenKeys;
  #queue = new Fifo<PlannedEvent>(EVALUATION_QUEUE_MAX);
  #queuedKeys = new Set<string>();
  /** Decided about, and neither fired nor dropped; in order of arrival. */
  #held = new Set<string>();
  /** Held once, but their bytes are gone with a server: a firing that names them goes without. */
  #lost = new Set<string>();
  #state: string | undefined;
  #timerAtMs: number | undefined;
  #fired = 0;
  #originMs: number;
  /** `isAlone`: one event or one timer, so it is known what is to blame. */
  #flight: { readonly id: number; readonly events: readonly PlannedEvent[]; readonly isAlone: boolean } | undefined;
  #nextId = 1;
  /** Events of the next evaluation: smaller after a failure, to find the event that is to blame. */
  #batch = EVALUATION_EVENTS_MAX;
  #tries = 0;
  #losses = 0;
  #stalled: ErrorData | undefined;

  constructor(spec: SpecOf<'custom'>, now: Now) {
    super();
    this.spec = spec;
    this.#taken = new TakenKeys(scopeOf(spec));
    this.#originMs = now.monotonicMs;
  }

  static restore(spec: SpecOf<'custom'>, snapshot: unknown, now: Now): CustomMachine {
    const fields = fieldsOf(spec.kind, snapshot);
    const machine = new CustomMachine(spec, now);
    machine.#originMs = now.monotonicMs - numberOf(fields.clockMs, 'clockMs');
    machine.#taken = TakenKeys.restore(scopeOf(spec), fields.taken);
    machine.#held = new Set(stringsOf(fields.held, 'held'));
    machine.#lost = new Set(stringsOf(fields.lost, 'lost'));
    for (const event of listOf(fields.queue, 'queue')) machine.#enqueue(eventOf(recordOf(event, 'queue')));
    machine.#state = fields.state === null ? undefined : stringOf(fields.state, 'state');
    machine.#timerAtMs = fields.timerAtMs === null ? undefined : numberOf(fields.timerAtMs, 'timerAtMs');
    machine.#fired = countOf(fields.fired, 'fired');
    return machine;
  }

  /** It is decided about later: fires nothing. */
  onObject(object: TriggerObject, now: Now): Firing[] {
    const { key } = object;
    if (this.#taken.has(object) || this.#held.has(key) || this.#queuedKeys.has(key)) return [];
    this.#taken.assertRoom(this.spec.kind);
    assertRoomFor(this.spec.kind, this.held);
    this.#assertQueueRoom();
    this.#taken.add(object);
    this.#lost.delete(key);
    this.#enqueue({ atMs: this.#timeAt(now), key });
    return [];
  }

  /** An invocation of one of `sources` has started. @throws E_QUOTA_EXCEEDED (overload). */
  onSourceStarted(source: Source, now: Now): void {
    if (this.spec.sources?.includes(source.function) !== true || this.#stalled !== undefined) return;
    this.#assertQueueRoom();
    this.#enqueue({ atMs: this.#timeAt(now), source });
  }

  /** The next question, if there is one and none is in flight (CU1). */
  begin(now: Now): EvaluationPlan | undefined {
    if (this.#flight !== undefined || this.#stalled !== undefined) return undefined;
    const nowMs = this.#timeAt(now);
    const timerAtMs = this.#timerAtMs;
    const first = this.#queue.peek();
    const isDue = timerAtMs !== undefined && timerAtMs <= nowMs;
    if (first === undefined && !isDue) return undefined;
    const isTimerFirst = isDue && (first === undefined || timerAtMs <= first.atMs);
    let events: PlannedEvent[];
    let untilMs: number;
    if (this.#batch === 1 && isTimerFirst) {
      events = [];
      untilMs = timerAtMs;
    } else {
      events = this.#queue.first(this.#batch);
      // Events that come after these may have happened before a timer.
      const isAll = events.length === this.#queue.size && events.length !== 1;
      untilMs = isAll ? nowMs : (events.at(-1)?.atMs ?? nowMs);
    }
    const id = this.#nextId++;
    this.#flight = {
      id,
      events,
      isAlone: events.length === 0 ? this.#batch === 1 : events.length === 1 && !isTimerFirst,
    };
    return { id, events, state: this.#state, timerAtMs, untilMs };
  }

  /** Applies what came of an evaluation; nothing if it is not the one in flight (CU2). */
  answered(id: number, result: EvaluationResult): Outcome {
    const flight = this.#flight;
    if (flight?.id !== id) return NOTHING;
    this.#flight = undefined;
    if (result.failure !== undefined) return this.#failed(flight, result.failure);
    let decided: Decided;
    try {
      decided = this.#decide(flight.events, result.evaluated);
    } catch (refusal) {
      if (!(refusal instanceof WrongReaction)) throw refusal;
      const error: ErrorData = { code: 'E_FUNCTION_FAILED', message: refusal.message };
      return this.#failed(flight, {
        error,
        blame: 'event',
        ...(refusal.at === undefined ? {} : { at: refusal.at }),
      });
    }
    for (const event of flight.events) {
      this.#unqueue();
      if (event.key !== undefined) this.#held.add(event.key);
    }
    for (const key of decided.gone) {
      this.#held.delete(key);
      this.#lost.delete(key);
    }
    this.#fired += decided.firings.length;
    this.#state = result.evaluated.state;
    this.#timerAtMs = result.evaluated.timerAtMs;
    this.#tries = 0;
    this.#losses = 0;
    this.#batch = Math.min(EVALUATION_EVENTS_MAX, this.#batch * 2);
    return { firings: decided.firings, dropped: decided.dropped };
  }

  /** Whether something is still to be decided. */
  get isBusy(): boolean {
    return this.#flight !== undefined || (this.#stalled === undefined && this.#queue.size > 0);
  }

  /** Why it decides nothing any more; undefined while it does. */
  get stalledBy(): ErrorData | undefined {
    return this.#stalled;
  }

  /** A timer counts only while something is held, so that a session can end. */
  override get keepsOpen(): boolean {
    return this.isBusy || (this.#held.size > 0 && this.#timerAtMs !== undefined && this.#stalled === undefined);
  }

  /** While an evaluation is in flight the answer comes first. */
  override nextTimerMs(): number | undefined {
    if (this.#flight !== undefined || this.#stalled !== undefined || this.#timerAtMs === undefined) return undefined;
    return this.#originMs + this.#timerAtMs;
  }

  override forgetSession(session: string): void {
    this.#taken.forgetSession(session);
  }

  get held(): number {
    return this.#held.size + this.#queuedKeys.size;
  }

  *heldKeys(): Generator<string> {
    yield* this.#held;
    yield* this.#queuedKeys;
  }

  /** After a restart: of what it holds only these objects are still there. */
  override keepOnly(has: (key: string) => boolean): void {
    for (const key of this.#held) {
      if (has(key)) continue;
      this.#held.delete(key);
      this.#lost.add(key);
    }
    for (const event of this.#queue.remove(({ key }) => key !== undefined && !has(key))) {
      this.#queuedKeys.delete(event.key as string);
    }
  }

  waitsFor(): string | undefined {
    if (this.held === 0) return undefined;
    if (this.#stalled !== undefined) return `does not fire: class ${this.spec.class} failed: ${this.#stalled.message}`;
    if (this.isBusy) return `waits for class ${this.spec.class} to be asked`;
    return `holds ${counted(this.held, 'object')} that class ${this.spec.class} has not fired`;
  }

  /** What is in flight is still to be decided in it: whoever restores it asks again. */
  snapshot(now: Now): unknown {
    return snapshotOf(this.spec.kind, {
      clockMs: this.#timeAt(now),
      // In bucket scope the owner knows what was taken; what it delivers again after a restart is to be decided again.
      taken: scopeOf(this.spec) === 'session' ? this.#taken.snapshot() : [],
      held: [...this.#held],
      lost: [...this.#lost],
      queue: this.#queue.first(this.#queue.size),
      state: this.#state ?? null,
      timerAtMs: this.#timerAtMs ?? null,
      fired: this.#fired,
    });
  }

  #timeAt(now: Now): number {
    return now.monotonicMs - this.#originMs;
  }

  #assertQueueRoom(): void {
    if (this.#queue.size < EVALUATION_QUEUE_MAX) return;
    throw new PlatformError(
      'E_QUOTA_EXCEEDED',
      `${EVALUATION_QUEUE_MAX} events wait for class ${this.spec.class}, the most there may be: send fewer objects at once.`,
      { details: { limit: 'EVALUATION_QUEUE_MAX', max: EVALUATION_QUEUE_MAX } },
    );
  }

  #enqueue(event: PlannedEvent): void {
    this.#queue.push(event);
    if (event.key !== undefined) this.#queuedKeys.add(event.key);
  }

  #unqueue(): PlannedEvent | undefined {
    const event = this.#queue.shift();
    if (event?.key !== undefined) this.#queuedKeys.delete(event.key);
    return event;
  }

  /** @throws WrongReaction: the class names what it does not hold. Changes nothing. */
  #decide(events: readonly PlannedEvent[], { reactions }: Evaluated): Decided {
    const decided: Decided = { firings: [], dropped: [], gone: new Set() };
    const arrived = new Set<string>();
    let given = 0;
    for (const { after, fire, drop } of reactions) {
      for (; given < after; given++) {
        const key = events[given]?.key;
        if (key !== undefined) arrived.add(key);
      }
      const at = Math.max(0, after - 1);
      const take = (id: string, verb: string): string[] => {
        const key = this.#keyOf(id);
        if (decided.gone.has(key) || !(this.#held.has(key) || arrived.has(key) || this.#lost.has(key))) {
          throw new WrongReaction(
            at,
            `${verb} object ${id}, which it does not hold: it never came, or has gone already`,
          );
        }
        decided.gone.add(key);
        return this.#lost.has(key) ? [] : [key];
      };
      for (const { objects, run, group } of fire) {
        const all = () => [...this.#held, ...arrived].filter((key) => !decided.gone.has(key));
        const keys = objects === undefined ? all() : objects.flatMap((id) => take(id, 'fires'));
        for (const key of keys) decided.gone.add(key);
        const index = this.#fired + decided.firings.length;
        decided.firings.push({
          index: group === undefined ? String(index) : `${index}:${group}`,
          objects: keys,
          ...(group === undefined ? {} : { group }),
          ...(run === undefined ? {} : { run }),
        });
      }
      for (const id of drop) decided.dropped.push(...take(id, 'drops'));
    }
    if (decided.firings.length > EVALUATION_FIRINGS_MAX) {
      throw new WrongReaction(undefined, `fires more than ${EVALUATION_FIRINGS_MAX} times at once`);
    }
    return decided;
  }

  /** @see idOf */
  #keyOf(id: string): string {
    return scopeOf(this.spec) === 'bucket' ? id.replace('/', '\u0000') : id;
  }

  /** (CU5): the same again, in smaller parts until it is known which event is to blame. */
  #failed(
    { events, isAlone }: { readonly events: readonly PlannedEvent[]; readonly isAlone: boolean },
    { blame, at, error }: EvaluationFailure,
  ): Outcome {
    if (blame === 'lost' && ++this.#losses < EVALUATION_LOSSES_MAX) {
      this.#batch = 1;
      return NOTHING;
    }
    if (blame === 'event' && !isAlone) {
      this.#batch = Math.max(1, Math.min(at ?? 1, this.#batch >> 1));
      return NOTHING;
    }
    if (blame !== 'lost' && ++this.#tries < EVALUATION_TRIES_MAX) return NOTHING;
    if (blame === 'lost' && !isAlone) {
      this.#batch = 1;
      return NOTHING;
    }
    this.#tries = 0;
    this.#losses = 0;
    const named = { ...error, message: `class ${this.spec.class}: ${error.message}` };
    if (blame === 'setup') {
      this.#stalled = named;
      return { ...NOTHING, gaveUp: { what: 'setup', error: named } };
    }
    if (scopeOf(this.spec) === 'session') this.#stalled = named;
    const [event] = events;
    if (event === undefined) {
      this.#timerAtMs = undefined;
      return { ...NOTHING, gaveUp: { what: 'timer', error: named } };
    }
    // In a session nothing goes on without it; a bucket outlives an object that its class cannot bear.
    if (scopeOf(this.spec) === 'bucket') this.#unqueue();
    if (event.key === undefined) return { ...NOTHING, gaveUp: { what: 'source', error: named } };
    return { ...NOTHING, gaveUp: { what: 'object', key: event.key, error: named } };
  }
}

interface Decided {
  readonly firings: Firing[];
  readonly dropped: string[];
  readonly gone: Set<string>;
}

/** A class decided what cannot be. */
class WrongReaction extends Error {
  readonly at: number | undefined;

  constructor(at: number | undefined, message: string) {
    super(message);
    this.at = at;
  }
}

/** How a class names an object: its name, in bucket scope `<session>/<name>`. */
function idOf(spec: SpecOf<'custom'>, key: string): string {
  return scopeOf(spec) === 'bucket' ? key.replace('\u0000', '/') : key;
}

/** The question as it goes to an instance. `objectOf` is asked only for keys of the plan. */
export function evaluationOf(
  spec: SpecOf<'custom'>,
  place: { readonly bucket: string; readonly trigger: string },
  plan: EvaluationPlan,
  objectOf: (key: string) => Omit<NonNullable<EvaluationEvent['object']>, 'id'>,
): Evaluation {
  return {
    ...place,
    class: spec.class,
    scope: scopeOf(spec),
    ...(spec.options === undefined ? {} : { options: spec.options }),
    run: functionsOf(spec),
    ...(plan.state === undefined ? {} : { state: plan.state }),
    ...(plan.timerAtMs === undefined ? {} : { timerAtMs: plan.timerAtMs }),
    events: plan.events.map(({ atMs, key, source }) =>
      key === undefined ? { atMs, source } : { atMs, object: { id: idOf(spec, key), ...objectOf(key) } },
    ),
    untilMs: plan.untilMs,
  };
}

function eventOf(fields: Fields): PlannedEvent {
  const atMs = numberOf(fields.atMs, 'atMs');
  if (fields.key !== undefined) return { atMs, key: stringOf(fields.key, 'key') };
  const source = recordOf(fields.source, 'source');
  return {
    atMs,
    source: { function: stringOf(source.function, 'function'), invocation: stringOf(source.invocation, 'invocation') },
  };
}
