// What clients ask of sessions and objects: checks every request and hands it to the coordinator.

import { fromErrorData, type MonotonicMs, nearMiss, PlatformError, parseSessionId } from '../../base/index.ts';
import {
  INPUT_BUCKET,
  type Manifest,
  type ObjectRange,
  type OutputEvent,
  type Payload,
  type PutObjectRequest,
  type SessionRecord,
  type SessionState,
  type SessionTrace,
  type StartedSession,
  type StartRequest,
  type SyncOutcome,
} from '../../protocol/index.ts';
import { newestFirst, outcomeOf } from './archive.ts';
import type { Coordinator } from './coordinator.ts';
import {
  ENTRIES_MAX,
  IDEMPOTENCY_KEY_CHARS_MAX,
  IDEMPOTENCY_WINDOW_MS,
  LIST_LIMIT_MAX,
  OBJECT_NAME_CHARS_MAX,
  OPEN_IDLE_TIMEOUT_MS,
  OUTSIDE_OBJECTS_MAX,
  TAG_CHARS_MAX,
  TAGS_MAX,
} from './limits.ts';
import type { CurrentApp } from './ports.ts';
import type { RecordChange } from './record-store.ts';
import type { OutsideEvent, Session, SessionEntry, SessionSpec, StoredObject } from './session.ts';
import { keys, outsideChange, recordOf, sessionChange } from './session-codec.ts';

/** Longest wait of one `/result` request. */
const RESULT_WAIT_MS_MAX = 600_000;
/** How long a cancellation waits to see the session end, before it is answered anyway. */
const CANCEL_WAIT_MS = 2_000;
const NO_TAGS: Readonly<Record<string, string>> = {};
const NO_CAUSES: readonly string[] = [];

interface Key {
  readonly scope: string;
  readonly digest: string;
}

