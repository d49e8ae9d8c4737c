// Who waits for something of a session.
//
// Owns: promises of outcomes, followers of outputs, who waits for the account of a session that is over.
// Does not own: what they wait for (SessionTable), the writes that an answer waits for (SessionWrites).

import type { ErrorData, MonotonicMs } from '../../base/index.ts';
import type { SyncOutcome } from '../../protocol/index.ts';
import { SETTLED_WAIT_MS } from './limits.ts';
import type { CoordinatorPorts, HostLink } from './ports.ts';
import type { Session } from './session.ts';
import type { SessionWrites } from './session-writes.ts';

type LinkOf = (app: string, version: string) => HostLink | undefined;

interface Waiter {
  readonly promise: Promise<SyncOutcome>;
  readonly resolve: (outcome: SyncOutcome) => void;
}

export class SessionWaits {
  readonly #ports: CoordinatorPorts;
  readonly #writes: SessionWrites;
  readonly #linkOf: LinkOf;
  readonly #waiters = new Map<string, Waiter>();
  /** Who follows a live session's outputs: called at each output and at the end. */
  readonly #followers = new Map<string, Set<() => void>>();
  readonly #accountWaiters = new Map<string, (() => void)[]>();

  constructor(ports: CoordinatorPorts, writes: SessionWrites, linkOf: LinkOf) {
    this.#ports = ports;
    this.#writes = writes;
    this.#linkOf = linkOf;
  }

  /** The outcome when there is one, else a promise of it. */
  outcomeOf(session: Session): Promise<SyncOutcome> {
    const waiter = this.#waiters.get(session.id);
    if (waiter !== undefined) return waiter.promise;
    if (session.outcome !== undefined) {
      const { outcome } = session;
      const written = this.#writes.pending(session.id);
      return written === undefined ? Promise.resolve(outcome) : afterWrite(written, outcome);
    }
    if (session.parkError !== undefined) return Promise.resolve({ ok: false, error: session.parkError });
    let resolve: (outcome: SyncOutcome) => void = () => {};
    const promise = new Promise<SyncOutcome>((done) => {
      resolve = done;
    });
    this.#waiters.set(session.id, { promise, resolve });
    return promise;
  }

  /** Whoever waits for it gets this outcome. */
  settle(session: Session, outcome: SyncOutcome): void {
    const waiter = this.#waiters.get(session.id);
    if (waiter === undefined) return;
    this.#waiters.delete(session.id);
    waiter.resolve(outcome);
  }

  /** When its end is on disk (CO1). */
  settleDurable(session: Session, outcome: SyncOutcome): void {
    const written = this.#writes.pending(session.id);
    if (written === undefined) this.settle(session, outcome);
    else void afterWrite(written, outcome).then((settled) => this.settle(session, settled));
  }

  /** Calls at each output and at the end of a live session. */
  follow(id: string, callback: () => void): () => void {
    const callbacks = this.#followers.get(id) ?? new Set();
    this.#followers.set(id, callbacks.add(callback));
    return () => {
      callbacks.delete(callback);
      if (callbacks.size === 0 && this.#followers.get(id) === callbacks) this.#followers.delete(id);
    };
  }

  tellFollowers(id: string): void {
    const callbacks = this.#followers.get(id);
    if (callbacks !== undefined) for (const callback of [...callbacks]) callback();
  }

  /** Until a live session has ended. */
  ended(session: Session): Promise<void> {
    if (session.phase === 'ended') return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.follow(session.id, () => {
        if (session.phase !== 'ended') return;
        stop();
        resolve();
      });
    });
  }

  /** Who looks at sessions that are over wants to see them ended: waits for the host's account, SETTLED_WAIT_MS at most. */
  async accounted(sessions: Iterable<Session>): Promise<void> {
    const missing: Session[] = [];
    for (const session of sessions) if (session.settled && session.phase === 'running') missing.push(session);
    if (missing.length === 0) return;
    for (const link of new Set(missing.map(({ spec }) => this.#linkOf(spec.app, spec.version)))) {
      link?.send({ type: 'flush' });
    }
    await new Promise<void>((resolve) => {
      let left = missing.length;
      const atMs = (this.#ports.clock.monotonicMs() + SETTLED_WAIT_MS) as MonotonicMs;
      const cancel = this.#ports.timers.set(atMs, resolve);
      const arrived = () => {
        if (--left > 0) return;
        cancel();
        resolve();
      };
      for (const { id } of missing) {
        const waiters = this.#accountWaiters.get(id);
        if (waiters === undefined) this.#accountWaiters.set(id, [arrived]);
        else waiters.push(arrived);
      }
    });
  }

  /** The host's account of the session has come. */
  accountArrived(id: string): void {
    const waiters = this.#accountWaiters.get(id);
    if (waiters === undefined) return;
    this.#accountWaiters.delete(id);
    for (const arrived of waiters) queueMicrotask(arrived);
  }

  /** Whoever waits still is told `error`. */
  close(error: ErrorData): void {
    for (const waiter of this.#waiters.values()) waiter.resolve({ ok: false, error });
    this.#waiters.clear();
    for (const id of [...this.#followers.keys()]) this.tellFollowers(id);
  }
}

function afterWrite(written: Promise<void>, outcome: SyncOutcome): Promise<SyncOutcome> {
  return written.then(
    () => outcome,
    (error) => ({
      ok: false as const,
      error: { code: 'E_INTERNAL' as const, message: `The outcome could not be written: ${(error as Error).message}` },
    }),
  );
}
