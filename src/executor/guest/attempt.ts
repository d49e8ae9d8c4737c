import type { ErrorData } from '../../base/index.ts';
import type { FunctionRow } from '../../bucket/index.ts';
import type { Speaker, Ticket } from '../shared/index.ts';
import type { CreatedObject, GuestObject } from './guest-object.ts';

/** One try of an invocation inside this instance. */
export class Attempt implements Speaker {
  readonly ticket: Ticket;
  readonly row: FunctionRow;
  readonly inputs: readonly GuestObject[];
  /** Step of the next send or logged operation. */
  step = 0;
  done = false;
  aborted: ErrorData | undefined;
  controller: AbortController | undefined;
  /** Created and perhaps never sent; freed when the attempt ends. */
  created: CreatedObject[] | undefined;
  /** Monotonic ms of the first send with a successor; 0 = none. */
  firstSendMs = 0;
  /** And of the last one. */
  lastSendMs = 0;

  constructor(ticket: Ticket, row: FunctionRow, inputs: readonly GuestObject[]) {
    this.ticket = ticket;
    this.row = row;
    this.inputs = inputs;
  }

  get sessionNo(): number {
    return this.ticket.sessionNo;
  }

  get id(): { hi: number; lo: number } {
    return this.ticket.id;
  }

  get fence(): number {
    return this.ticket.fence;
  }
}
