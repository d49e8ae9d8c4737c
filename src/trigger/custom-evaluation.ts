// Asks a trigger class of the user's, where user code runs. Synchronous, and nothing of the class outlives it: what it
// wants to know next time is in `snapshot()`. So any instance can be asked, and a state that `restore` does not bring back
// is missed at once, not after the first crash.

import { PlatformError, toErrorData } from '../base/index.ts';
import {
  type EvaluatedFiring,
  type EvaluatedReaction,
  type Evaluation,
  type EvaluationObject,
  type EvaluationResult,
  encodeJsonText,
  TRIGGER_VALUE_BYTES_MAX,
} from '../protocol/index.ts';
import { CUSTOM_STATE_CHARS_MAX, EVALUATION_FIRINGS_MAX, EVALUATION_TIMERS_MAX, TIMER_STEP_MS_MIN } from './limits.ts';

/** The class as its author wrote it: see CustomTrigger of the SDK. */
interface Asked {
  onObject(object: unknown, nowMs: number): unknown;
  onTimer?(nowMs: number): unknown;
  onSourceStarted?(source: unknown, nowMs: number): unknown;
  snapshot(): unknown;
  restore(snapshot: unknown): unknown;
}
export type AskedClass = new (options: any) => Asked;

const REQUIRED = ['onObject', 'snapshot', 'restore'] as const;

/** @returns what is missing of it, as the end of a sentence; undefined if it can be asked. */
export function whyNotAsked(Class: unknown, needsSources: boolean): string | undefined {
  if (typeof Class !== 'function') return 'is not a class';
  const { prototype } = Class as { prototype?: Record<string, unknown> };
  const methods = needsSources ? [...REQUIRED, 'onSourceStarted'] : REQUIRED;
  const missing = methods.find((method) => typeof prototype?.[method] !== 'function');
  return missing === undefined ? undefined : `has no method ${missing}`;
}

/** @param values of the objects among the events, in their order; ignored for one above TRIGGER_VALUE_BYTES_MAX. */
export function evaluateCustom(
  Class: AskedClass,
  evaluation: Evaluation,
  values: readonly Uint8Array[],
): EvaluationResult {
  const reactions: EvaluatedReaction[] = [];
  let { timerAtMs } = evaluation;
  let asked: Asked;
  try {
    asked = new Class(evaluation.options);
    if (evaluation.state !== undefined) atOnce('restore', asked.restore(JSON.parse(evaluation.state)));
  } catch (thrown) {
    return { failure: { blame: 'setup', error: toErrorData(thrown, 'E_FUNCTION_FAILED') } };
  }
  let at = 0;
  let timers = 0;
  let firings = 0;
  const take = (method: string, after: number, nowMs: number, answer: unknown): void => {
    const reaction = reactionOf(method, answer, evaluation.run);
    if (reaction === undefined) return;
    if (reaction.timerAtMs !== undefined) {
      timerAtMs = reaction.timerAtMs === null ? undefined : Math.max(reaction.timerAtMs, nowMs + TIMER_STEP_MS_MIN);
    }
    firings += reaction.fire.length;
    if (firings > EVALUATION_FIRINGS_MAX) {
      throw new TypeError(`${method} fires more than ${EVALUATION_FIRINGS_MAX} times at once`);
    }
    if (reaction.fire.length > 0 || reaction.drop.length > 0) {
      reactions.push({ after, fire: reaction.fire, drop: reaction.drop });
    }
  };
  const serveTimers = (untilMs: number): void => {
    while (timerAtMs !== undefined && timerAtMs <= untilMs && timers < EVALUATION_TIMERS_MAX) {
      timers++;
      const nowMs = timerAtMs;
      timerAtMs = undefined;
      if (typeof asked.onTimer !== 'function') throw new TypeError('it sets a timer (timerAtMs) but has no onTimer');
      take('onTimer', at, nowMs, asked.onTimer(nowMs));
    }
  };
  try {
    let value = 0;
    for (const { atMs, object, source } of evaluation.events) {
      serveTimers(atMs);
      if (object === undefined) take('onSourceStarted', at + 1, atMs, asked.onSourceStarted?.(source, atMs));
      else
        take(
          'onObject',
          at + 1,
          atMs,
          asked.onObject(new AskedObject(object, evaluation.bucket, values[value++]), atMs),
        );
      at++;
    }
    serveTimers(evaluation.untilMs);
    const state = encodeJsonText(atOnce('snapshot', asked.snapshot()), 'snapshot()');
    if (state.length > CUSTOM_STATE_CHARS_MAX) {
      throw new TypeError(
        `snapshot() has ${state.length} characters as JSON, at most ${CUSTOM_STATE_CHARS_MAX} are possible: keep sums and ids, ` +
          'not values; a firing without `objects` takes all that is held',
      );
    }
    return { evaluated: { reactions, state, ...(timerAtMs === undefined ? {} : { timerAtMs }) } };
  } catch (thrown) {
    // After the last event nobody knows whose fault it is.
    const known = at < evaluation.events.length ? { at } : {};
    return { failure: { blame: 'event', error: toErrorData(thrown, 'E_FUNCTION_FAILED'), ...known } };
  }
}

