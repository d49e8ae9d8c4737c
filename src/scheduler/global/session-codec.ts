// Sessions as records on disk, and as the records that people see.

import type { EpochMs, MonotonicMs, SessionId } from '../../base/index.ts';
import {
  isJsonType,
  type ObjectHeader,
  type OutputEvent,
  type Payload,
  type PayloadHeader,
  type SessionRecord,
  type SessionState,
} from '../../protocol/index.ts';
import { RECORD_RESULT_BYTES_MAX } from './limits.ts';
import type { RecordChange, StoredRecord } from './record-store.ts';
import { NO_COUNTS, type OutsideEvent, Session, type SessionEnd, type SessionSpec } from './session.ts';

/** Keys of everything that the coordinator keeps. Names hold no slash; object names and idempotency keys come last. */
export const keys = {
  session: (id: string) => `s/${id}`,
  output: (id: string, n: number) => `o/${id}/${padded(n)}`,
  outside: (id: string, n: number) => `e/${id}/${padded(n)}`,
  /** Index of ended sessions, by start. */
  ended: (startedAtMs: number, id: string) => `x/${padded(startedAtMs)}/${id}`,
  idempotency: (scope: string) => `i/${scope}`,
  held: (app: string, bucket: string, trigger: string, seq: number) => `h/${app}/${bucket}/${trigger}/${padded(seq)}`,
  taken: (app: string, session: string, bucket: string, name: string) => `k/${app}/${session}/${bucket}/${name}`,
  snapshot: (app: string, bucket: string, trigger: string) => `n/${app}/${bucket}/${trigger}`,
  /** What ran in an ended session. */
  trace: (id: string) => `t/${id}`,
  letter: (app: string, id: string) => `l/${app}/${id}`,
  /** How many letters of the app were dropped. */
  letterCount: (app: string) => `lc/${app}`,
  persisted: (app: string, bucket: string, name: string) => `v/${app}/${bucket}/${name}`,
};
export const ALL_PREFIXES = ['s/', 'o/', 'e/', 'h/', 'l/', 't/', 'v/'] as const;

interface StoredSession {
  readonly id: SessionId;
  readonly spec: Omit<SessionSpec, 'entries'> & {
    readonly entries: readonly { readonly function: string; readonly inputs: readonly ObjectHeader[] }[];
  };
  readonly startedAtMs: number;
  /** Wall-clock time of a delayed start that has not come yet. */
  readonly dueAtMs?: number;
  readonly end?: Omit<SessionEnd, 'result' | 'failures' | 'failuresDropped' | 'trace'>;
  readonly endedAtMs?: number;
  readonly result?: PayloadHeader;
}

/** The record of a session as it is now; outputs and objects from outside have records of their own. */
export function sessionChange(session: Session, dueAtMs?: number): RecordChange {
  const { entries, ...rest } = session.spec;
  const blobs: Uint8Array[] = [];
  const storedEntries = entries.map((entry) => ({
    function: entry.function,
    inputs: entry.inputs.map(({ header, bytes }) => {
      blobs.push(bytes);
      return header;
    }),
  }));
  const header: { -readonly [K in keyof StoredSession]: StoredSession[K] } = {
    id: session.id,
    spec: { ...rest, entries: storedEntries },
    startedAtMs: session.startedAtMs,
  };
  if (dueAtMs !== undefined) header.dueAtMs = dueAtMs;
  if (session.end !== undefined && session.endedAtMs !== undefined) {
    const { result, failures: _letters, failuresDropped: _more, trace: _trace, ...end } = session.end;
    header.end = end;
    header.endedAtMs = session.endedAtMs;
    if (result !== undefined) {
      header.result = { contentType: result.contentType, size: result.bytes.length };
      blobs.push(result.bytes);
    }
  }
  return { put: keys.session(session.id), header, blobs };
}

