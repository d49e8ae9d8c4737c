// Ends of sessions that an instance told the server itself, account and all, and that the server may ask for again.
//
// LA1. Such an end can be lost with the instance's connection. The server has at most LANE_DEPTH_MAX sessions with an
//      instance and hears of their ends in their order: so what it has not heard is among the newest that many of that
//      instance. Those are kept with their results; the server asks by giving the session to the host (LN2).

import type { StoredObject } from '../../bucket/index.ts';
import { type HostToServer, LANE_DEPTH_MAX } from '../../protocol/index.ts';
import type { Session } from '../../scheduler/local/index.ts';
import { endMessage } from './session-messages.ts';

interface ToldEnd {
  readonly session: Session;
  /** With its content: that of the session's own is dropped when the session is kept for its trace. */
  readonly result: StoredObject | undefined;
}

export class ToldEnds {
  /** By instance slot, newest last (LA1). The next instance of a slot pushes them out. */
  readonly #bySlot: (ToldEnd[] | undefined)[] = [];

  /** Before the session's contents are dropped. */
  add(slot: number, session: Session): void {
    let ends = this.#bySlot[slot];
    if (ends === undefined) {
      ends = [];
      this.#bySlot[slot] = ends;
    }
    ends.push({ session, result: session.result === undefined ? undefined : { ...session.result } });
    if (ends.length > LANE_DEPTH_MAX) ends.shift();
  }

  find(session: string, run: number): ToldEnd | undefined {
    for (const ends of this.#bySlot) {
      const end = ends?.find((one) => one.session.id === session && one.session.run === run);
      if (end !== undefined) return end;
    }
    return undefined;
  }
}

/** @param bytes of the result. */
export function toldEndMessage({ session, result }: ToldEnd, bytes: Uint8Array | undefined): HostToServer {
  const header =
    result === undefined || bytes === undefined ? undefined : { contentType: result.contentType, size: bytes.length };
  return endMessage({ type: 'session-ended', session, state: 'completed', error: undefined }, header, []);
}
