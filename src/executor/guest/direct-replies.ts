// Answers that an instance gives to the server itself, past the host.
//
// A session whose whole life was in this instance (begun here, no successor given away, nothing that the host evaluates)
// is known here to its end, and so is its outcome: it goes straight to the server, and the host reads the story later. The
// server takes whichever says the outcome first, since both say the same.
//
// Of a session that the server gave to this instance, and that is one attempt which sends nothing, even the account is
// known here, and goes with the outcome; the host then has nothing to say. Of every other one the host keeps the account.

import { type StoredObject, sizeOf } from '../../bucket/index.ts';
import type { HostToServer, LaneAccount } from '../../protocol/index.ts';
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
  /** The server gave it to this instance, and nothing was sent. */
  isAlone: boolean;
}

/** To be sent when the record of the end is written: who reads it finds the end in the ring. */
export interface Answer {
  readonly message: HostToServer & { type: 'session-outcome' };
  readonly blobs: readonly Uint8Array[];
}

const NO_BLOBS: readonly Uint8Array[] = [];

export class DirectReplies {
  readonly #known = new Map<number, Known>();
  #send: SendToServer | undefined;

  /** Undefined: there is no connection (any more); the host answers. */
  connect(send: SendToServer | undefined): void {
    this.#send = send;
    if (send === undefined) this.#known.clear();
  }

  /** @param given by the server, on this instance's own connection. */
  begun(ticket: Ticket, nowMs: number, given: boolean): void {
    if (!ticket.direct || this.#send === undefined) return;
    this.#known.set(ticket.sessionNo, {
      session: ticket.session,
      run: ticket.run,
      live: 1,
      result: undefined,
      begunAtMs: nowMs,
      isAlone: given,
    });
  }

  /** A successor is kept here. */
  kept(sessionNo: number): void {
    const known = this.#known.get(sessionNo);
    if (known !== undefined) known.live++;
  }

  /** An object was sent that sets nothing off elsewhere. */
  sent(sessionNo: number): void {
    if (this.#known.size === 0) return;
    const known = this.#known.get(sessionNo);
    if (known !== undefined) known.isAlone = false;
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
    if (object.name !== undefined) return;
    const answer = answerOf(known, object, false, nowMs, undefined);
    if (answer !== undefined) this.send(answer);
  }

  /**
   * @param isOpen what comes of the end is for the host to say: it failed, or a rule may execute it again.
   * @returns what answers it; 'later': it goes on here, and nobody needs haste; undefined: the host answers.
   */
  ended(
    ticket: Ticket,
    isOpen: boolean,
    result: StoredObject | undefined,
    nowMs: number,
  ): Answer | 'later' | undefined {
    const known = this.#known.get(ticket.sessionNo);
    if (known === undefined) return undefined;
    if (ticket.wantsResult) known.result = result;
    if (isOpen || --known.live === 0) this.#known.delete(ticket.sessionNo);
    if (isOpen) return undefined;
    if (known.live > 0) return 'later';
    return answerOf(known, known.result, true, nowMs, known.isAlone ? accountOf(ticket, known, nowMs) : undefined);
  }

  send({ message, blobs }: Answer): void {
    this.#send?.(message, blobs);
  }
}

function accountOf({ inputs }: Ticket, { begunAtMs }: Known, nowMs: number): LaneAccount {
  let bytes = 0;
  for (const input of inputs) bytes += sizeOf(input);
  return { objects: inputs.length, bytes, meteredMs: Math.round(Math.max(0, nowMs - begunAtMs) * 1_000) / 1_000 };
}

/** Undefined: its bytes lie in the object store and may be freed before the socket has taken them. */
function answerOf(
  { session, run, begunAtMs }: Known,
  object: StoredObject | undefined,
  final: boolean,
  nowMs: number,
  account: LaneAccount | undefined,
): Answer | undefined {
  const message: { -readonly [K in keyof Answer['message']]: Answer['message'][K] } = {
    type: 'session-outcome',
    session,
    run,
    final,
    busyMs: nowMs - begunAtMs,
  };
  if (account !== undefined) message.account = account;
  if (object === undefined) return { message, blobs: NO_BLOBS };
  const { content, contentType } = object;
  if (typeof content !== 'string' && !(content instanceof Uint8Array)) return undefined;
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  message.payload = { contentType, size: bytes.length };
  return { message, blobs: [bytes] };
}