/** @returns the session, and when a delayed one is due; a payload that was not read is empty. */
export function sessionOf(record: StoredRecord<unknown>): { session: Session; dueAtMs: number | undefined } {
  const header = record.header as StoredSession;
  let next = 0;
  const blob = () => record.blobs[next++] ?? new Uint8Array(0);
  const entries = header.spec.entries.map((entry) => ({
    function: entry.function,
    inputs: entry.inputs.map((input) => ({ header: input, bytes: blob() })),
  }));
  const startedAtMs = header.startedAtMs as EpochMs;
  const session = new Session(header.id, { ...header.spec, entries }, startedAtMs, header.dueAtMs !== undefined);
  if (header.end !== undefined) {
    session.move('ended');
    session.endedAtMs = header.endedAtMs as EpochMs;
    session.end = {
      ...header.end,
      ...(header.result === undefined ? {} : { result: { contentType: header.result.contentType, bytes: blob() } }),
    };
  }
  return { session, dueAtMs: header.dueAtMs };
}

export function outputChange(session: string, output: OutputEvent): RecordChange {
  const { payload, ...rest } = output;
  const header = { ...rest, contentType: payload.contentType };
  return { put: keys.output(session, output.n), header, blobs: [payload.bytes] };
}

export function outputOf(record: StoredRecord<unknown>): OutputEvent {
  const { contentType, ...rest } = record.header as Omit<OutputEvent, 'payload'> & { contentType: string };
  return { ...rest, payload: { contentType, bytes: record.blobs[0] ?? new Uint8Array(0) } };
}

export function outsideChange(session: string, n: number, event: OutsideEvent): RecordChange {
  if (event.type !== 'object') return { put: keys.outside(session, n), header: event };
  const { object, ...rest } = event;
  return { put: keys.outside(session, n), header: { ...rest, object: object.header }, blobs: [object.bytes] };
}

export function outsideOf(record: StoredRecord<unknown>): OutsideEvent {
  const header = record.header as { type: string; object?: ObjectHeader };
  if (header.object === undefined) return header as OutsideEvent;
  const object = { header: header.object, bytes: record.blobs[0] ?? new Uint8Array(0) };
  return { ...(header as unknown as Extract<OutsideEvent, { type: 'object' }>), object };
}

/** What `GET /v1/sessions/{id}` shows. */
export function recordOf(session: Session): SessionRecord {
  const { spec, end } = session;
  const error = end?.error ?? session.parkError;
  const payload = session.outcome?.ok === true ? session.outcome.payload : undefined;
  return {
    session: session.id,
    app: spec.app,
    version: spec.version,
    function: spec.entries[0]?.function ?? '',
    state: stateOf(session),
    ...(payload === undefined ? {} : { result: shown(session.id, payload) }),
    ...(error === undefined ? {} : { error }),
    tags: spec.tags,
    causes: spec.causes,
    ...(spec.causesCount === undefined ? {} : { causesCount: spec.causesCount }),
    unfired: end?.unfired ?? [],
    startedAt: new Date(session.startedAtMs).toISOString(),
    ...(session.endedAtMs === undefined ? {} : { endedAt: new Date(session.endedAtMs).toISOString() }),
    counts: end?.counts ?? NO_COUNTS,
    meteredMs: end?.meteredMs ?? 0,
    ...(spec.retryOf === undefined ? {} : { retryOf: spec.retryOf }),
    ...(spec.forkOf === undefined ? {} : { forkOf: spec.forkOf }),
  };
}

export function stateOf({ end, phase }: Session): SessionState {
  return end?.state ?? (phase === 'parked' ? 'parked' : 'running');
}

/** Milliseconds of monotonic time until a wall-clock time. */
export function monotonicOf(atMs: number, now: { monotonicMs: number; epochMs: number }): MonotonicMs {
  return (now.monotonicMs + Math.max(0, atMs - now.epochMs)) as MonotonicMs;
}

function shown(session: string, payload: Payload): unknown {
  const { bytes, contentType } = payload;
  if (bytes.length > RECORD_RESULT_BYTES_MAX) {
    return { href: `/v1/sessions/${session}/result`, size: bytes.length, contentType };
  }
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isJsonType(contentType)) {
    try {
      return JSON.parse(buffer.toString());
    } catch {
      // It claims to be JSON and is not: shown as the bytes that it is.
    }
  }
  return { base64: buffer.toString('base64') };
}

/** 14 digits hold wall-clock milliseconds for three thousand years. */
function padded(n: number): string {
  return String(n).padStart(14, '0');
}
