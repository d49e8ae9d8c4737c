// What the server is told of a session: the headers of its objects, and its end.

import { nameOf, type StoredObject } from '../../bucket/index.ts';
import type { HostToServer, ObjectHeader, PayloadHeader } from '../../protocol/index.ts';
import type { Session, SessionEffect } from '../../scheduler/local/index.ts';

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

/** @param bytes of the result, which is the first blob of the message; undefined when there is none. */
export function endMessage(
  { session, state, error }: SessionEffect & { type: 'session-ended' },
  result: StoredObject | undefined,
  bytes: Uint8Array | undefined,
): HostToServer & { type: 'session-ended' } {
  const header: PayloadHeader | undefined =
    result === undefined || bytes === undefined ? undefined : { contentType: result.contentType, size: bytes.length };
  return {
    type: 'session-ended',
    session: session.id,
    run: session.run,
    state,
    ...(header === undefined ? {} : { result: header }),
    ...(error === undefined ? {} : { error }),
    unfired: unfiredOf(session),
    counts: {
      invocations: session.invocationCount,
      attempts: session.attempts,
      objects: session.objects.length - (session.result === undefined ? 0 : 1),
      bytes: session.bytes,
      firings: session.firings,
    },
    meteredMs: Math.round(session.meteredMs * 1000) / 1000,
    ...(session.failures.length > (error === undefined ? 0 : 1) ? { failures: session.failures } : {}),
  };
}

function headerOf(session: Session, object: StoredObject, size: number): ObjectHeader {
  return {
    bucket: session.tables.buckets[object.bucket]?.name ?? '',
    name: nameOf(object),
    group: object.group,
    session: session.id,
    contentType: object.contentType,
    size,
  };
}

/** Triggers that hold objects and wait for more. */
function unfiredOf(session: Session): { bucket: string; trigger: string; held: number; waitsFor: string }[] {
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
