// What clients ask of sessions and objects: checks every request and hands it to the coordinator.
//
// Owns: starting, cancelling, retrying and forking sessions.
// Does not own: objects from outside (OutsideObjects), looking (SessionLook), dead letters (LetterDoor), what comes of a
// session (Coordinator).

import { type ErrorData, type MonotonicMs, PlatformError } from '../../base/index.ts';
import {
  INPUT_BUCKET,
  type ObjectSource,
  type OutputEvent,
  type PersistedInfo,
  type PutObjectRequest,
  type SessionRecord,
  type SessionTrace,
  type StartedSession,
  type StartRequest,
  type SyncOutcome,
} from '../../protocol/index.ts';
import type { Coordinator } from './coordinator.ts';
import {
  assertAccepting,
  assertBucket,
  assertFunction,
  assertKept,
  assertTags,
  findSession,
  openApp,
} from './door-checks.ts';
import { LetterDoor } from './letter-door.ts';
import { ENTRIES_MAX, IDEMPOTENCY_KEY_CHARS_MAX } from './limits.ts';
import { OutsideObjects } from './outside-objects.ts';
import type { CurrentApp } from './ports.ts';
import type { Session, SessionEntry, SessionSpec } from './session.ts';
import { SessionLook, type SessionQuery } from './session-look.ts';
import { type Key, NO_CAUSES, NO_TAGS, SessionStarts } from './session-starts.ts';

/** How long a cancellation waits to see the session end, before it is answered anyway. */
const CANCEL_WAIT_MS = 2_000;

export class Door {
  readonly #coordinator: Coordinator;
  readonly #starts: SessionStarts;
  readonly #outside: OutsideObjects;
  readonly #look: SessionLook;
  readonly letters: LetterDoor;

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
    this.#starts = new SessionStarts(coordinator);
    this.#outside = new OutsideObjects(coordinator, this.#starts);
    this.#look = new SessionLook(coordinator);
    this.letters = new LetterDoor(coordinator, this.#starts);
  }

