// One story played to a trigger class, by the very machine that owns a trigger's state in production. The ways to play it
// differ in what must make no difference: how many events one asking has, whether the state was moved meanwhile, whether a
// question is asked twice, whether an object is delivered twice.

import { isDeepStrictEqual } from 'node:util';
import type { EvaluationResult } from '../protocol/index.ts';
import {
  type AskedClass,
  type CustomMachine,
  createTrigger,
  type EvaluationPlan,
  evaluateCustom,
  evaluationOf,
  type Firing,
  type Now,
  restoreTrigger,
  type SpecOf,
} from '../trigger/index.ts';
import type { CheckRandom, StoryEvent, StoryObject, TriggerStory } from './trigger-story.ts';

export const WAYS = {
  'asked after each event': {},
  'asked about several events at once': { waits: true },
  'asked once, at the end': { waits: 'end' },
  'restored from its snapshot after each event': { moves: 1 },
  'restored from its snapshot now and then, and asked about several events at once': { moves: 0.3, waits: true },
  'given some objects twice': { repeats: true },
} as const satisfies Record<string, Way>;

export interface Way {
  /** Events wait for a later asking; `end`: all of them. */
  readonly waits?: true | 'end';
  /** How often its state goes through JSON to a new machine. */
  readonly moves?: number;
  readonly repeats?: true;
}

export interface Played {
  readonly firings: readonly Firing[];
  /** Ids, in order of arrival. */
  readonly held: readonly string[];
  readonly timerAtMs: number | undefined;
}

/** A class did what no class may. */
export class WrongClass extends Error {
  override readonly name = 'WrongClass';
}

/** @throws WrongClass. */
export function play(
  Class: AskedClass,
  spec: SpecOf<'custom'>,
  story: TriggerStory,
  way: Way,
  random: CheckRandom,
): Played {
  const player = new Player(Class, spec);
  for (const event of story.events) {
    player.tell(event);
    if (way.waits === undefined || (way.waits === true && random.chance(0.3))) player.ask();
    if (way.moves !== undefined && random.chance(way.moves)) player.move();
    if (way.repeats === true && random.chance(0.3)) player.repeat(random);
  }
  player.atMs = story.endMs;
  player.ask();
  return player.played();
}

export class Player {
  machine: CustomMachine;
  atMs = 0;
  readonly #Class: AskedClass;
  readonly #spec: SpecOf<'custom'>;
  readonly #objects = new Map<string, StoryObject>();
  readonly #firings: Firing[] = [];

  constructor(Class: AskedClass, spec: SpecOf<'custom'>) {
    this.#Class = Class;
    this.#spec = spec;
    this.machine = createTrigger(spec, this.now()) as CustomMachine;
  }

  now(): Now {
    return { monotonicMs: this.atMs, epochMs: this.atMs };
  }

  /** Not yet asked about. */
  tell(event: StoryEvent): void {
    this.atMs = event.atMs;
    if (event.type === 'object') this.deliver(event.object);
    else this.machine.onSourceStarted(event.source, this.now());
  }

  deliver(object: StoryObject): void {
    const key = this.#spec.scope === 'bucket' ? `${object.session}\u0000${object.name}` : object.name;
    this.#objects.set(key, object);
    this.machine.onObject({ key, name: object.name, group: object.group, session: object.session }, this.now());
  }

  /** In bucket scope the owner keeps repeats of what has gone away from the trigger. */
  repeat(random: CheckRandom): void {
    const keys = this.#spec.scope === 'bucket' ? [...this.machine.heldKeys()] : [...this.#objects.keys()];
    if (keys.length > 0) this.deliver(this.#objects.get(random.pick(keys)) as StoryObject);
  }

  move(): void {
    const snapshot: unknown = JSON.parse(JSON.stringify(this.machine.snapshot(this.now())));
    this.machine = restoreTrigger(this.#spec, snapshot, this.now()) as CustomMachine;
  }

  /** Until nothing is left to decide by now. */
  ask(): void {
    for (let plan = this.machine.begin(this.now()); plan !== undefined; plan = this.machine.begin(this.now())) {
      const result = this.#evaluate(plan);
      if (!isAlike(this.#evaluate(plan), result)) {
        throw new WrongClass(
          'asked twice about the same it decides differently: it must not use time, chance or state outside',
        );
      }
      const { firings, gaveUp } = this.machine.answered(plan.id, result);
      this.#firings.push(...firings);
      if (gaveUp !== undefined) throw wrong(gaveUp.error);
    }
  }

  played(): Played {
    const held = [...this.machine.heldKeys()].map((key) => (this.#objects.get(key) as StoryObject).id);
    return { firings: this.#firings.map((one) => this.#named(one)), held, timerAtMs: this.machine.nextTimerMs() };
  }

  #named(firing: Firing): Firing {
    return { ...firing, objects: firing.objects.map((key) => (this.#objects.get(key) as StoryObject).id) };
  }

  #evaluate(plan: EvaluationPlan): EvaluationResult {
    const values: Uint8Array[] = [];
    const evaluation = evaluationOf(this.#spec, { bucket: 'bucket', trigger: 'trigger' }, plan, (key) => {
      const { name, session, group, size, value } = this.#objects.get(key) as StoryObject;
      values.push(new TextEncoder().encode(JSON.stringify(value)));
      return { name, session, group, contentType: 'application/json', size };
    });
    // As it would come from another process.
    return JSON.parse(JSON.stringify(evaluateCustom(this.#Class, evaluation, values)));
  }
}

/** Stacks tell who asked. */
function isAlike(a: EvaluationResult, b: EvaluationResult): boolean {
  if (a.failure === undefined || b.failure === undefined) return isDeepStrictEqual(a, b);
  return a.failure.error.message === b.failure.error.message;
}

function wrong({ message, stack }: { readonly message: string; readonly stack?: string }): WrongClass {
  const error = new WrongClass(message);
  // Below is how the class came to be asked.
  if (stack !== undefined) error.cause = stack.split(/\n {4}at [^\n]*custom-evaluation\b/)[0];
  return error;
}
