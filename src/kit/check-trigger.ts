// Property tests of a trigger class, for its author's own test files.

import { isDeepStrictEqual } from 'node:util';
import { Prng } from '../base/index.ts';
import type { CustomTriggerClass } from '../sdk/index.ts';
import {
  type AskedClass,
  checkTrigger as checkOptions,
  type Firing,
  type SpecOf,
  whyNotAsked,
} from '../trigger/index.ts';
import { EVENTS_DEFAULT, SEEDS_DEFAULT, SHRINK_TRIES_MAX } from './limits.ts';
import { type Played, Player, play, WAYS, type Way, WrongClass } from './trigger-run.ts';
import {
  type CheckRandom,
  choices,
  type ExpectedFiring,
  type MadeObject,
  makeStory,
  smaller,
  type TriggerStory,
} from './trigger-story.ts';

export interface TriggerCheck<O = any, V = any> {
  /** As in `custom`; plain data. */
  readonly options?: O;
  /** Default `run`. */
  readonly run?: string | readonly string[];
  readonly scope?: 'session' | 'bucket';
  readonly sources?: readonly string[];
  /** Makes the n-th object. Default: values `{ n }` with n from 0 to 9. Take every choice from `random`. */
  readonly object?: (random: CheckRandom, n: number) => MadeObject<V>;
  /** What must fire when this happens, worked out in another way than the class does. Without it only the rules are checked. */
  readonly reference?: (story: TriggerStory<V>, options: O) => readonly ExpectedFiring[];
  /** How many stories (default 100), or the seeds of those to play: a failure prints its seed. */
  readonly seeds?: number | readonly number[];
  /** Events of one story, at most. Default 40. */
  readonly eventsMax?: number;
}

interface Problem {
  /** Shrinking keeps to one kind. */
  readonly kind: string;
  readonly message: string;
  readonly stack?: unknown;
}

/**
 * Plays random stories to a trigger class and throws if it breaks a rule, with the smallest story that it found and the
 * seed that replays it.
 *
 * The rules: the class fires the same however its askings are cut, after any `snapshot` and `restore`, and when asked twice;
 * its snapshot is JSON; no object fires that did not come, or twice; it throws at no object that `object` makes. With
 * `reference`: its firings are those of the reference, in order.
 *
 * @throws Error with a message for people. TypeError for options that `custom` would refuse.
 */
export function checkTrigger<O, V = any>(Class: CustomTriggerClass<O>, check: TriggerCheck<O, V> = {}): void {
  const spec = specOf(Class, check);
  const seeds = typeof check.seeds === 'object' ? check.seeds : [...Array(check.seeds ?? SEEDS_DEFAULT).keys()];
  for (const seed of seeds) {
    const story = storyOf(Class as AskedClass, spec, check, seed);
    const problem = problemOf(Class as AskedClass, spec, check, story, seed);
    if (problem === undefined) continue;
    const { least, told } = shrink(story, problem, (one) => problemOf(Class as AskedClass, spec, check, one, seed));
    throw failure(Class.name, told, { seed, before: story.events.length, story: least });
  }
}

function specOf(Class: unknown, { options, run = 'run', scope = 'session', sources }: TriggerCheck): SpecOf<'custom'> {
  const missing = whyNotAsked(Class, sources !== undefined);
  if (missing !== undefined) throw new TypeError(`checkTrigger: the first argument ${missing}`);
  const spec = {
    kind: 'custom' as const,
    class: (Class as { readonly name: string }).name,
    run,
    scope,
    ...(options === undefined ? {} : { options }),
    ...(sources === undefined ? {} : { sources }),
  };
  const [problem] = checkOptions(spec);
  if (problem !== undefined) throw new TypeError(`checkTrigger: ${problem}`);
  return spec;
}

function storyOf(Class: AskedClass, spec: SpecOf<'custom'>, check: TriggerCheck, seed: number): TriggerStory {
  const random = choices(new Prng(seed));
  const options = {
    scope: spec.scope ?? 'session',
    sources: spec.sources ?? [],
    eventsMax: check.eventsMax ?? EVENTS_DEFAULT,
    object: check.object ?? ((choose) => ({ value: { n: choose.int(0, 9) } })),
  };
  const player = new Player(Class, spec);
  let isWrong = false;
  return makeStory(random, options, (event) => {
    if (isWrong) return undefined;
    try {
      player.tell(event);
      player.ask();
      return player.machine.nextTimerMs();
    } catch (thrown) {
      if (!(thrown instanceof WrongClass)) throw thrown;
      isWrong = true; // told when the whole story is played
      return undefined;
    }
  });
}

