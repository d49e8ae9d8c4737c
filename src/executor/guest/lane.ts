// Sessions that the server gives straight to this instance, past the host, because it knows it idle.

import { entryId, type FunctionRow, INPUT_BUCKET_INDEX, type StoredObject } from '../../bucket/index.ts';
import type { ServerToHost } from '../../protocol/index.ts';
import { LANE_SESSIONS, type Ticket } from '../shared/index.ts';

type SessionStart = ServerToHost & { type: 'session-start' };

const OUTSIDE = { hi: 0, lo: 0 };

/** Numbers of such sessions: a block of them is this instance's own, so that the host need not be asked. */
export class LaneNumbers {
  #base: number;
  #used = 0;
  /** The next block, fetched before this one is used up. */
  #next: number | undefined;
  readonly #fetch: () => void;

  constructor(base: number, fetch: () => void) {
    this.#base = base;
    this.#fetch = fetch;
  }

  /** Undefined while a new block is awaited. */
  take(): number | undefined {
    if (this.#used === LANE_SESSIONS / 2 && this.#next === undefined) this.#fetch();
    if (this.#used >= LANE_SESSIONS) {
      if (this.#next === undefined) return undefined;
      this.#base = this.#next;
      this.#next = undefined;
      this.#used = 0;
    }
    return this.#base + this.#used++;
  }

  give(base: number): void {
    this.#next = base;
  }
}

/** The entry's ticket, as if it had been claimed. */
export function laneTicket(
  message: SessionStart,
  blobs: readonly Uint8Array[],
  row: FunctionRow,
  sessionNo: number,
  tableVersion: number,
  nowMs: number,
): Ticket {
  const inputs = (message.entries[0]?.inputs ?? []).map(
    (header, index): StoredObject => ({
      bucket: INPUT_BUCKET_INDEX,
      name: header.name,
      producer: OUTSIDE,
      step: 0,
      group: header.group,
      session: undefined,
      contentType: header.contentType,
      content: blobs[index] ?? new Uint8Array(0),
    }),
  );
  return {
    sessionNo,
    session: message.session,
    run: message.run,
    id: entryId(message.session, 0),
    function: row.index,
    fence: 1,
    attempt: 1,
    tableVersion,
    inline: true,
    wantsResult: true,
    direct: true,
    priority: message.priority,
    deadlineMs: message.deadlineInMs === undefined ? 0 : nowMs + message.deadlineInMs,
    queuedAtMs: nowMs,
    inputs,
  };
}
