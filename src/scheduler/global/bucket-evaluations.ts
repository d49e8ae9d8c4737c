// Asks the classes of bucket-scoped custom triggers, in the app host of the version whose functions they fire.
//
// Owns: which question waits for a host.
// Does not own: what is asked and what comes of it (BucketTriggers), hosts (HostDirectory).
//
// A question whose host dies is asked again by whoever asked, for a class decides nothing before its answer is here.

import { PlatformError, toErrorData } from '../../base/index.ts';
import { type EvaluationResult, TRIGGER_VALUE_BYTES_MAX } from '../../protocol/index.ts';
import { evaluationOf, type SpecOf } from '../../trigger/index.ts';
import type { BucketTriggersEffect, HeldObject } from './bucket-triggers.ts';
import type { Coordinator } from './coordinator.ts';
import type { HostLink } from './ports.ts';

type Question = BucketTriggersEffect & { type: 'evaluate' };

const NO_BYTES = new Uint8Array(0);

export class BucketEvaluations {
  readonly #coordinator: Coordinator;
  readonly #answer: (question: Question, result: EvaluationResult) => void;
  /** At most one per custom trigger. */
  readonly #waiting = new Set<Question>();
  /** Connections that are known to have ended before `hostLost` says so. */
  readonly #broken = new WeakSet<HostLink>();

  constructor(coordinator: Coordinator, answer: (question: Question, result: EvaluationResult) => void) {
    this.#coordinator = coordinator;
    this.#answer = answer;
  }

  ask(question: Question): void {
    const { app, version } = question.placement;
    const link = this.#coordinator.linkOf(app, version);
    if (link === undefined || this.#broken.has(link)) {
      this.#waiting.add(question);
      this.#coordinator.ports.hosts.need(app, version);
      return;
    }
    this.#send(link, question).then((result) => {
      if (!this.#coordinator.closed) this.#answer(question, result);
    });
  }

  hostReady(app: string, version: string): void {
    for (const question of this.#of(app, version)) {
      this.#waiting.delete(question);
      this.ask(question);
    }
  }

  /** What waits needs another one. */
  hostLost(app: string, version: string): void {
    if (this.#of(app, version).length > 0) this.#coordinator.ports.hosts.need(app, version);
  }

  /** Its trigger is gone. */
  forget(app: string, isGone: (question: Question) => boolean): void {
    for (const question of this.#waiting) {
      if (question.placement.app === app && isGone(question)) this.#waiting.delete(question);
    }
  }

  #of(app: string, version: string): Question[] {
    return [...this.#waiting].filter(({ placement }) => placement.app === app && placement.version === version);
  }

  async #send(link: HostLink, { placement, plan, objects }: Question): Promise<EvaluationResult> {
    const { bucket, trigger, spec } = placement;
    const values: Uint8Array[] = [];
    const evaluation = evaluationOf(spec as SpecOf<'custom'>, { bucket, trigger }, plan, (key) => {
      const { object } = objects.get(key) as HeldObject;
      const { name, session, group, contentType } = object.header;
      const size = object.bytes.length;
      values.push(size > TRIGGER_VALUE_BYTES_MAX ? NO_BYTES : object.bytes);
      return { name, session, group, contentType, size };
    });
    try {
      const { reply } = await link.request({ type: 'evaluate', evaluation }, values);
      if (reply.evaluation !== undefined) return reply.evaluation;
      throw new PlatformError('E_PROTOCOL', 'the app host gave no answer for a trigger class');
    } catch (thrown) {
      this.#broken.add(link);
      return { failure: { blame: 'lost', error: toErrorData(thrown) } };
    }
  }
}