export class Door {
  readonly #coordinator: Coordinator;

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
  }

  /** The fast path is a sync start without a key: nothing is awaited, nothing written (CO2). */
  startSession(request: StartRequest): Promise<StartedSession> {
    try {
      const app = this.#open(request.app);
      const first = request.entries[0];
      if (first === undefined || request.entries.length > ENTRIES_MAX) {
        throw new PlatformError('E_REQUEST_INVALID', `A session has 1 to ${ENTRIES_MAX} entries.`);
      }
      for (const entry of request.entries) assertFunction(request.app, app.manifest, entry.function);
      const key = request.idempotencyKey === undefined ? undefined : this.#keyOf(request, request.idempotencyKey);
      const durable = request.durability !== 'none' && (request.mode === 'async' || key !== undefined);
      const spec = this.#specOf(request, app, durable, key);
      if (request.mode === 'sync' && key === undefined && request.delayMs === undefined) {
        const session = this.#admit(spec);
        this.#coordinator.accept(session);
        return Promise.resolve({ session: session.id, outcome: this.#coordinator.waits.outcomeOf(session) });
      }
      return this.#startKept(request, app, spec);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #startKept(request: StartRequest, app: CurrentApp, spec: SessionSpec): Promise<StartedSession> {
    const joined = await this.#join(spec.idempotency);
    if (joined !== undefined) return joined;
    if (request.mode === 'async') {
      for (const { function: name, input } of request.entries) {
        if (input === undefined || app.manifest.functions[name]?.options?.input !== true) continue;
        await this.#validate(request.app, app.version, { function: name }, input);
      }
      this.#assertAccepting();
    }
    // Another request with the same key may have come meanwhile; from here to `accept` nothing is awaited.
    if (spec.idempotency !== undefined && this.#startedWith(spec.idempotency.scope) !== undefined) {
      return this.#startKept(request, app, spec);
    }
    const delayed = request.delayMs !== undefined && request.delayMs > 0;
    const session = this.#admit(spec, delayed);
    const written = this.#writeStart(session, request.delayMs);
    this.#accept(session, delayed ? request.delayMs : undefined);
    const outcome = this.#coordinator.waits.outcomeOf(session);
    // A sync answer waits for the end's record instead, which is written behind this one.
    if (request.mode === 'async') await written;
    return { session: session.id, outcome };
  }

  #accept(session: Session, delayMs?: number): void {
    const { monotonicMs } = this.#coordinator.now();
    if (delayMs === undefined) this.#coordinator.accept(session);
    else this.#coordinator.accept(session, (monotonicMs + delayMs) as MonotonicMs);
  }

  #writeStart(session: Session, delayMs?: number): Promise<void> {
    if (!session.spec.durable) return Promise.resolve();
    const { epochMs } = this.#coordinator.ports.clock;
    const dueAtMs = delayMs === undefined || delayMs <= 0 ? undefined : epochMs() + delayMs;
    const changes: RecordChange[] = [sessionChange(session, dueAtMs)];
    for (const [n, event] of (session.outside ?? []).entries()) changes.push(outsideChange(session.id, n, event));
    const { idempotency } = session.spec;
    if (idempotency !== undefined) {
      const header = { session: session.id, digest: idempotency.digest, atMs: session.startedAtMs };
      changes.push({ put: keys.idempotency(idempotency.scope), header });
    }
    return this.#coordinator.writes.write(session, changes);
  }

  /** The session that the same key started before; refuses another body. */
  async #join(key: Key | undefined): Promise<StartedSession | undefined> {
    if (key === undefined) return undefined;
    const session = await this.#find(key);
    if (session === undefined) return undefined;
    await this.#coordinator.writes.written(session.id);
    if (session.phase === 'ended' && session.outcome !== undefined) {
      this.#assertKept(session.id);
      return { session: session.id, outcome: Promise.resolve(session.outcome) };
    }
    return { session: session.id, outcome: this.#coordinator.waits.outcomeOf(session) };
  }

  async #find({ scope, digest }: Key): Promise<Session | undefined> {
    const { ports, archive, table } = this.#coordinator;
    const oldestMs = ports.clock.epochMs() - IDEMPOTENCY_WINDOW_MS;
    const known = this.#startedWith(scope);
    if (known !== undefined) {
      if (known.spec.idempotency?.digest !== digest) throw mismatch(known.id);
      return known;
    }
    const record = ports.records.peek<{ session: string; digest: string; atMs: number }>(keys.idempotency(scope));
    if (record === undefined || record.header.atMs < oldestMs) return undefined;
    if (record.header.digest !== digest) throw mismatch(record.header.session);
    return table.get(record.header.session) ?? (await archive.load(record.header.session));
  }

  /** In memory and within the window. */
  #startedWith(scope: string): Session | undefined {
    const session = this.#coordinator.startedWith(scope);
    const oldestMs = this.#coordinator.ports.clock.epochMs() - IDEMPOTENCY_WINDOW_MS;
    return session === undefined || session.startedAtMs < oldestMs ? undefined : session;
  }

  #keyOf(request: StartRequest, idempotencyKey: string): Key {
    if (idempotencyKey.length === 0 || idempotencyKey.length > IDEMPOTENCY_KEY_CHARS_MAX) {
      const detail = `An idempotency key has 1 to ${IDEMPOTENCY_KEY_CHARS_MAX} characters.`;
      throw new PlatformError('E_REQUEST_INVALID', detail);
    }
    const parts: (string | Uint8Array)[] = [];
    for (const { function: name, input } of request.entries) {
      parts.push(name, input?.contentType ?? '', input?.bytes ?? '');
    }
    const scope = `${request.app}/${request.entries[0]?.function ?? ''}/${idempotencyKey}`;
    return { scope, digest: this.#coordinator.ports.digest(parts) };
  }

  #specOf(request: StartRequest, app: CurrentApp, durable: boolean, key: Key | undefined): SessionSpec {
    const tags = request.tags ?? NO_TAGS;
    if (request.tags !== undefined) assertTags(request.tags);
    const spec: { -readonly [K in keyof SessionSpec]: SessionSpec[K] } = {
      app: request.app,
      version: app.version,
      entries: request.entries.map(entryOf),
      durable,
      detached: request.mode === 'async',
      priority: request.priority ?? 0,
      tags,
      causes: NO_CAUSES,
    };
    if (request.timeoutMs !== undefined) spec.timeoutMs = request.timeoutMs;
    if (key !== undefined) spec.idempotency = key;
    return spec;
  }

  /** @throws E_QUEUE_FULL when its app has too many sessions that have not ended. */
  #admit(spec: SessionSpec, delayed = false): Session {
    const session = this.#coordinator.create(spec, delayed);
    for (const { inputs } of spec.entries) for (const { header } of inputs) own(header, session.id);
    const refusal = this.#coordinator.table.refusal(spec.app, session.inputBytes, delayed);
    if (refusal !== undefined) {
      this.#coordinator.counters.refused++;
      throw new PlatformError('E_QUEUE_FULL', refusal.detail, { retryAfterMs: refusal.retryAfterMs });
    }
    return session;
  }

  async #validate(
    app: string,
    version: string,
    target: { readonly function: string } | { readonly bucket: string },
    payload: Payload,
  ): Promise<void> {
    const link = await this.#coordinator.link(app, version);
    const { contentType, bytes } = payload;
    await link.request({ type: 'validate', target, payload: { contentType, size: bytes.length } }, [bytes]);
  }

  // ── Objects from outside ──────────────────────────────────────────────────────────────────────────────────────

  async putObject(request: PutObjectRequest): Promise<{ session: string; duplicate: boolean }> {
    const app = this.#open(request.app);
    const { bucket, name, payload } = request;
    assertBucket(request.app, app.manifest, bucket);
    if (name.length === 0 || name.length > OBJECT_NAME_CHARS_MAX) {
      throw new PlatformError('E_REQUEST_INVALID', `An object's name has 1 to ${OBJECT_NAME_CHARS_MAX} characters.`);
    }
    const digest = this.#coordinator.ports.digest([request.group ?? '', payload.contentType, payload.bytes]);
    const event = (session: string): Extract<OutsideEvent, { type: 'object' }> => ({
      type: 'object',
      object: {
        header: {
          bucket,
          name,
          group: request.group ?? '',
          session,
          contentType: payload.contentType,
          size: payload.bytes.length,
        },
        bytes: payload.bytes,
      },
      digest,
    });
    if (request.session !== undefined) return this.#putInto(request.session, request, app, event(request.session));
    const key: Key = { scope: `${request.app}//${bucket}/${name}`, digest };
    const known = await this.#findPut(key, bucket, name);
    if (known !== undefined) return known;
    if (app.manifest.buckets[bucket]?.schema === true) {
      await this.#validate(request.app, app.version, { bucket }, payload);
      this.#assertAccepting();
    }
    if (this.#startedWith(key.scope) !== undefined) return this.putObject(request);
    const session = this.#admit({
      app: request.app,
      version: app.version,
      entries: [],
      durable: true,
      detached: true,
      priority: 0,
      tags: NO_TAGS,
      causes: NO_CAUSES,
      idempotency: key,
      ...(request.open === true ? { open: { idleTimeoutMs: request.idleTimeoutMs ?? OPEN_IDLE_TIMEOUT_MS } } : {}),
    });
    const first = event(session.id);
    session.outside = [first];
    session.outsideCount = 1;
    const written = this.#writeStart(session);
    const given = this.#give(session, first.object);
    this.#accept(session);
    await Promise.all([written, given]);
    return { session: session.id, duplicate: false };
  }

  async #findPut(key: Key, bucket: string, name: string): Promise<{ session: string; duplicate: boolean } | undefined> {
    try {
      const session = await this.#find(key);
      if (session === undefined) return undefined;
      await this.#coordinator.writes.written(session.id);
      return { session: session.id, duplicate: true };
    } catch (error) {
      if (!(error instanceof PlatformError) || error.code !== 'E_IDEMPOTENCY_MISMATCH') throw error;
      throw exists(bucket, name);
    }
  }

  async #putInto(
    id: string,
    request: PutObjectRequest,
    app: CurrentApp,
    event: Extract<OutsideEvent, { type: 'object' }>,
  ): Promise<{ session: string; duplicate: boolean }> {
    const { bucket, name, payload } = request;
    const session = await this.#session(id);
    if (session.spec.app !== request.app) throw unknownSession(id);
    const known = session.outsideObject(bucket, name);
    if (known !== undefined) {
      if (known.digest !== event.digest) throw exists(bucket, name);
      await this.#coordinator.writes.written(id);
      return { session: id, duplicate: true };
    }
    this.#assertTakes(session);
    if (app.manifest.buckets[bucket]?.schema === true) {
      await this.#validate(request.app, session.spec.version, { bucket }, payload);
      // The same object may have come while the validator ran.
      if (session.outsideObject(bucket, name) !== undefined) return this.#putInto(id, request, app, event);
    }
    const duplicate = await this.#outside(session, event, async () => {
      const link = this.#coordinator.linkOf(session.spec.app, session.spec.version);
      if (link === undefined || session.phase !== 'running') return false; // it rides in the next session-start
      const { object } = event;
      const { reply } = await link.request({ type: 'session-put', session: id, object: object.header }, [object.bytes]);
      return reply.duplicate === true;
    });
    await this.#give(session, event.object);
    return { session: id, duplicate };
  }

  /** Remembers an event from outside for the next execution, tells the host, and keeps it if the session is kept. */
  async #outside<T>(session: Session, event: OutsideEvent, tell: () => Promise<T>): Promise<T> {
    this.#assertTakes(session);
    session.outside ??= [];
    if (session.outside.length >= OUTSIDE_OBJECTS_MAX) {
      throw new PlatformError(
        'E_QUOTA_EXCEEDED',
        `A session takes at most ${OUTSIDE_OBJECTS_MAX} objects from outside.`,
      );
    }
    session.outside.push(event);
    const n = session.outsideCount++;
    try {
      const told = await tell();
      if (session.spec.durable) {
        await this.#coordinator.writes.write(session, [outsideChange(session.id, n, event)]);
      }
      return told;
    } catch (error) {
      // The host that died will be told again by the next session-start; every other refusal is final.
      if (error instanceof PlatformError && error.code === 'E_NODE_LOST' && isLive(session)) {
        if (session.spec.durable) await this.#coordinator.writes.write(session, [outsideChange(session.id, n, event)]);
        return undefined as T;
      }
      session.outside = session.outside.filter((other) => other !== event);
      throw error;
    }
  }

  #give(session: Session, object: StoredObject): Promise<void> | undefined {
    const written = this.#coordinator.firings.take(session, session.spec.version, object, session.spec.durable);
    // It may have ended while the host answered: then nobody else will say that its objects cannot come again.
    if (session.phase === 'ended') this.#coordinator.triggers.sessionEnded(session.spec.app, session.id);
    return written;
  }

  async closeGroup(id: string, bucket: string): Promise<void> {
    const session = await this.#session(id);
    const { app, version } = session.spec;
    this.#assertTakes(session);
    assertBucket(app, this.#open(app).manifest, bucket);
    this.#coordinator.firings.closeGroup(app, version, bucket);
    await this.#outside(session, { type: 'close', bucket }, async () => {
      const link = this.#coordinator.linkOf(app, version);
      if (link === undefined || session.phase !== 'running') return;
      await link.request({ type: 'session-close', session: id, bucket });
    });
  }

  async join(id: string, bucket: string, join: { names?: readonly string[]; count?: number }): Promise<void> {
    const session = await this.#session(id);
    const { app, version } = session.spec;
    this.#assertTakes(session);
    assertBucket(app, this.#open(app).manifest, bucket);
    await this.#outside(session, { type: 'join', bucket, ...join }, async () => {
      const link = this.#coordinator.linkOf(app, version);
      if (link === undefined || session.phase !== 'running') return;
      await link.request({ type: 'session-join', session: id, bucket, ...join });
    });
  }

  /** @param range `end` is the last byte, included. */
  async getObject(
    app: string,
    bucket: string,
    name: string,
    session?: string,
    range?: { start: number; end?: number },
  ): Promise<ObjectRange> {
    const current = this.#open(app, true);
    if (bucket !== INPUT_BUCKET && !bucket.startsWith('$')) assertBucket(app, current.manifest, bucket);
    if (session === undefined) return this.#coordinator.persisted.get(app, bucket, name, range);
    const found = await this.#session(session);
    if (found.spec.app !== app) throw unknownSession(session);
    // What is here goes first: the host may have ended the session already, although its message is still on the way.
    const payload =
      found.outputs.find((output) => output.bucket === bucket && output.name === name)?.payload ??
      payloadOf(found.outsideObject(bucket, name)?.object);
    if (payload !== undefined) {
      const { bytes, contentType } = payload;
      const end = range?.end === undefined ? bytes.length : range.end + 1;
      return { payload: { contentType, bytes: bytes.subarray(range?.start ?? 0, end) }, size: bytes.length };
    }
    const link = this.#coordinator.linkOf(app, found.spec.version);
    if (found.phase !== 'running' || link === undefined) {
      throw new PlatformError('E_OBJECT_GONE', `The objects of session '${session}' were freed when it ended.`);
    }
    const { reply, blobs } = await link.request({
      type: 'object-get',
      session,
      bucket,
      name,
      ...(range === undefined ? {} : { range: exclusive(range) }),
    });
    const { contentType, size } = reply.payload ?? { contentType: '', size: 0 };
    return { payload: { contentType, bytes: blobs[0] ?? new Uint8Array(0) }, size };
  }

  // ── Looking at sessions ───────────────────────────────────────────────────────────────────────────────────────

  async getSession(id: string): Promise<SessionRecord> {
    return recordOf(await this.#session(id));
  }

  async sessionResult(id: string, waitMs: number, signal?: AbortSignal): Promise<SyncOutcome | undefined> {
    const session = await this.#session(id);
    if (session.outcome !== undefined) {
      this.#assertKept(id);
      return this.#coordinator.waits.outcomeOf(session);
    }
    if (session.phase === 'ended') return outcomeOf(session);
    if (waitMs <= 0) return undefined;
    const { clock, timers } = this.#coordinator.ports;
    const untilMs = (clock.monotonicMs() + Math.min(waitMs, RESULT_WAIT_MS_MAX)) as MonotonicMs;
    return new Promise((resolve) => {
      const give = (outcome: SyncOutcome | undefined) => {
        cancel();
        signal?.removeEventListener('abort', nothing);
        resolve(outcome);
      };
      const nothing = () => give(undefined);
      const cancel = timers.set(untilMs, nothing);
      if (signal?.aborted) nothing();
      signal?.addEventListener('abort', nothing);
      void this.#coordinator.waits.outcomeOf(session).then(give);
    });
  }

  async trace(id: string): Promise<SessionTrace> {
    const session = await this.#session(id);
    const link = this.#coordinator.linkOf(session.spec.app, session.spec.version);
    if (link === undefined && session.phase !== 'ended') return { session: id, invocations: [] };
    if (link === undefined) {
      throw new PlatformError('E_OBJECT_GONE', `The trace of session '${id}' was freed with its app host.`);
    }
    const { reply } = await link.request({ type: 'trace-get', session: id });
    return reply.trace ?? { session: id, invocations: [] };
  }

  async *outputs(id: string, after: number, signal: AbortSignal): AsyncIterable<OutputEvent> {
    const session = await this.#session(id);
    if (session.phase === 'ended') this.#assertKept(id);
    let wake: () => void = () => {};
    const stop = this.#coordinator.waits.follow(id, () => wake());
    const aborted = () => wake();
    signal.addEventListener('abort', aborted);
    try {
      let next = Math.max(0, after);
      for (;;) {
        if (signal.aborted) return;
        const output = session.outputs[next];
        if (output !== undefined) {
          next++;
          yield output;
          continue;
        }
        if (session.phase === 'ended' || this.#coordinator.closed) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      stop();
      signal.removeEventListener('abort', aborted);
    }
  }

  async listSessions(query: {
    app?: string;
    state?: SessionState;
    tag?: readonly [string, string];
    limit: number;
    cursor?: string;
  }): Promise<{ sessions: readonly SessionRecord[]; cursor?: string }> {
    await this.#coordinator.waits.accounted(this.#coordinator.table.all());
    const limit = Math.min(Math.max(1, query.limit), LIST_LIMIT_MAX);
    const before = query.cursor === undefined ? undefined : cursorOf(query.cursor);
    if (query.app !== undefined) this.#open(query.app, true);
    const matches = (session: Session) =>
      (query.app === undefined || session.spec.app === query.app) &&
      (query.state === undefined || (session.end?.state ?? 'running') === query.state) &&
      (query.tag === undefined || session.spec.tags[query.tag[0]] === query.tag[1]) &&
      (before === undefined || newestFirst(session, before) > 0);
    const found: Session[] = [];
    if (query.state === undefined || query.state === 'running') {
      for (const session of this.#coordinator.table.all()) if (matches(session)) found.push(session);
    }
    if (query.state !== 'running') {
      let count = 0;
      for (const session of this.#coordinator.archive.list(before)) {
        if (!matches(session)) continue;
        found.push(session);
        if (++count > limit) break;
      }
    }
    found.sort(newestFirst);
    const page = found.slice(0, limit);
    const last = page.at(-1);
    const sessions = page.map(recordOf);
    if (found.length <= limit || last === undefined) return { sessions };
    return { sessions, cursor: Buffer.from(`${last.startedAtMs}:${last.id}`).toString('base64url') };
  }

  // ── Acting on sessions ────────────────────────────────────────────────────────────────────────────────────────

  /** Repeatable: one that has ended stays as it is. */
  async cancelSession(id: string): Promise<void> {
    const session = await this.#session(id);
    if (session.phase === 'ended') return;
    this.#coordinator.handle({
      type: 'cancel',
      session: id,
      error: { code: 'E_CANCELLED', message: 'The session was cancelled.' },
    });
    const { clock, timers } = this.#coordinator.ports;
    let cancel = () => {};
    const waited = new Promise<void>((resolve) => {
      cancel = timers.set((clock.monotonicMs() + CANCEL_WAIT_MS) as MonotonicMs, resolve);
    });
    await Promise.race([this.#coordinator.waits.ended(session), waited]);
    cancel();
    if (isEnded(session)) await this.#coordinator.writes.written(id);
  }

  async retrySession(id: string): Promise<{ session: string }> {
    return this.#again(await this.#session(id), 'retryOf');
  }

  async forkSession(id: string): Promise<{ session: string }> {
    return this.#again(await this.#session(id), 'forkOf');
  }

  /** A new session with the same inputs, on the current version. */
  async #again(old: Session, origin: 'retryOf' | 'forkOf'): Promise<{ session: string }> {
    const app = this.#open(old.spec.app);
    this.#assertKept(old.id);
    for (const entry of old.spec.entries) assertFunction(old.spec.app, app.manifest, entry.function);
    const { idempotency: _key, consumes: _held, retryOf: _retry, forkOf: _fork, entries, ...rest } = old.spec;
    const spec: SessionSpec = {
      ...rest,
      version: app.version,
      durable: true,
      detached: true,
      [origin]: old.id,
      entries: entries.map((entry) => ({
        function: entry.function,
        inputs: entry.inputs.map(({ header, bytes }) => ({
          header: header.session === old.id ? { ...header, session: '' } : header,
          bytes,
        })),
      })),
    };
    const session = this.#admit(spec);
    if (old.outside !== undefined) {
      session.outside = old.outside.map((event) =>
        event.type === 'object'
          ? { ...event, object: { ...event.object, header: { ...event.object.header, session: session.id } } }
          : event,
      );
      session.outsideCount = session.outside.length;
    }
    const written = this.#writeStart(session);
    this.#accept(session);
    await written;
    return { session: session.id };
  }

  // ── Checks ────────────────────────────────────────────────────────────────────────────────────────────────────

  #assertAccepting(): void {
    if (!this.#coordinator.accepting) {
      throw new PlatformError('E_SHUTTING_DOWN', 'The server is shutting down.', { retryAfterMs: 1_000 });
    }
  }

  /** @throws E_APP_UNKNOWN, E_SHUTTING_DOWN unless only `looking`. */
  #open(app: string, looking = false): CurrentApp {
    if (!looking) this.#assertAccepting();
    const current = this.#coordinator.ports.apps.current(app);
    if (current === undefined) throw unknownApp(app, this.#coordinator.ports.apps.names());
    return current;
  }

  /** Live or ended. @throws E_SESSION_UNKNOWN, E_SESSION_LOST. */
  async #session(id: string): Promise<Session> {
    const live = this.#coordinator.table.get(id);
    if (live?.settled === true) await this.#coordinator.waits.accounted([live]);
    const session = this.#coordinator.table.get(id) ?? (await this.#coordinator.archive.load(id));
    if (session !== undefined) return session;
    const parsed = parseSessionId(id);
    if (parsed !== undefined && parsed.durability === 'e' && parsed.bootEpoch < this.#coordinator.bootEpoch) {
      const detail = `Session '${id}' was not durable and is gone since the server restarted. Start it again if need be.`;
      throw new PlatformError('E_SESSION_LOST', detail);
    }
    throw unknownSession(id);
  }

  #assertTakes(session: Session): void {
    if (isLive(session)) return;
    throw new PlatformError('E_SESSION_ENDED', `Session '${session.id}' has ended and takes nothing more.`);
  }

  #assertKept(id: string): void {
    if (!this.#coordinator.archive.isStripped(id)) return;
    const detail = `The payloads of session '${id}' were too large to be kept after its end; start it with mode=async for that.`;
    throw new PlatformError('E_OBJECT_GONE', detail);
  }
}

