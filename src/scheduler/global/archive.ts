// What ended sessions leave behind.
//
// AR1. Durable sessions are on disk until SESSION_RETENTION_MS after their end; others in a ring bounded by count and
//      bytes. A session is in at most one of the two.
// AR2. An ended session's outcome is what a sync call got: its first output, else its error, else its result.

import { Fifo, type PlatformError } from '../../base/index.ts';
import type { ObjectSource, SessionTrace, SyncOutcome } from '../../protocol/index.ts';
import { CONTENT_JSON, type OutputEvent } from '../../protocol/index.ts';
import {
  ENDED_BYTES_MAX,
  ENDED_SESSION_BYTES_MAX,
  ENDED_SESSIONS_MAX,
  SESSION_RETENTION_MS,
  SWEEP_BATCH,
} from './limits.ts';
import type { RecordChange, RecordStore, StoredRecord } from './record-store.ts';
import { Session } from './session.ts';
import { keys, outputOf, sessionChange, sessionOf } from './session-codec.ts';

interface RingEntry {
  readonly session: Session;
  bytes: number;
  /** JSON of its SessionTrace, when the host has told it. */
  trace: Uint8Array | undefined;
  /** Its payloads were too large to keep. */
  readonly stripped: boolean;
}

const NULL_BYTES = new TextEncoder().encode('null');

interface OutputHeader {
  readonly bucket: string;
  readonly name: string;
  readonly contentType: string;
}

export class Archive {
  readonly #records: RecordStore;
  readonly #ring = new Map<string, RingEntry>();
  /** Its keys, oldest first: a Map from which the first entry is taken again and again gets slow. */
  readonly #order = new Fifo<string>(Number.POSITIVE_INFINITY);
  #ringBytes = 0;
  #traceCount = 0;
  /** Durable, and what they need was damaged while no server ran: they are neither executed nor forgotten. */
  readonly damaged = new Map<string, PlatformError>();
  /** Ended, on their way to the disk. */
  readonly #onTheWay = new Map<string, Session>();

  constructor(records: RecordStore) {
    this.#records = records;
  }

  /** Keeps a session that ended and is not durable. @returns those that were pushed out. */
  keep(session: Session): Session[] {
    let bytes = session.inputBytes + 512 + (session.end?.result?.bytes.length ?? 0);
    for (const output of session.outputs) bytes += output.payload.bytes.length + 128;
    for (const event of session.outside ?? []) if (event.type === 'object') bytes += event.object.bytes.length;
    const stripped = bytes > ENDED_SESSION_BYTES_MAX;
    if (stripped) bytes = 512;
    this.#ring.set(session.id, { session: stripped ? strip(session) : session, bytes, stripped, trace: undefined });
    this.#ringBytes += bytes;
    this.#order.push(session.id);
    return this.#pushOut();
  }

  /** The trace of a session in the ring. @returns those that were pushed out. */
  keepTrace(id: string, trace: Uint8Array): Session[] {
    const entry = this.#ring.get(id);
    if (entry === undefined || entry.trace !== undefined) return [];
    entry.trace = trace;
    this.#traceCount++;
    entry.bytes += trace.length;
    this.#ringBytes += trace.length;
    return this.#pushOut();
  }

  /** What was kept of the trace of an ended session. */
  async trace(id: string): Promise<SessionTrace | undefined> {
    const bytes = this.#ring.get(id)?.trace ?? (await this.#records.read(keys.trace(id)))?.blobs[0];
    return bytes === undefined ? undefined : (JSON.parse(new TextDecoder().decode(bytes)) as SessionTrace);
  }

