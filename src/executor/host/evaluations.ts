// Asking trigger classes of the user's: with what they see of objects, and what an answer that does not come means.
//
// Owns: nothing that lasts.
// Does not own: which instance is asked (Questions), what comes of an answer (whoever asks: SessionMachine, or the server).

import { toErrorData } from '../../base/index.ts';
import { nameOf, type StoredObject, sizeOf } from '../../bucket/index.ts';
import { type Evaluation, type EvaluationResult, TRIGGER_VALUE_BYTES_MAX } from '../../protocol/index.ts';
import type { SessionEffect } from '../../scheduler/local/index.ts';
import { evaluationOf, type SpecOf } from '../../trigger/index.ts';
import { withUserStack } from '../shared/index.ts';
import type { QuestionAnswer, Questions } from './questions.ts';
import { isWhole, type SessionBytes } from './session-bytes.ts';

const NO_BYTES = new Uint8Array(0);

export class Evaluations {
  readonly #folder: string;
  readonly #questions: Questions;
  readonly #bytes: SessionBytes;
  readonly #now: () => number;

  constructor(folder: string, questions: Questions, bytes: SessionBytes, now: () => number) {
    this.#folder = folder;
    this.#questions = questions;
    this.#bytes = bytes;
    this.#now = now;
  }

  /** About a trigger of a session of this host. */
  askOfSession(
    { session, bucket, trigger, plan }: SessionEffect & { type: 'evaluate' },
    answer: (result: EvaluationResult) => void,
  ): void {
    const held = session.heldObjects.get(bucket.index * 0x1_0000 + trigger.index);
    const seen: (StoredObject | undefined)[] = [];
    const place = { bucket: bucket.name, trigger: trigger.name };
    const evaluation = evaluationOf(trigger.spec as SpecOf<'custom'>, place, plan, (key) => {
      const object = held?.get(key) as StoredObject;
      const size = sizeOf(object);
      seen.push(size > TRIGGER_VALUE_BYTES_MAX ? undefined : object);
      return {
        name: nameOf(object),
        session: object.session ?? session.id,
        group: object.group,
        contentType: object.contentType,
        size,
      };
    });
    // Copies: the session may end, and its memory be another's, before the class reads it. Not `slice`, which of a Buffer is
    // a view of the pool that it lies in, and a message takes all of that along.
    const values = seen.map((object) => {
      const bytes = object === undefined ? NO_BYTES : this.#bytes.bytesOf(object);
      return bytes === undefined ? undefined : new Uint8Array(bytes);
    });
    if (isWhole(values)) this.ask(evaluation, values, answer);
    else void this.#askOfSpilled(evaluation, seen, answer);
  }

  async #askOfSpilled(
    evaluation: Evaluation,
    seen: readonly (StoredObject | undefined)[],
    answer: (result: EvaluationResult) => void,
  ): Promise<void> {
    const values: Uint8Array[] = [];
    try {
      for (const object of seen) values.push(object === undefined ? NO_BYTES : await this.#bytes.copyOf(object));
    } catch (thrown) {
      answer({ failure: { blame: 'event', error: toErrorData(thrown) } });
      return;
    }
    this.ask(evaluation, values, answer);
  }

  ask(evaluation: Evaluation, values: readonly Uint8Array[], answer: (result: EvaluationResult) => void): void {
    this.#questions.ask({ type: 'evaluate', evaluation, values }, undefined, this.#now(), (given) =>
      answer(this.#resultOf(given)),
    );
  }

  #resultOf({ result, error, noAnswer }: QuestionAnswer): EvaluationResult {
    if (result?.evaluated !== undefined) return result;
    const failure = result?.failure ?? {
      blame: noAnswer === 'own-fault' ? ('event' as const) : ('lost' as const),
      error: error ?? { code: 'E_INTERNAL' as const, message: 'there was no answer' },
    };
    return { failure: { ...failure, error: withUserStack(failure.error, this.#folder) } };
  }
}
