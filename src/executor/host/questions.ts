// What the host asks of user code other than to run an invocation: validators and trigger classes.
//
// Owns: which instance is asked what, and what becomes of a question whose instance ends.
// Does not own: the instances (host), what an answer is good for (whoever asks).
//
// QU1. Every question is answered exactly once. None is waved through because nobody could be asked.
// QU2. User code that ends its instance, or holds it for ANSWER_MS_MAX while nothing else runs there, fails its own
//      question: the oldest one there, since an instance answers in order. The others are asked elsewhere.

import type { ErrorData } from '../../base/index.ts';
import type { EvaluationResult } from '../../protocol/index.ts';
import type { HostToInstance } from '../shared/index.ts';
import type { RunningInstance } from './instances.ts';
import { ANSWER_MS_MAX, ASK_TRIES_MAX } from './limits.ts';

type WithoutId<M> = M extends { readonly requestId: number } ? Omit<M, 'requestId'> : never;
export type Question = WithoutId<HostToInstance & { type: 'validate' | 'evaluate' }>;

/** `error`: no answer, and `isOwnFault` tells whether nothing else can have been the cause; or what a validator refused. */
export interface QuestionAnswer {
  readonly error?: ErrorData | undefined;
  readonly noAnswer?: 'own-fault' | 'lost';
  readonly result?: EvaluationResult;
}

interface Asked {
  readonly requestId: number;
  readonly question: Question;
  readonly answer: (answer: QuestionAnswer) => void;
  /** Whose instances are asked first. */
  readonly pool: string | undefined;
  /** -1: no instance is ready. */
  slot: number;
  /** How often its instance ended while something else ran there too, or no instance came to be. */
  losses: number;
  /** An instance was started for it, so that it need not wait behind a handler. */
  waited: boolean;
  /** Since when nothing else has run where it was asked. */
  quietSinceMs: number;
}

export interface QuestionPorts {
  readonly instances: () => Iterable<RunningInstance>;
  readonly post: (slot: number, message: HostToInstance) => void;
  /** @returns false when there are as many as there may be. */
  readonly startInstance: (why: string) => boolean;
}

export class Questions {
  readonly #ports: QuestionPorts;
  /** In the order in which they were asked. */
  readonly #asked = new Map<number, Asked>();
  #nextId = 1;

  constructor(ports: QuestionPorts) {
    this.#ports = ports;
  }

  get pending(): boolean {
    return this.#asked.size > 0;
  }

  /** `answer` is called later, never before this returns. */
  ask(question: Question, pool: string | undefined, nowMs: number, answer: (answer: QuestionAnswer) => void): void {
    const requestId = this.#nextId++;
    const asked: Asked = { requestId, question, answer, pool, slot: -1, losses: 0, waited: false, quietSinceMs: nowMs };
    this.#asked.set(requestId, asked);
    this.#place(asked, nowMs);
  }

  answered(requestId: number, answer: QuestionAnswer): void {
    const asked = this.#asked.get(requestId);
    if (asked === undefined || !this.#asked.delete(requestId)) return; // (QU1)
    asked.answer(answer);
  }

  instanceReady(nowMs: number): void {
    for (const asked of this.#asked.values()) if (asked.slot < 0) this.#place(asked, nowMs);
  }

  /** An attempt has ended. */
  instanceFree(nowMs: number): void {
    if (this.#asked.size > 0) this.instanceReady(nowMs);
  }

  /** Call when it is no longer among the instances. */
  instanceGone(slot: number, error: ErrorData, ranSomething: boolean, nowMs: number): void {
    let isOldest = !ranSomething;
    for (const asked of [...this.#asked.values()]) {
      if (asked.slot !== slot && asked.slot >= 0) continue;
      if (asked.slot === slot && isOldest) {
        isOldest = false;
        this.#fail(asked, error, 'own-fault'); // (QU2)
        continue;
      }
      if (asked.slot === slot ? ranSomething : !this.#anyInstance()) asked.losses++;
      if (asked.losses >= ASK_TRIES_MAX) this.#fail(asked, error, 'lost');
      else this.#place(asked, nowMs);
    }
  }

  /** @returns slots of instances where a question does not come to an end. */
  overdue(nowMs: number): Set<number> {
    const slots = new Set<number>();
    if (this.#asked.size === 0) return slots;
    const busy = new Set<number>();
    for (const { slot, actual } of this.#ports.instances()) if (actual.length > 0) busy.add(slot);
    for (const asked of this.#asked.values()) {
      if (asked.slot < 0 || busy.has(asked.slot)) asked.quietSinceMs = nowMs;
      else if (nowMs - asked.quietSinceMs >= ANSWER_MS_MAX) slots.add(asked.slot);
    }
    return slots;
  }

  #fail({ requestId }: Asked, error: ErrorData, noAnswer: 'own-fault' | 'lost'): void {
    this.answered(requestId, { error, noAnswer });
  }

  #place(asked: Asked, nowMs: number): void {
    let chosen: RunningInstance | undefined;
    const cost = (one: RunningInstance) => one.actual.length + (one.instance.pool === asked.pool ? 0 : 0.5);
    for (const one of this.#ports.instances()) {
      if (
        one.ready &&
        !one.retiring &&
        one.endedFor === undefined &&
        (chosen === undefined || cost(one) < cost(chosen))
      )
        chosen = one;
    }
    if (chosen === undefined) {
      asked.slot = -1;
      if (!this.#anyInstance()) this.#ports.startInstance(`a question waits (${asked.question.type})`);
      return;
    }
    // Behind a handler it could wait long, and one that does not end would take the handler with it.
    if (asked.question.type === 'evaluate' && chosen.actual.length > 0 && !asked.waited) {
      asked.waited = true;
      asked.slot = -1;
      if (this.#ports.startInstance('every instance is busy and a trigger class is to be asked')) return;
    }
    asked.slot = chosen.slot;
    asked.quietSinceMs = nowMs;
    this.#ports.post(chosen.slot, { ...asked.question, requestId: asked.requestId });
  }

  #anyInstance(): boolean {
    for (const _one of this.#ports.instances()) return true;
    return false;
  }
}