/** @throws E_APP_UNKNOWN with the name that was probably meant. */
export function unknownApp(app: string, names: Iterable<string>): PlatformError {
  return unknown('E_APP_UNKNOWN', `There is no app '${app}'`, app, names);
}

export function assertFunction(app: string, manifest: Manifest, name: string): void {
  if (Object.hasOwn(manifest.functions, name)) return;
  throw unknown('E_FUNCTION_UNKNOWN', `App '${app}' has no function '${name}'`, name, Object.keys(manifest.functions));
}

export function assertBucket(app: string, manifest: Manifest, name: string): void {
  if (Object.hasOwn(manifest.buckets, name)) return;
  throw unknown('E_BUCKET_UNKNOWN', `App '${app}' has no bucket '${name}'`, name, Object.keys(manifest.buckets));
}

function unknown(
  code: 'E_APP_UNKNOWN' | 'E_FUNCTION_UNKNOWN' | 'E_BUCKET_UNKNOWN',
  what: string,
  name: string,
  known: Iterable<string>,
): PlatformError {
  const didYouMean = nearMiss(name, known);
  if (didYouMean === undefined) return new PlatformError(code, `${what}.`);
  return new PlatformError(code, `${what}. Did you mean '${didYouMean}'?`, { details: { didYouMean } });
}

