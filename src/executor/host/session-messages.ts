// What the server is told of a session: the headers of its objects, and its end.

import { hexOf } from '../../base/index.ts';
import { nameOf, type StoredObject, sizeOf } from '../../bucket/index.ts';
import type { FinalFailure, HostToServer, ObjectHeader, PayloadHeader, SessionProgress } from '../../protocol/index.ts';
import {
  FAILED_ATTEMPTS_MAX,
  FAILED_INPUT_BYTES_MAX,
  FAILED_INPUTS_BYTES_MAX,
  type Session,
  type SessionEffect,
} from '../../scheduler/local/index.ts';
import { attemptTrace, firingOf, type TraceNames } from './trace.ts';

/** An object of a session goes to the server. */
export type SentEffect = Extract<SessionEffect, { type: 'output' | 'copy-object' | 'persist' }>;

/** Its blob is the object, `size` bytes. */
export function objectMessage(effect: SentEffect, size: number): HostToServer {
  const { id, run, durable } = effect.session;
  const object = headerOf(effect.session, effect.object, size);
  switch (effect.type) {
    case 'output':
      return { type: 'session-output', session: id, run, object };
    case 'copy-object':
      return { type: 'bucket-object', session: id, seq: effect.seq, object, durable };
    case 'persist':
      return { type: 'object-persist', session: id, seq: effect.seq, object };
  }
}

/** @param result the first blob of the message; @param failures their inputs are the others. */
export function endMessage(
  { session, state, error }: SessionEffect & { type: 'session-ended' },
  result: PayloadHeader | undefined,
  failures: readonly FinalFailure[],
): HostToServer & { type: 'session-ended' } {
  return {
    type: 'session-ended',
    session: session.id,
    run: session.run,
    state,
    ...(result === undefined ? {} : { result }),
    ...(error === undefined ? {} : { error }),
    ...progressOf(session),
    ...(failures.length > 0 ? { failures } : {}),
    ...(session.failuresDropped > 0 ? { failuresDropped: session.failuresDropped } : {}),
  };
}

/** The account of a session, also while it runs: attempts that have not ended have cost nothing yet. */
export function progressOf(session: Session): SessionProgress {
  return {
    unfired: unfiredOf(session),
    counts: {
      invocations: session.invocationCount,
      attempts: session.attempts,
      objects: session.objects.length + session.droppedObjects - (session.result === undefined ? 0 : 1),
      bytes: session.bytes,
      firings: session.firings,
    },
    meteredMs: Math.round(session.meteredMs * 1000) / 1000,
  };
}

/**
 * What failed for good, with what it takes to try it again when the session's objects are freed.
 * @param keep called for each input that goes with the message, in order.
 */
export function failuresOf(session: Session, names: TraceNames, keep: (input: StoredObject) => void): FinalFailure[] {
  let room = FAILED_INPUTS_BYTES_MAX;
  return session.failures.map(({ invocation, error }) => {
    if (invocation === undefined) return { invocation: '', function: '', error };
    const { row, history, attempts } = invocation;
    const told = {
      invocation: hexOf(invocation.id),
      function: row.name,
      error,
      attempts: history.slice(-FAILED_ATTEMPTS_MAX).map((attempt) => attemptTrace(attempt, names)),
      attemptCount: attempts,
      retried: row.retries.max > 0 || attempts > 1,
    };
    const firing = firingOf(invocation);
    if (firing === undefined) return { ...told, entry: session.entries.indexOf(invocation) };
    const bytes = invocation.inputs.reduce((sum, input) => sum + sizeOf(input), 0);
    if (bytes > Math.min(room, FAILED_INPUT_BYTES_MAX)) return { ...told, firing };
    room -= bytes;
    for (const input of invocation.inputs) keep(input);
    return { ...told, firing, inputs: invocation.inputs.map((input) => headerOf(session, input, sizeOf(input))) };
  });
}

function headerOf(session: Session, object: StoredObject, size: number): ObjectHeader {
  return {
    bucket: session.tables.buckets[object.bucket]?.name ?? '',
    name: nameOf(object),
    group: object.group,
    session: object.session ?? session.id,
    contentType: object.contentType,
    size,
  };
}

/** Triggers that hold objects and wait for more. */
export function unfiredOf(session: Session): { bucket: string; trigger: string; held: number; waitsFor: string }[] {
  const unfired: { bucket: string; trigger: string; held: number; waitsFor: string }[] = [];
  for (const [key, machine] of session.triggers) {
    const waitsFor = machine.waitsFor();
    if (machine.held === 0 || waitsFor === undefined) continue;
    const bucket = session.tables.buckets[Math.floor(key / 0x1_0000)];
    unfired.push({
      bucket: bucket?.name ?? '',
      trigger: bucket?.triggers[key % 0x1_0000]?.name ?? '',
      held: machine.held,
      waitsFor,
    });
  }
  return unfired;
}
