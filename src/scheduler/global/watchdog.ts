// Checks at an interval that every live session can go on, here and in its host, and parks those that cannot.
//
// Owns: the interval, and which sessions could not go on when it looked last.
// Does not own: what going on means (SessionTable, ST6; the host's own watchdog, WD1), what parking does (SessionTable).
//
// Only what was found twice in a row, in the same execution, is parked: nothing was on its way that would have helped.

import type { MonotonicMs } from '../../base/index.ts';
import type { CancelTimer } from '../../platform/index.ts';
import type { Coordinator } from './coordinator.ts';
import { WATCHDOG_MS } from './limits.ts';
import type { HostLink } from './ports.ts';
import type { Session } from './session.ts';

export class Watchdog {
  readonly #coordinator: Coordinator;
  #timer: CancelTimer | undefined;
  /** Session and run, found at the last look. */
  #suspects = new Set<string>();
  #looking = false;

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
  }

  start(): void {
    const { clock, timers } = this.#coordinator.ports;
    this.#timer = timers.set((clock.monotonicMs() + WATCHDOG_MS) as MonotonicMs, () => {
      if (this.#coordinator.closed) return;
      this.start();
      // A host that is stopped keeps the answer: then there is nothing to learn from asking again.
      if (this.#looking) return;
      this.#looking = true;
      void this.#look().finally(() => {
        this.#looking = false;
      });
    });
  }

  stop(): void {
    this.#timer?.();
  }

  async #look(): Promise<void> {
    const { table } = this.#coordinator;
    const found = new Map<string, { session: Session; run: number; reason: string }>();
    const note = (session: Session, run: number, reason: string) => found.set(session.id, { session, run, reason });
    for (const { session, reason } of table.stuck()) note(session, session.run, reason);
    await Promise.all(Array.from(this.#running(), ([link, sessions]) => this.#ask(link, sessions, note)));
    const suspects = this.#suspects;
    this.#suspects = new Set(Array.from(found.values(), ({ session, run }) => `${session.id} ${run}`));
    for (const { session, run, reason } of found.values()) {
      if (!suspects.has(`${session.id} ${run}`) || this.#coordinator.closed) continue;
      const error = { code: 'E_PARKED' as const, message: `The session cannot go on: ${reason}.` };
      this.#coordinator.handle({ type: 'stuck', session: session.id, run, error });
    }
  }

  #running(): Map<HostLink, Session[]> {
    const byLink = new Map<HostLink, Session[]>();
    for (const session of this.#coordinator.table.all()) {
      const link = this.#coordinator.linkOf(session.spec.app, session.spec.version);
      if (session.phase !== 'running' || link === undefined) continue;
      const sessions = byLink.get(link);
      if (sessions === undefined) byLink.set(link, [session]);
      else sessions.push(session);
    }
    return byLink;
  }

  /** A host that does not answer is stopped or dies: then its loss is another's affair. */
  async #ask(
    link: HostLink,
    sessions: readonly Session[],
    note: (session: Session, run: number, reason: string) => void,
  ): Promise<void> {
    const asked = new Map(sessions.map((session) => [session.id as string, { session, run: session.run }]));
    const list = Array.from(asked, ([session, { run }]) => ({ session, run }));
    const answer = await link.request({ type: 'sessions-check', sessions: list }).catch(() => undefined);
    for (const id of answer?.reply.unknown ?? []) {
      const one = asked.get(id);
      if (one?.session.phase !== 'running' || one.session.run !== one.run) continue;
      note(one.session, one.run, 'its app host does not have it');
    }
  }
}