function unknownSession(id: string): PlatformError {
  return new PlatformError('E_SESSION_UNKNOWN', `There is no session '${id}', or its record is no longer kept.`);
}

function mismatch(session: string): PlatformError {
  return fromErrorData({
    code: 'E_IDEMPOTENCY_MISMATCH',
    message: `This idempotency key started session '${session}' with another body. Use a new key for a new request.`,
    details: { session },
  });
}

function exists(bucket: string, name: string): PlatformError {
  return new PlatformError('E_OBJECT_EXISTS', `Bucket '${bucket}' has an object '${name}' with other content.`);
}

function entryOf({ function: name, input }: StartRequest['entries'][number], index: number): SessionEntry {
  if (input === undefined) return { function: name, inputs: [] };
  const { contentType, bytes } = input;
  const header = { bucket: INPUT_BUCKET, name: String(index), group: '', session: '', contentType, size: bytes.length };
  return { function: name, inputs: [{ header, bytes }] };
}

/** An input made before its session had an id gets it now; nobody else has seen it. */
function own(header: { readonly session: string }, session: string): void {
  if (header.session === '') (header as { session: string }).session = session;
}

function payloadOf(object: StoredObject | undefined): Payload | undefined {
  return object === undefined ? undefined : { contentType: object.header.contentType, bytes: object.bytes };
}

