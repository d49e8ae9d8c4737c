// Values that the server wants checked before it takes them.
//
// Owns: which instance is asked what, and what becomes of a question whose instance ends.
// Does not own: the instances (host).
//
// VA1. Every question is answered exactly once. None is waved through because nobody could be asked.
// VA2. A validator that ends its instance, or holds it for VALIDATE_MS_MAX while nothing else runs there, fails its own
//      question: the oldest one there, since an instance answers in order. The others are asked elsewhere.

import type { ErrorData } from '../../base/index.ts';
import type { HostToInstance } from '../shared/index.ts';
import type { RunningInstance } from './instances.ts';
import { VALIDATE_MS_MAX, VALIDATE_TRIES_MAX } from './limits.ts';

type Question = Omit<HostToInstance & { type: 'validate' }, 'type' | 'requestId'>;

interface Asked {
  readonly requestId: number;
  readonly question: Question;
  /** Whose instances are asked first. */
  readonly pool: string | undefined;
  /** -1: no instance is ready. */
  slot: number;
  /** How often its instance ended while something else ran there too, or no instance came to be. */
  losses: number;
  /** Since when nothing else has run where it was asked. */
  quietSinceMs: number;
}

export interface ValidationPorts {
  readonly instances: () => Iterable<RunningInstance>;
  readonly post: (slot: number, message: HostToInstance) => void;
  readonly startInstance: () => void;
  readonly answer: (requestId: number, error: ErrorData | undefined) => void;
}

export class Validations {
  readonly #ports: ValidationPorts;
  /** In the order in which they were asked. */
  readonly #asked = new Map<number, Asked>();

  constructor(ports: ValidationPorts) {
    this.#ports = ports;
  }

  get pending(): boolean {
    return this.#asked.size > 0;
  }

  ask(requestId: number, question: Question, pool: string | undefined, nowMs: number): void {
    const asked: Asked = { requestId, question, pool, slot: -1, losses: 0, quietSinceMs: nowMs };
    this.#asked.set(requestId, asked);
    this.#place(asked, nowMs);
  }

  answered(requestId: number, error: ErrorData | undefined): void {
    if (this.#asked.delete(requestId)) this.#ports.answer(requestId, error); // (VA1)
  }

  instanceReady(nowMs: number): void {
    for (const asked of this.#asked.values()) if (asked.slot < 0) this.#place(asked, nowMs);
  }

  /** Call when it is no longer among the instances. */
  instanceGone(slot: number, error: ErrorData, ranSomething: boolean, nowMs: number): void {
    let isOldest = !ranSomething;
    for (const asked of [...this.#asked.values()]) {
      if (asked.slot !== slot && asked.slot >= 0) continue;
      if (asked.slot === slot && isOldest) {
        isOldest = false;
        this.#fail(asked, error); // (VA2)
        continue;
      }
      if (asked.slot === slot ? ranSomething : !this.#anyInstance()) asked.losses++;
      if (asked.losses >= VALIDATE_TRIES_MAX) this.#fail(asked, error);
      else this.#place(asked, nowMs);
    }
  }

  /** @returns slots of instances whose validator does not come to an end. */
  overdue(nowMs: number): Set<number> {
    const slots = new Set<number>();
    if (this.#asked.size === 0) return slots;
    const busy = new Set<number>();
    for (const { slot, actual } of this.#ports.instances()) if (actual.length > 0) busy.add(slot);
    for (const asked of this.#asked.values()) {
      if (asked.slot < 0 || busy.has(asked.slot)) asked.quietSinceMs = nowMs;
      else if (nowMs - asked.quietSinceMs >= VALIDATE_MS_MAX) slots.add(asked.slot);
    }
    return slots;
  }

  #fail({ requestId, question }: Asked, error: ErrorData): void {
    const whose = question.function === undefined ? `bucket ${question.bucket}` : `function ${question.function}`;
    this.answered(requestId, { ...error, message: `the validator of ${whose} gave no answer: ${error.message}` });
  }

  #place(asked: Asked, nowMs: number): void {
    let chosen: RunningInstance | undefined;
    const cost = (one: RunningInstance) => one.actual.length + (one.instance.pool === asked.pool ? 0 : 0.5);
    for (const one of this.#ports.instances()) {
      if (one.ready && one.endedFor === undefined && (chosen === undefined || cost(one) < cost(chosen))) chosen = one;
    }
    if (chosen === undefined) {
      asked.slot = -1;
      if (!this.#anyInstance()) this.#ports.startInstance();
      return;
    }
    asked.slot = chosen.slot;
    asked.quietSinceMs = nowMs;
    this.#ports.post(chosen.slot, { type: 'validate', requestId: asked.requestId, ...asked.question });
  }

  #anyInstance(): boolean {
    for (const _one of this.#ports.instances()) return true;
    return false;
  }
}