/** The same for the same story and seed. */
function problemOf(
  Class: AskedClass,
  spec: SpecOf<'custom'>,
  check: TriggerCheck,
  story: TriggerStory,
  seed: number,
): Problem | undefined {
  let first: { way: string; played: Played } | undefined;
  for (const [way, how] of Object.entries<Way>(WAYS)) {
    let played: Played;
    try {
      played = play(Class, spec, story, how, choices(new Prng(seed)));
    } catch (thrown) {
      if (!(thrown instanceof WrongClass)) throw thrown;
      return { kind: thrown.message, message: `${thrown.message} (${way})`, stack: thrown.cause };
    }
    first ??= { way, played };
    if (isDeepStrictEqual(played, first.played)) continue;
    return {
      kind: way,
      message: `it decides differently when it is ${way} (from asking to asking only what snapshot() gives is kept)`,
      stack: differenceOf(first.way, first.played, way, played),
    };
  }
  if (check.reference === undefined || first === undefined) return undefined;
  const run = typeof spec.run === 'string' ? [spec.run] : spec.run;
  const expected = check.reference(story, spec.options).map((one) => expectedText(one, run));
  const fired = first.played.firings.map((one) => firedText(one, run));
  if (isDeepStrictEqual(fired, expected)) return undefined;
  const texts = `the class fires      ${fired.join('  ') || 'nothing'}\nthe reference fires  ${expected.join('  ') || 'nothing'}`;
  return { kind: 'reference', message: 'it fires otherwise than the reference', stack: texts };
}

function shrink(
  story: TriggerStory,
  problem: Problem,
  problemOf: (story: TriggerStory) => Problem | undefined,
): { least: TriggerStory; told: Problem } {
  let least = story;
  let told = problem;
  let tries = 0;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smaller(least)) {
      if (++tries > SHRINK_TRIES_MAX) return { least, told };
      const found = problemOf(candidate);
      if (found?.kind !== problem.kind) continue;
      least = candidate;
      told = found;
      isSmaller = true;
      break;
    }
  }
  return { least, told };
}

function failure(
  name: string,
  { message, stack }: Problem,
  { seed, before, story }: { readonly seed: number; readonly before: number; readonly story: TriggerStory },
): Error {
  const events = story.events.map((event) => {
    if (event.type === 'source-started')
      return `${at(event.atMs)}  ${event.source.function} starts (${event.source.invocation})`;
    const { id, group, value } = event.object;
    return `${at(event.atMs)}  object ${id}${group === '' ? '' : ` of group ${group}`}  ${JSON.stringify(value)}`;
  });
  const lines = [
    `checkTrigger(${name}): ${message}`,
    ...(stack === undefined ? [] : [String(stack)]),
    `after these events (${events.length} of the ${before} of seed ${seed}):`,
    ...events,
    `${at(story.endMs)}  end`,
    `replay: checkTrigger(${name}, { …, seeds: [${seed}] })`,
  ];
  return new Error(lines.join('\n'));
}

function at(ms: number): string {
  return `${String(ms).padStart(8)} ms`;
}

function differenceOf(wayA: string, a: Played, wayB: string, b: Played): string {
  const text = ({ firings, held, timerAtMs }: Played) =>
    `fires ${firings.map((one) => firedText(one, [])).join('  ') || 'nothing'}, then holds [${held.join(', ')}]` +
    `${timerAtMs === undefined ? '' : `, its timer at ${timerAtMs} ms`}`;
  return `${wayA}: ${text(a)}\n${wayB}: ${text(b)}`;
}

function firedText({ objects, run, group }: Firing, all: readonly string[]): string {
  return expectedText({ objects, run, group }, all);
}

/** `[a, b] → f, g (group)`; the functions are told when they are not all. */
function expectedText({ objects, run, group }: ExpectedFiring, all: readonly string[]): string {
  const names = run === undefined ? all : typeof run === 'string' ? [run] : run;
  const some = names.length < all.length || names.some((name) => !all.includes(name));
  const ids = objects.map((one) => (typeof one === 'string' ? one : one.id));
  return `[${ids.join(', ')}]${some ? ` → ${[...names].sort().join(', ')}` : ''}${group === undefined ? '' : ` (${group})`}`;
}
