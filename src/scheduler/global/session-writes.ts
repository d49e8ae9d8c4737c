// Writes of sessions that are not durable yet.
//
// Owns: the last write of each session, until it is on disk; who waits for a session waits for that.
// Does not own: what is written (session-codec, Firings), the store (RecordStore).
//
// A promise that something is kept resolves only after its transaction is durable (CO1).

import type { CoordinatorPorts } from './ports.ts';
import type { RecordChange } from './record-store.ts';
import type { Session } from './session.ts';

export class SessionWrites {
  readonly #ports: CoordinatorPorts;
  readonly #last = new Map<string, Promise<void>>();

  constructor(ports: CoordinatorPorts) {
    this.#ports = ports;
  }

  /** Writes and remembers that this session waits for it, until it is durable. A failure is reported too. */
  write(session: Session, changes: readonly RecordChange[]): Promise<void> {
    const done = this.#ports.records.write(changes);
    this.remember(session.id, done, (error) => this.#ports.report(`session ${session.id} could not be written`, error));
    return done;
  }

  /** Whoever waits for the session waits for this write. */
  remember(id: string, written: Promise<void>, onError: (error: unknown) => void = ignore): void {
    this.#last.set(id, written);
    const forget = () => {
      if (this.#last.get(id) === written) this.#last.delete(id);
    };
    written.then(forget, (error) => {
      forget();
      onError(error);
    });
  }

  /** The last write that is not durable yet. */
  pending(id: string): Promise<void> | undefined {
    return this.#last.get(id);
  }

  /** Until the last write of this session is durable. */
  written(id: string): Promise<void> {
    return this.#last.get(id) ?? Promise.resolve();
  }

  /** Until none of those is pending that are now, durable or not. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#last.values()]);
  }

  /** A write that nobody waits for: its failure is reported. */
  supervise(work: Promise<void> | undefined, what: string): void {
    work?.catch((error) => this.#ports.report(`${what} could not be written`, error));
  }
}

/** For a write whose failure somebody else reports. */
function ignore(): void {}
