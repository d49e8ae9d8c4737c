// A session that was over before the host heard of it: one attempt, on the instance that the server gave it to, which sent
// nothing. The machine would come to the same record in three steps.

import type { Hash64 } from '../../base/index.ts';
import type { AppTables, FunctionRow, StoredObject } from '../../bucket/index.ts';
import { sizeOf } from '../../bucket/index.ts';
import { markEnded, newInvocation, newSession, type Session } from './session.ts';

export interface Alone {
  readonly no: number;
  readonly id: string;
  readonly run: number;
  readonly priority: number;
  readonly deadlineMs: number;
  readonly tables: AppTables;
  readonly entry: Hash64;
  /** Index into the app's functions. */
  readonly function: number;
  readonly inputs: readonly StoredObject[];
  readonly result: StoredObject | undefined;
  readonly slot: number;
  readonly instance: string;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

export function sessionAlone(alone: Alone): Session {
  const { startedAtMs, endedAtMs, inputs, result } = alone;
  const session = newSession({
    no: alone.no,
    id: alone.id,
    run: alone.run,
    durable: false,
    priority: alone.priority,
    deadlineMs: alone.deadlineMs,
    tables: alone.tables,
    startedAtMs,
    open: undefined,
  });
  for (const input of inputs) {
    session.objects.push(input);
    session.bytes += sizeOf(input);
  }
  if (result !== undefined) session.objects.push(result);
  session.result = result;
  session.attempts = 1;
  session.meteredMs = Math.max(0, endedAtMs - startedAtMs);
  session.state = 'ended';
  session.endedAtMs = endedAtMs;
  const entry = newInvocation(session, {
    id: alone.entry,
    row: alone.tables.functions[alone.function] as FunctionRow,
    firing: undefined,
    parent: undefined,
    inputs,
    fence: 1,
    wantsResult: true,
    queuedAtMs: startedAtMs,
  });
  markEnded(entry);
  entry.attempts = 1;
  entry.startedAtMs = startedAtMs;
  entry.history.push({
    n: 1,
    slot: alone.slot,
    instance: alone.instance,
    start: 'warm',
    queuedAtMs: startedAtMs,
    startedAtMs,
    endedAtMs,
    outcome: 'ok',
  });
  session.entries.push(entry);
  return session;
}
