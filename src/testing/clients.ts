// Clients of the simulated machine: random requests, repeated when no answer comes.
//
// Owns: what is asked when, and what was answered (history.calls).
// Does not own: whether the answers are right (checkers).
//
// CL1. A request may be lost with its answer, when the server dies or the connection does. Whoever asked does not know
//      whether it was done, and asks again if that is safe: with an idempotency key, or for an object of the same name.

import type { Prng } from '../base/index.ts';
import { type ErrorData, toErrorData } from '../base/index.ts';
import type { Core } from '../node/index.ts';
import type { Payload, SyncOutcome } from '../protocol/index.ts';
import type { Call, History } from './history.ts';
import type { SimMachine } from './machine.ts';
import type { Actor, World } from './world.ts';

export type ControlPlane = Core['controlPlane'];

const LATENCY_MS = 0.5;
/** No answer will come: the server is gone, or the connection. */
export const NO_ANSWER = 'NO_ANSWER';

export class Client {
  readonly #world: World;
  readonly #machine: SimMachine;
  readonly #history: History;
  readonly #actor: Actor;
  readonly #random: Prng;
  /** Share of answers that get lost. */
  lossiness = 0;

  constructor(world: World, machine: SimMachine, history: History) {
    this.#world = world;
    this.#machine = machine;
    this.#history = history;
    this.#actor = world.actor('client');
    this.#random = world.random('client');
  }

  /** Asks the server once. `recorded`: what a checker may want to know. */
  ask(
    what: string,
    detail: Readonly<Record<string, unknown>>,
    act: (controlPlane: ControlPlane) => Promise<unknown>,
  ): Promise<Call> {
    const world = this.#world;
    const { server } = this.#machine;
    const call: Call = {
      what,
      detail,
      askedMs: world.nowMs,
      boot: server?.boot ?? 0,
      answer: undefined,
      answeredMs: 0,
    };
    this.#history.calls.push(call);
    return new Promise((resolve) => {
      let isOver = false;
      const answer = (given: Call['answer']) => {
        if (isOver) return;
        isOver = true;
        stop();
        world.soon(this.#actor, LATENCY_MS, '', () => {
          const lost = this.#random.float() < this.lossiness;
          call.answer = lost ? noAnswer : given;
          call.answeredMs = world.nowMs;
          world.note(`client: ${what} ${textOf(call)}`);
          resolve(call);
        });
      };
      const stop = this.#machine.onServerDeath(() => answer(noAnswer));
      if (server === undefined || !server.actor.alive) {
        answer(noAnswer);
        return;
      }
      world.soon(server.actor, LATENCY_MS, '', () => {
        const { core } = server;
        if (core === undefined) {
          answer(noAnswer);
          return;
        }
        world.note(`client asks: ${what} ${JSON.stringify(detail)}`);
        act(core.controlPlane).then(
          (value) => answer({ ok: true, value }),
          (error: unknown) => answer({ ok: false, error: toErrorData(error) }),
        );
      });
    });
  }

  /** Asks until there is an answer, `tries` times at the most. */
  async insist(
    what: string,
    detail: Readonly<Record<string, unknown>>,
    act: (controlPlane: ControlPlane) => Promise<unknown>,
    tries = 1_000,
  ): Promise<Call> {
    for (let i = 1; ; i++) {
      const call = await this.ask(what, detail, act);
      if (!isUnanswered(call) || i >= tries) return call;
      await this.pause(10 + this.#random.int(50));
    }
  }

  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#world.at(this.#actor, this.#world.nowMs + ms, '', resolve);
    });
  }
}

const noAnswer: Call['answer'] = { ok: false, error: { code: NO_ANSWER as ErrorData['code'], message: 'no answer' } };

export function isUnanswered(call: Call): boolean {
  return call.answer?.ok === false && (call.answer.error.code as string) === NO_ANSWER;
}

export function payloadOf(value: unknown): Payload {
  return { contentType: 'application/json', bytes: new TextEncoder().encode(JSON.stringify(value)) };
}

export function valueIn(payload: Payload): unknown {
  const { contentType, bytes } = payload;
  return contentType === 'application/json' ? JSON.parse(new TextDecoder().decode(bytes)) : bytes.length;
}

/** As a client sees it: a value, or an error. */
export function outcomeValue(outcome: SyncOutcome): unknown {
  return outcome.ok ? { ok: true, value: valueIn(outcome.payload) } : { ok: false, error: outcome.error };
}

function textOf({ answer }: Call): string {
  if (answer === undefined) return '';
  return answer.ok ? (JSON.stringify(answer.value) ?? '').slice(0, 200) : answer.error.code;
}