interface Reaction {
  readonly fire: readonly EvaluatedFiring[];
  readonly drop: readonly string[];
  readonly timerAtMs: number | null | undefined;
}

function reactionOf(method: string, answer: unknown, run: readonly string[]): Reaction | undefined {
  atOnce(method, answer);
  if (answer === undefined || answer === null) return undefined;
  const { fire, drop, timerAtMs } = fieldsOf(answer, `what ${method} returns`, ['fire', 'drop', 'timerAtMs']);
  if (timerAtMs !== undefined && timerAtMs !== null && !(typeof timerAtMs === 'number' && Number.isFinite(timerAtMs))) {
    throw new TypeError(`${method} returns a timerAtMs that is neither a number nor null`);
  }
  return {
    fire: listOf(fire, `${method}: fire`).map((one) => firingOf(one, method, run)),
    drop: listOf(drop, `${method}: drop`).map((one) => idOf(one, `${method}: drop`)),
    timerAtMs,
  };
}

function firingOf(given: unknown, method: string, run: readonly string[]): EvaluatedFiring {
  const where = `${method}: fire`;
  const firing = fieldsOf(given, where, ['objects', 'run', 'group']);
  const names = typeof firing.run === 'string' ? [firing.run] : firing.run;
  if (names !== undefined) {
    if (!Array.isArray(names) || names.length === 0) throw new TypeError(`${where}: run must be a name or names`);
    for (const name of names) {
      if (run.includes(name)) continue;
      throw new TypeError(`${where}: run names ${String(name)}, but the trigger's run has ${run.join(', ')} only`);
    }
  }
  if (firing.group !== undefined && typeof firing.group !== 'string')
    throw new TypeError(`${where}: group must be text`);
  return {
    ...(firing.objects === undefined
      ? {}
      : { objects: listOf(firing.objects, `${where}: objects`).map((one) => idOf(one, `${where}: objects`)) }),
    ...(names === undefined ? {} : { run: [...new Set<string>(names)] }),
    ...(firing.group === undefined ? {} : { group: firing.group }),
  };
}

function fieldsOf(value: unknown, what: string, known: readonly string[]): Record<string, any> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TypeError(`${what} must be an object with ${known.join(', ')}, or nothing`);
  }
  for (const field of Object.keys(value)) {
    if (!known.includes(field)) throw new TypeError(`${what} has a field ${field}; it takes ${known.join(', ')}`);
  }
  return value;
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new TypeError(`${what} must be a list`);
  return value;
}

/** An object, or the id of one. */
function idOf(given: unknown, what: string): string {
  const id = typeof given === 'object' && given !== null ? (given as { id?: unknown }).id : given;
  if (typeof id !== 'string') throw new TypeError(`${what} must list objects or their ids`);
  return id;
}

function atOnce(method: string, answer: unknown): unknown {
  if (typeof (answer as { then?: unknown } | null | undefined)?.then === 'function') {
    // Nobody waits for it: what it rejects with must not end the instance.
    (answer as PromiseLike<unknown>).then(undefined, () => {});
    throw new TypeError(`${method} returns a promise: a trigger answers at once; do in a function what takes time`);
  }
  return answer;
}

class AskedObject implements EvaluationObject {
  readonly id: string;
  readonly bucket: string;
  readonly name: string;
  readonly session: string;
  readonly group: string;
  readonly contentType: string;
  readonly size: number;
  readonly #value: Uint8Array | undefined;

  constructor(object: EvaluationObject, bucket: string, value: Uint8Array | undefined) {
    this.id = object.id;
    this.bucket = bucket;
    this.name = object.name;
    this.session = object.session;
    this.group = object.group;
    this.contentType = object.contentType;
    this.size = object.size;
    this.#value = object.size > TRIGGER_VALUE_BYTES_MAX ? undefined : value;
  }

  get bytes(): Uint8Array {
    if (this.#value !== undefined) return this.#value;
    throw new PlatformError(
      'E_QUOTA_EXCEEDED',
      `object ${this.name} has ${this.size} bytes: a trigger sees values up to ${TRIGGER_VALUE_BYTES_MAX}; put what it ` +
        'decides by into the name or group, or into a small object of its own',
    );
  }

  text(): string {
    return new TextDecoder().decode(this.bytes);
  }

  json(): unknown {
    const text = this.text();
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new PlatformError(
        'E_JSON_INVALID',
        `object ${this.name} is not JSON (${this.contentType}): use .bytes or .text()`,
        {
          cause,
        },
      );
    }
  }
}
