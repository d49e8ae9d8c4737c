// Answers that an instance gives to the server itself, past the host.
//
// A session whose whole life was in this instance (begun here, no successor given away, nothing that the host evaluates)
// is known here to its end, and so is its outcome: it goes straight to the server, and the host reads the story later. The
// host stays the one who counts; the server takes whichever says the outcome first, since both say the same.

import type { StoredObject } from '../../bucket/index.ts';
import type { HostToServer } from '../../protocol/index.ts';
import type { Ticket } from '../shared/index.ts';

/** To the server, on this instance's own connection. */
export type SendToServer = (message: HostToServer, blobs: readonly Uint8Array[]) => void;

interface Known {
  readonly session: string;
  readonly run: number;
  /** Invocations of it that have not ended. */
  live: number;
  result: StoredObject | undefined;
  readonly begunAtMs: number;
}

export class DirectReplies {
  readonly #known = new Map<number, Known>();
  #send: SendToServer | undefined;

  /** Undefined: there is no connection (any more); the host answers. */
  connect(send: SendToServer | undefined): void {
    this.#send = send;
    if (send === undefined) this.#known.clear();
  }

  begun(ticket: Ticket, nowMs: number): void {
    if (!ticket.direct || this.#send === undefined) return;
    this.#known.set(ticket.sessionNo, {
      session: ticket.session,
      run: ticket.run,
      live: 1,
      result: undefined,
      begunAtMs: nowMs,
    });
  }

  /** A successor is kept here. */
  kept(sessionNo: number): void {
    const known = this.#known.get(sessionNo);
    if (known !== undefined) known.live++;
  }

  /** Something of the session is known elsewhere from now on. */
  shared(sessionNo: number): void {
    if (this.#known.size > 0) this.#known.delete(sessionNo);
  }

  /** An output: the first one is the outcome. Afterwards the session is the host's. */
  output(sessionNo: number, object: StoredObject, nowMs: number): void {
    const known = this.#known.get(sessionNo);
    if (known === undefined) return;
    this.#known.delete(sessionNo);
    if (object.name === undefined) this.#answer(known, object, false, nowMs);
  }

  /** @returns whether the outcome was sent: the host needs no haste. */
  ended(ticket: Ticket, failed: boolean, result: StoredObject | undefined, nowMs: number): boolean {
    const known = this.#known.get(ticket.sessionNo);
    if (known === undefined) return false;
    if (ticket.wantsResult) known.result = result;
    if (failed || --known.live === 0) this.#known.delete(ticket.sessionNo);
    if (failed) return false;
    // Not told in haste either: it goes on here.
    if (known.live > 0) return true;
    return this.#answer(known, known.result, true, nowMs);
  }

  #answer(known: Known, object: StoredObject | undefined, final: boolean, nowMs: number): boolean {
    const content = object?.content;
    let bytes: Uint8Array | undefined;
    if (typeof content === 'string') bytes = Buffer.from(content);
    else if (content instanceof Uint8Array) bytes = content;
    // Bytes in the object store may be freed before the socket has taken them.
    if (object !== undefined && bytes === undefined) return false;
    const { session, run } = known;
    this.#send?.(
      {
        type: 'session-outcome',
        session,
        run,
        final,
        busyMs: nowMs - known.begunAtMs,
        ...(object === undefined || bytes === undefined
          ? {}
          : { payload: { contentType: object.contentType, size: bytes.length } }),
      },
      bytes === undefined ? [] : [bytes],
    );
    return true;
  }
}