  #pushOut(): Session[] {
    const out: Session[] = [];
    while (this.#ring.size > ENDED_SESSIONS_MAX || this.#ringBytes > ENDED_BYTES_MAX) {
      const id = this.#order.shift();
      if (id === undefined) break;
      const entry = this.#ring.get(id);
      if (entry === undefined) continue; // went with its app
      this.#ring.delete(id);
      this.#ringBytes -= entry.bytes;
      if (entry.trace !== undefined) this.#traceCount--;
      out.push(entry.session);
    }
    return out;
  }

  /** Changes that make the end of a durable session durable. */
  changesOf(session: Session): RecordChange[] {
    this.#onTheWay.set(session.id, session);
    const trace = session.end?.trace;
    return [
      sessionChange(session),
      { put: keys.ended(session.startedAtMs, session.id), header: { endedAtMs: session.endedAtMs } },
      ...(trace === undefined ? [] : [{ put: keys.trace(session.id), header: null, blobs: [trace] }]),
    ];
  }

  arrived(session: Session): void {
    this.#onTheWay.delete(session.id);
  }

  /** In memory: the ring, and those on their way to the disk. */
  find(id: string): Session | undefined {
    return this.#onTheWay.get(id) ?? this.#ring.get(id)?.session;
  }

  /** Traces in the ring. */
  get traceCount(): number {
    return this.#traceCount;
  }

  isStripped(id: string): boolean {
    return this.#ring.get(id)?.stripped === true;
  }

  /** Also from disk, with all payloads. @throws E_CHECKSUM when they are not what was written. */
  async load(id: string): Promise<Session | undefined> {
    const found = this.find(id);
    if (found !== undefined) return found;
    const damage = this.damaged.get(id);
    if (damage !== undefined) throw damage;
    if (!id.startsWith('d')) return undefined;
    const record = await this.#records.read(keys.session(id));
    if (record === undefined) return undefined;
    const session = this.#restore(record, await this.#outputs(id));
    return session.phase === 'ended' ? session : undefined;
  }

  /** An output of a durable session that ended, without reading the others. Undefined: there is none of this name. */
  openOutput(app: string, id: string, bucket: string, name: string): ObjectSource | undefined {
    if (!id.startsWith('d')) return undefined;
    const record = this.#records.peek(keys.session(id));
    if (record === undefined || sessionOf(record).session.spec.app !== app) return undefined;
    for (const [key, { header }] of this.#records.forwards<OutputHeader>(`o/${id}/`)) {
      if (header.bucket !== bucket || header.name !== name) continue;
      const open = this.#records.open(key, 0);
      if (open === undefined) return undefined;
      return { ...open, contentType: header.contentType, version: `${id}.kept` };
    }
    return undefined;
  }

  /** Newest start first, below the cursor. Payloads may be missing. */
  *list(before: { startedAtMs: number; id: string } | undefined): Iterable<Session> {
    const memory = [...this.#onTheWay.values(), ...Array.from(this.#ring.values(), (entry) => entry.session)];
    memory.sort(newestFirst);
    const waiting = memory.filter((session) => before === undefined || newestFirst(session, before) > 0);
    const key = before === undefined ? undefined : keys.ended(before.startedAtMs, before.id);
    let next = 0;
    for (const [indexKey] of this.#records.backwards('x/', key)) {
      const id = indexKey.slice(indexKey.lastIndexOf('/') + 1);
      if (this.#onTheWay.has(id)) continue;
      const record = this.#records.peek(keys.session(id));
      if (record === undefined) continue;
      const session = this.#restore(record, this.#firstOutput(id));
      for (let one = waiting[next]; one !== undefined && newestFirst(one, session) < 0; one = waiting[next]) {
        yield one;
        next++;
      }
      yield session;
    }
    yield* waiting.slice(next);
  }

  /** Removes durable records past their retention. @returns how many. */
  async sweep(nowMs: number): Promise<number> {
    const changes: RecordChange[] = [];
    let count = 0;
    for (const [key, { header }] of this.#records.forwards<{ endedAtMs: number }>('x/')) {
      const [, startedAtMs = '', id = ''] = key.split('/');
      if (Number(startedAtMs) + SESSION_RETENTION_MS > nowMs) break;
      if (header.endedAtMs + SESSION_RETENTION_MS > nowMs) continue;
      changes.push(...this.#removal(id, key));
      if (++count >= SWEEP_BATCH) break;
    }
    if (changes.length > 0) await this.#records.write(changes);
    return count;
  }

  /** Forgets what sessions of an app left. */
  async removeApp(app: string): Promise<void> {
    for (const [id, entry] of this.#ring) {
      if (entry.session.spec.app !== app) continue;
      this.#ring.delete(id);
      this.#ringBytes -= entry.bytes;
      if (entry.trace !== undefined) this.#traceCount--;
    }
    const changes: RecordChange[] = [];
    for (const [key] of this.#records.forwards('x/')) {
      const id = key.slice(key.lastIndexOf('/') + 1);
      const record = this.#records.peek(keys.session(id));
      if (record === undefined || sessionOf(record).session.spec.app !== app) continue;
      changes.push(...this.#removal(id, key));
    }
    if (changes.length > 0) await this.#records.write(changes);
  }

  #removal(id: string, indexKey: string): RecordChange[] {
    const record = this.#records.peek(keys.session(id));
    const changes: RecordChange[] = [{ delete: indexKey }, { delete: keys.session(id) }, { delete: keys.trace(id) }];
    for (const prefix of [`o/${id}/`, `e/${id}/`]) {
      for (const key of this.#records.keys(prefix)) changes.push({ delete: key });
    }
    const scope = record === undefined ? undefined : sessionOf(record).session.spec.idempotency?.scope;
    if (scope === undefined) return changes;
    const owner = this.#records.peek<{ session: string }>(keys.idempotency(scope));
    if (owner?.header.session === id) changes.push({ delete: keys.idempotency(scope) });
    return changes;
  }

  async #outputs(id: string): Promise<OutputEvent[]> {
    const outputs: OutputEvent[] = [];
    for (const key of this.#records.keys(`o/${id}/`)) {
      const record = await this.#records.read(key);
      if (record !== undefined) outputs.push(outputOf(record));
    }
    return outputs;
  }

  #firstOutput(id: string): OutputEvent[] {
    for (const [, record] of this.#records.forwards(`o/${id}/`, 1)) return [outputOf(record)];
    return [];
  }

  #restore(record: StoredRecord<unknown>, outputs: readonly OutputEvent[]): Session {
    const { session } = sessionOf(record);
    for (const { bucket, name, payload } of outputs) session.addOutput(bucket, name, payload);
    if (session.end !== undefined) session.outcome = outcomeOf(session);
    return session;
  }
}

/** (AR2) */
export function outcomeOf(session: Session): SyncOutcome {
  const first = session.outputs[0];
  if (first !== undefined) return { ok: true, payload: first.payload };
  const { end } = session;
  if (end?.state === 'completed' && end.error === undefined) {
    return { ok: true, payload: end.result ?? { contentType: CONTENT_JSON, bytes: NULL_BYTES } };
  }
  return { ok: false, error: end?.error ?? { code: 'E_INTERNAL', message: 'the session ended without an error' } };
}

export function newestFirst(a: { startedAtMs: number; id: string }, b: { startedAtMs: number; id: string }): number {
  return b.startedAtMs - a.startedAtMs || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0);
}

function strip(session: Session): Session {
  const entries = session.spec.entries.map((entry) => ({ function: entry.function, inputs: [] }));
  const small = new Session(session.id, { ...session.spec, entries }, session.startedAtMs, false);
  small.move('ended');
  small.endedAtMs = session.endedAtMs;
  if (session.end !== undefined) {
    const { result: _result, ...end } = session.end;
    small.end = end;
  }
  if (session.outcome?.ok === false) small.outcome = session.outcome;
  return small;
}
