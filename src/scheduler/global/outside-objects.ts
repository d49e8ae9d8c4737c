// Objects, closes and joins that come from outside.
//
// Owns: which session an object goes to, repeats of the same object, what the next host is told again.
// Does not own: starting a session for it (SessionStarts), triggers (BucketTriggers, SessionMachine).

import { PlatformError } from '../../base/index.ts';
import type { PutObjectRequest } from '../../protocol/index.ts';
import type { Coordinator } from './coordinator.ts';
import {
  assertAccepting,
  assertBucket,
  assertTakes,
  findSession,
  isLive,
  openApp,
  unknownSession,
} from './door-checks.ts';
import { OBJECT_NAME_CHARS_MAX, OPEN_IDLE_TIMEOUT_MS, OUTSIDE_OBJECTS_MAX, RETRY_AFTER_MS_MIN } from './limits.ts';
import type { CurrentApp } from './ports.ts';
import type { OutsideEvent, Session, StoredObject } from './session.ts';
import { outsideChange } from './session-codec.ts';
import { type Key, NO_CAUSES, NO_TAGS, type SessionStarts } from './session-starts.ts';

export class OutsideObjects {
  readonly #coordinator: Coordinator;
  readonly #starts: SessionStarts;
  /** Puts that are not kept yet, and may still be refused. */
  readonly #underWay = new WeakMap<OutsideEvent, Promise<unknown>>();

  constructor(coordinator: Coordinator, starts: SessionStarts) {
    this.#coordinator = coordinator;
    this.#starts = starts;
  }