/** Among hosts the end of a range is the first byte behind it. */
function exclusive(range: { start: number; end?: number }): { start: number; end?: number } {
  return range.end === undefined ? range : { start: range.start, end: range.end + 1 };
}

function isLive(session: Session): boolean {
  return session.phase !== 'ended' && session.phase !== 'cancelling';
}

/** Apart from a comparison, so that the compiler does not take the phase of before an await for granted. */
function isEnded(session: Session): boolean {
  return session.phase === 'ended';
}

function assertTags(tags: Readonly<Record<string, string>>): void {
  const entries = Object.entries(tags);
  if (entries.length <= TAGS_MAX && entries.every(([k, v]) => k.length <= TAG_CHARS_MAX && v.length <= TAG_CHARS_MAX)) {
    return;
  }
  throw new PlatformError(
    'E_REQUEST_INVALID',
    `A session has at most ${TAGS_MAX} tags of ${TAG_CHARS_MAX} characters.`,
  );
}

function cursorOf(cursor: string): { startedAtMs: number; id: string } {
  const [startedAtMs, id] = Buffer.from(cursor, 'base64url').toString().split(':');
  if (id === undefined || !/^\d{1,14}$/.test(startedAtMs ?? '')) {
    throw new PlatformError('E_REQUEST_INVALID', 'The cursor is not one that this list gave.');
  }
  return { startedAtMs: Number(startedAtMs), id };
}