  // ── Starting ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** The fast path is a sync start without a key: nothing is awaited, nothing written (CO2). */
  startSession(request: StartRequest): Promise<StartedSession> {
    try {
      const app = openApp(this.#coordinator, request.app);
      const first = request.entries[0];
      if (first === undefined || request.entries.length > ENTRIES_MAX) {
        throw new PlatformError('E_REQUEST_INVALID', `A session has 1 to ${ENTRIES_MAX} entries.`);
      }
      for (const entry of request.entries) assertFunction(request.app, app.manifest, entry.function);
      const key = request.idempotencyKey === undefined ? undefined : this.#keyOf(request, request.idempotencyKey);
      const durable = request.durability !== 'none' && (request.mode === 'async' || key !== undefined);
      const spec = this.#specOf(request, app, durable, key);
      if (request.mode === 'sync' && key === undefined && request.delayMs === undefined) {
        const session = this.#starts.admit(spec);
        this.#coordinator.accept(session);
        return Promise.resolve({ session: session.id, outcome: this.#coordinator.waits.outcomeOf(session) });
      }
      return this.#startKept(request, app, spec);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Why a session with one entry would be refused now, before anything of it is read; undefined: it would not. One with an
   * idempotency key may have been accepted before: it is not asked for.
   */
  refusal(app: string, inputBytes: number): ErrorData | undefined {
    return this.#starts.refusal(app, inputBytes, 1, false);
  }

  async #startKept(request: StartRequest, app: CurrentApp, spec: SessionSpec): Promise<StartedSession> {
    const joined = await this.#join(spec.idempotency);
    if (joined !== undefined) return joined;
    if (request.mode === 'async') {
      for (const { function: name, input } of request.entries) {
        if (input === undefined || app.manifest.functions[name]?.options?.input !== true) continue;
        await this.#starts.validate(request.app, app.version, { function: name }, input);
      }
      assertAccepting(this.#coordinator);
    }
    // Another request with the same key may have come meanwhile; from here to `accept` nothing is awaited.
    if (spec.idempotency !== undefined && this.#starts.startedWith(spec.idempotency.scope) !== undefined) {
      return this.#startKept(request, app, spec);
    }
    const delayed = request.delayMs !== undefined && request.delayMs > 0;
    const session = this.#starts.admit(spec, delayed);
    const written = this.#starts.writeStart(session, request.delayMs);
    this.#starts.accept(session, delayed ? request.delayMs : undefined);
    const outcome = this.#coordinator.waits.outcomeOf(session);
    // A sync answer waits for the end's record instead, which is written behind this one.
    if (request.mode !== 'async') written.catch(() => {});
    else await written.catch((error) => this.#refused(session, error));
    return { session: session.id, outcome };
  }

  /** Whoever repeats it without a key would have it done twice; with one, they join it. */
  #refused(session: Session, error: unknown): never {
    if (session.spec.idempotency === undefined) this.#starts.giveUp(session, error);
    throw error;
  }

  /** The session that the same key started before; refuses another body. */
  async #join(key: Key | undefined): Promise<StartedSession | undefined> {
    if (key === undefined) return undefined;
    const session = await this.#starts.find(key);
    if (session === undefined) return undefined;
    await this.#starts.kept(session);
    if (session.phase === 'ended' && session.outcome !== undefined) {
      assertKept(this.#coordinator, session.id);
      return { session: session.id, outcome: Promise.resolve(session.outcome) };
    }
    return { session: session.id, outcome: this.#coordinator.waits.outcomeOf(session) };
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

  // ── Acting on sessions ────────────────────────────────────────────────────────────────────────────────────────

  /** Repeatable: one that has ended stays as it is. */
  async cancelSession(id: string): Promise<void> {
    const session = await findSession(this.#coordinator, id);
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

  /** One that is parked goes on: it is executed again under its id. Else a new one with the same inputs. */
  async retrySession(id: string): Promise<{ session: string }> {
    const session = await findSession(this.#coordinator, id);
    if (session.phase !== 'parked') return this.#starts.again(session, { retryOf: id });
    assertAccepting(this.#coordinator);
    this.#coordinator.handle({ type: 'resume', session: id });
    return { session: id };
  }

  async forkSession(id: string): Promise<{ session: string }> {
    return this.#starts.again(await findSession(this.#coordinator, id), { forkOf: id });
  }

  // ── Objects from outside ──────────────────────────────────────────────────────────────────────────────────────

  putObject(request: PutObjectRequest): Promise<{ session: string; duplicate: boolean }> {
    return this.#outside.putObject(request);
  }

  closeGroup(id: string, bucket: string): Promise<void> {
    return this.#outside.closeGroup(id, bucket);
  }

  join(id: string, bucket: string, join: { names?: readonly string[]; count?: number }): Promise<void> {
    return this.#outside.join(id, bucket, join);
  }

  // ── Looking ───────────────────────────────────────────────────────────────────────────────────────────────────

  openObject(
    app: string,
    bucket: string,
    name: string,
    session: string | undefined,
    first: { start: number; end: number },
  ): Promise<ObjectSource> {
    return this.#look.openObject(app, bucket, name, session, first);
  }

  /** Of persisted objects. */
  async deleteObject(app: string, bucket: string, name: string): Promise<void> {
    assertBucket(app, openApp(this.#coordinator, app).manifest, bucket);
    await this.#coordinator.persisted.delete(app, bucket, name);
  }

  async listObjects(
    app: string,
    bucket: string,
    query: { prefix?: string; limit: number; cursor?: string },
  ): Promise<{ objects: readonly PersistedInfo[]; cursor?: string }> {
    assertBucket(app, openApp(this.#coordinator, app, true).manifest, bucket);
    const { prefix = '', limit, cursor } = query;
    const after = cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString();
    const objects = this.#coordinator.persisted.list(app, bucket, prefix, after, limit + 1);
    const last = objects[limit - 1];
    if (objects.length <= limit || last === undefined) return { objects };
    return { objects: objects.slice(0, limit), cursor: Buffer.from(last.name).toString('base64url') };
  }

  getSession(id: string): Promise<SessionRecord> {
    return this.#look.getSession(id);
  }

  sessionResult(id: string, waitMs: number, signal?: AbortSignal): Promise<SyncOutcome | undefined> {
    return this.#look.sessionResult(id, waitMs, signal);
  }

  trace(id: string): Promise<SessionTrace> {
    return this.#look.trace(id);
  }

  outputs(id: string, after: number, signal: AbortSignal): AsyncIterable<OutputEvent> {
    return this.#look.outputs(id, after, signal);
  }

  listSessions(query: SessionQuery): Promise<{ sessions: readonly SessionRecord[]; cursor?: string }> {
    return this.#look.listSessions(query);
  }
}

function entryOf({ function: name, input }: StartRequest['entries'][number], index: number): SessionEntry {
  if (input === undefined) return { function: name, inputs: [] };
  const { contentType, bytes } = input;
  const header = { bucket: INPUT_BUCKET, name: String(index), group: '', session: '', contentType, size: bytes.length };
  return { function: name, inputs: [{ header, bytes }] };
}

/** Apart from a comparison, so that the compiler does not take the phase of before an await for granted. */
function isEnded(session: Session): boolean {
  return session.phase === 'ended';
}
