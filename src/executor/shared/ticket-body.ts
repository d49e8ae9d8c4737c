// What an offer says: everything that an instance needs to run one invocation.

import type { Hash64 } from '../../base/index.ts';
import {
  type ByteReader,
  type ByteWriter,
  objectBytesMax,
  readObject,
  type StoredObject,
  textBytesMax,
  writeObject,
} from '../../bucket/index.ts';

export interface Ticket {
  /** The host's number of the session. */
  readonly sessionNo: number;
  readonly session: string;
  /** Execution of the session, 1 for the first. */
  readonly run: number;
  readonly id: Hash64;
  /** Index into the app's functions. */
  readonly function: number;
  /** Highest known fence of the invocation: what an attempt with a lower one says is dropped. */
  readonly fence: number;
  /** 1 for the first. */
  readonly attempt: number;
  /** Trigger table that the session uses; another one than the instance knows makes the host evaluate. */
  readonly tableVersion: number;
  /** False: the host evaluates every send (a re-execution, or a suspected poison). */
  readonly inline: boolean;
  /** The first entry: its return value is the session's result. */
  readonly wantsResult: boolean;
  /** Who runs it may answer the server itself, if it sees the session to its end. */
  readonly direct: boolean;
  /** Of the session; its successors bear it too. */
  readonly priority: number;
  /** Monotonic ms; 0 = none. */
  readonly deadlineMs: number;
  readonly queuedAtMs: number;
  /** How the claimer came by its instance is told by itself; `cold` when the host started one for this. */
  readonly inputs: readonly StoredObject[];
}

export function ticketBytesMax(ticket: Ticket): number {
  let size = 104 + textBytesMax(ticket.session);
  for (const input of ticket.inputs) size += objectBytesMax(input);
  return size;
}

export function writeTicket(writer: ByteWriter, ticket: Ticket): void {
  writer.u32(ticket.sessionNo);
  writer.text(ticket.session);
  writer.u32(ticket.run);
  writer.u32(ticket.id.hi);
  writer.u32(ticket.id.lo);
  writer.u32(ticket.function);
  writer.u32(ticket.fence);
  writer.u32(ticket.attempt);
  writer.u32(ticket.tableVersion);
  writer.u8((ticket.inline ? 1 : 0) | (ticket.wantsResult ? 2 : 0) | (ticket.direct ? 4 : 0));
  writer.f64(ticket.priority);
  writer.f64(ticket.deadlineMs);
  writer.f64(ticket.queuedAtMs);
  writer.u32(ticket.inputs.length);
  for (const input of ticket.inputs) writeObject(writer, input);
}

export function readTicket(reader: ByteReader): Ticket {
  const sessionNo = reader.u32();
  const session = reader.text() ?? '';
  const run = reader.u32();
  const id = { hi: reader.u32(), lo: reader.u32() };
  const functionIndex = reader.u32();
  const fence = reader.u32();
  const attempt = reader.u32();
  const tableVersion = reader.u32();
  const flags = reader.u8();
  const priority = reader.f64();
  const deadlineMs = reader.f64();
  const queuedAtMs = reader.f64();
  const count = reader.u32();
  const inputs: StoredObject[] = [];
  for (let i = 0; i < count; i++) inputs.push(readObject(reader));
  return {
    sessionNo,
    session,
    run,
    id,
    function: functionIndex,
    fence,
    attempt,
    tableVersion,
    inline: (flags & 1) !== 0,
    wantsResult: (flags & 2) !== 0,
    direct: (flags & 4) !== 0,
    priority,
    deadlineMs,
    queuedAtMs,
    inputs,
  };
}
