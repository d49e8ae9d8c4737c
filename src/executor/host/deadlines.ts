// Time on one app host.
//
// Owns: the one timer, how often it is looked at whatever runs, the end of attempts that run too long, and of instances
// whose handler does not stop.
// Does not own: what else is due when (SessionMachine, LocalScheduler, Questions), starting instances (Instances).

import type { ErrorData } from '../../base/index.ts';
import {
  ABORT_GRACE_MS,
  findInvocation,
  type Invocation,
  type LocalScheduler,
  type SessionMachine,
  WATCHDOG_MS,
} from '../../scheduler/local/index.ts';
import type { Speaker } from '../shared/index.ts';
import { type Actual, type Instances, type RunningInstance, sameAttempt } from './instances.ts';
import { ANSWER_MS_MAX, WATCH_MS } from './limits.ts';
import type { HostPorts } from './ports.ts';
import type { Questions } from './questions.ts';
import type { Rings } from './rings.ts';

export interface DeadlinePorts {
  readonly clock: Pick<HostPorts, 'monotonicMs' | 'setTimer'>;
  readonly sessions: SessionMachine;
  readonly scheduler: LocalScheduler;
  readonly instances: Instances;
  readonly questions: Questions;
  readonly rings: Rings;
  /** Monotonic ms at which `onTimePassed` has something else to do; infinite for nothing. */
  readonly nextOtherMs: () => number;
  /** Reads what was told, and lets time pass in the machines. */
  readonly onTimePassed: () => void;
  /** Time to check that every session can go on. */
  readonly onWatch: () => void;
  /** Its attempt is over, although the handler still runs. */
  readonly onTimeout: (invocation: Invocation, error: ErrorData) => void;
}

export class Deadlines {
  readonly #ports: DeadlinePorts;
  #timerAtMs = Number.POSITIVE_INFINITY;
  /** When sessions are checked next; none: there is no session. */
  #watchAtMs = Number.POSITIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;

  constructor(ports: DeadlinePorts) {
    this.#ports = ports;
  }

  stop(): void {
    this.#cancelTimer?.();
  }

  /** One timer for everything: the earliest of what the machines wait for, and a watch while anything runs. */
  arm(): void {
    const { clock, sessions, scheduler, instances, questions, rings } = this.#ports;
    let at = sessions.nextTimerMs() ?? Number.POSITIVE_INFINITY;
    const schedulerAt = scheduler.nextTimerMs();
    if (schedulerAt !== undefined && schedulerAt < at) at = schedulerAt;
    at = Math.min(at, this.#ports.nextOtherMs());
    if (instances.actualCount > 0) at = Math.min(at, this.#nextDeadlineMs());
    else if (rings.expectsNews || questions.pending) at = Math.min(at, clock.monotonicMs() + WATCH_MS);
    if (sessions.sessionCount === 0) this.#watchAtMs = Number.POSITIVE_INFINITY;
    else if (this.#watchAtMs === Number.POSITIVE_INFINITY) this.#watchAtMs = clock.monotonicMs() + WATCHDOG_MS;
    at = Math.min(at, this.#watchAtMs);
    if (at >= this.#timerAtMs) return;
    this.#cancelTimer?.();
    this.#timerAtMs = at;
    this.#cancelTimer = clock.setTimer(at, () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY;
      this.#cancelTimer = undefined;
      this.#onTimer();
    });
  }

  /** Tells the handler to stop; if it does not, nor any other on its instance, the instance is replaced. */
  abort(slot: number, which: Speaker, error: ErrorData): void {
    const { clock, instances } = this.#ports;
    const running = instances.at(slot);
    if (running === undefined) return;
    instances.post(slot, {
      type: 'abort',
      sessionNo: which.sessionNo,
      hi: which.id.hi,
      lo: which.id.lo,
      fence: which.fence,
      error,
    });
    const actual = running.actual.find((one) => sameAttempt(one, which));
    if (actual === undefined || actual.replaceAtMs > 0) return;
    actual.replaceAtMs = clock.monotonicMs() + ABORT_GRACE_MS;
    this.arm();
  }

  #nextDeadlineMs(): number {
    const { clock, instances } = this.#ports;
    const now = clock.monotonicMs();
    let next = now + WATCH_MS;
    for (const running of instances.all()) {
      for (const actual of running.actual) {
        if (actual.replaceAtMs > 0) next = Math.min(next, actual.replaceAtMs);
        const timeoutMs = this.#timeoutOf(actual);
        if (timeoutMs > 0 && actual.replaceAtMs === 0) next = Math.min(next, actual.startedAtMs + timeoutMs);
      }
    }
    return Math.max(next, now + 1);
  }

  #timeoutOf(actual: Actual): number {
    return this.#invocationOf(actual)?.row.timeoutMs ?? 0;
  }

  #invocationOf(actual: Actual): Invocation | undefined {
    const session = this.#ports.sessions.sessionByNo(actual.sessionNo);
    return session === undefined ? undefined : findInvocation(session, actual.id);
  }

  #onTimer(): void {
    const { clock, instances, questions, onTimePassed, onWatch } = this.#ports;
    onTimePassed();
    const now = clock.monotonicMs();
    if (now >= this.#watchAtMs) {
      this.#watchAtMs = now + WATCHDOG_MS;
      onWatch();
    }
    for (const running of instances.all()) {
      for (const actual of [...running.actual]) this.#check(running, actual, now);
    }
    for (const slot of questions.overdue(now)) {
      const running = instances.at(slot);
      const message = `it did not end within ${ANSWER_MS_MAX} ms`;
      if (running !== undefined) instances.terminate(running, { code: 'E_TIMEOUT', message });
    }
    this.arm();
  }

  #check(running: RunningInstance, actual: Actual, now: number): void {
    if (actual.replaceAtMs > 0) {
      // Others on the same instance would pay for it: with `concurrency` it goes on as long as one of them has time left.
      if (running.actual.every(({ replaceAtMs }) => replaceAtMs > 0 && now >= replaceAtMs)) {
        this.#ports.instances.terminate(running, {
          code: 'E_TIMEOUT',
          message: 'its handler did not stop when it was told to',
        });
      }
      return;
    }
    const invocation = this.#invocationOf(actual);
    const timeoutMs = invocation?.row.timeoutMs ?? 0;
    if (timeoutMs === 0 || now < actual.startedAtMs + timeoutMs) return;
    if (invocation === undefined || invocation.fence !== actual.fence) return;
    const error: ErrorData = {
      code: 'E_TIMEOUT',
      message: `function ${invocation.row.name} ran longer than its timeoutMs of ${timeoutMs}`,
    };
    this.#ports.onTimeout(invocation, error);
    this.abort(running.slot, actual, error);
  }
}