  async putObject(request: PutObjectRequest): Promise<{ session: string; duplicate: boolean }> {
    const app = openApp(this.#coordinator, request.app);
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
      await this.#starts.validate(request.app, app.version, { bucket }, payload);
      assertAccepting(this.#coordinator);
    }
    if (this.#starts.startedWith(key.scope) !== undefined) return this.putObject(request);
    const session = this.#starts.admit({
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
    const written = this.#starts.writeStart(session);
    const given = this.#give(session, first.object);
    this.#starts.accept(session);
    await Promise.all([written, given]);
    return { session: session.id, duplicate: false };
  }

  async closeGroup(id: string, bucket: string): Promise<void> {
    const session = await findSession(this.#coordinator, id);
    const { app, version } = session.spec;
    assertTakes(session);
    assertBucket(app, openApp(this.#coordinator, app).manifest, bucket);
    await this.#outside(session, { type: 'close', bucket }, async () => {
      const link = this.#coordinator.linkOf(app, version);
      if (link === undefined || session.phase !== 'running') return;
      await link.request({ type: 'session-close', session: id, bucket });
    });
    // A close that was refused closes nothing.
    this.#coordinator.firings.closeGroup(app, version, bucket);
  }

  async join(id: string, bucket: string, join: { names?: readonly string[]; count?: number }): Promise<void> {
    const session = await findSession(this.#coordinator, id);
    const { app, version } = session.spec;
    assertTakes(session);
    assertBucket(app, openApp(this.#coordinator, app).manifest, bucket);
    await this.#outside(session, { type: 'join', bucket, ...join }, async () => {
      const link = this.#coordinator.linkOf(app, version);
      if (link === undefined || session.phase !== 'running') return;
      await link.request({ type: 'session-join', session: id, bucket, ...join });
    });
  }

  async #findPut(key: Key, bucket: string, name: string): Promise<{ session: string; duplicate: boolean } | undefined> {
    try {
      const session = await this.#starts.find(key);
      if (session === undefined) return undefined;
      await this.#starts.kept(session);
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
    const session = await findSession(this.#coordinator, id);
    if (session.spec.app !== request.app) throw unknownSession(id);
    const known = session.outsideObject(bucket, name);
    if (known !== undefined) {
      if (known.digest !== event.digest) throw exists(bucket, name);
      // It repeats what is not kept yet: if that one is refused, this one takes its place.
      const first = this.#underWay.get(known);
      if (first !== undefined) await first.catch(() => undefined);
      if (session.outsideObject(bucket, name) !== known) return this.#putInto(id, request, app, event);
      await this.#coordinator.writes.written(id);
      return { session: id, duplicate: true };
    }
    assertTakes(session);
    if (app.manifest.buckets[bucket]?.schema === true) {
      await this.#starts.validate(request.app, session.spec.version, { bucket }, payload);
      // The same object may have come while the validator ran.
      if (session.outsideObject(bucket, name) !== undefined) return this.#putInto(id, request, app, event);
    }
    const put = this.#keep(session, event);
    this.#underWay.set(event, put);
    return { session: id, duplicate: await put };
  }

  /** @returns whether the host had it already: a function had sent the same. */
  async #keep(session: Session, event: Extract<OutsideEvent, { type: 'object' }>): Promise<boolean> {
    const duplicate = await this.#outside(session, event, async () => {
      const link = this.#coordinator.linkOf(session.spec.app, session.spec.version);
      if (link === undefined || session.phase !== 'running') return false; // it rides in the next session-start
      const { object } = event;
      const message = { type: 'session-put', session: session.id, object: object.header } as const;
      const { reply } = await link.request(message, [object.bytes]);
      return reply.duplicate === true;
    });
    // Its host gave it before it answered. Of a session that has ended since then nobody remembers that it was taken.
    if (!hasEnded(session)) await this.#give(session, event.object);
    return duplicate;
  }

  /** Remembers an event from outside for the next execution, tells the host, and keeps it if the session is kept. */
  async #outside<T>(session: Session, event: OutsideEvent, tell: () => Promise<T>): Promise<T> {
    assertTakes(session);
    session.outside ??= [];
    if (session.outside.length >= OUTSIDE_OBJECTS_MAX) {
      throw new PlatformError(
        'E_QUOTA_EXCEEDED',
        `A session takes at most ${OUTSIDE_OBJECTS_MAX} objects from outside.`,
      );
    }
    const { admission } = this.#coordinator.table;
    const bytes = event.type === 'object' ? event.object.bytes.length : 0;
    if (!admission.takeInput(session, bytes)) {
      throw new PlatformError(
        'E_QUOTA_EXCEEDED',
        `The sessions of app '${session.spec.app}' that have not ended hold as many bytes of input as they may; ${bytes} more are too many.`,
        { retryAfterMs: RETRY_AFTER_MS_MIN },
      );
    }
    session.outside.push(event);
    const n = session.outsideCount++;
    try {
      const told = await tell();
      if (!session.spec.durable) return told;
      // Told of it, the session may have come to its end: then nothing will be executed again with it.
      if (session.phase === 'ended') await this.#coordinator.writes.written(session.id);
      else await this.#coordinator.writes.write(session, [outsideChange(session.id, n, event)]);
      return told;
    } catch (error) {
      // The host that died will be told again by the next session-start; every other refusal is final.
      if (error instanceof PlatformError && error.code === 'E_NODE_LOST' && isLive(session)) {
        if (session.spec.durable) await this.#coordinator.writes.write(session, [outsideChange(session.id, n, event)]);
        return undefined as T;
      }
      session.outside = session.outside.filter((other) => other !== event);
      admission.dropInput(session, bytes);
      throw error;
    }
  }

  #give(session: Session, object: StoredObject): Promise<void> | undefined {
    const written = this.#coordinator.firings.take(session, session.spec.version, object, session.spec.durable);
    // It may have ended while the host answered: then nobody else will say that its objects cannot come again.
    if (session.phase === 'ended') this.#coordinator.triggers.sessionEnded(session.spec.app, session.id);
    return written;
  }
}

function exists(bucket: string, name: string): PlatformError {
  return new PlatformError('E_OBJECT_EXISTS', `Bucket '${bucket}' has an object '${name}' with other content.`);
}

/** Apart from a comparison, so that the compiler does not take the phase of before an await for granted. */
function hasEnded(session: Session): boolean {
  return session.phase === 'ended';
}
