// What every start of a session takes, by whatever door it comes.
//
// Owns: idempotency keys, admission, what is written of a start.
// Does not own: who may start what (Door, OutsideObjects), the session from then on (Coordinator).

import { type ErrorData, fromErrorData, type MonotonicMs, type PlatformError, toErrorData } from '../../base/index.ts';
import type { Payload } from '../../protocol/index.ts';
import type { Coordinator } from './coordinator.ts';
import { assertFunction, assertKept, isLive, openApp } from './door-checks.ts';
import { IDEMPOTENCY_WINDOW_MS } from './limits.ts';
import type { RecordChange } from './record-store.ts';
import type { Session, SessionSpec } from './session.ts';
import { keys, outsideChange, sessionChange } from './session-codec.ts';

export const NO_TAGS: Readonly<Record<string, string>> = {};
export const NO_CAUSES: readonly string[] = [];

/** Of a start that shall happen once. */
export interface Key {
  readonly scope: string;
  readonly digest: string;
}

export class SessionStarts {
  readonly #coordinator: Coordinator;
  /** Begun, but their start could not be written; with the wall-clock time of a delayed one. */
  readonly #unkept = new WeakMap<Session, number | undefined>();

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
  }

  /** The session that the key started within the window, live or ended. @throws E_IDEMPOTENCY_MISMATCH for another body. */
  async find({ scope, digest }: Key): Promise<Session | undefined> {
    const { ports, archive, table } = this.#coordinator;
    const oldestMs = ports.clock.epochMs() - IDEMPOTENCY_WINDOW_MS;
    const known = this.startedWith(scope);
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
  startedWith(scope: string): Session | undefined {
    const session = this.#coordinator.startedWith(scope);
    const oldestMs = this.#coordinator.ports.clock.epochMs() - IDEMPOTENCY_WINDOW_MS;
    return session === undefined || session.startedAtMs < oldestMs ? undefined : session;
  }

  /** @throws E_QUEUE_FULL when its app has too many sessions that have not ended. */
  admit(spec: SessionSpec, delayed = false): Session {
    let inputBytes = 0;
    for (const { inputs } of spec.entries) for (const { bytes } of inputs) inputBytes += bytes.length;
    const refusal = this.refusal(spec.app, inputBytes, Math.max(1, spec.entries.length), delayed);
    if (refusal !== undefined) throw fromErrorData(refusal);
    const session = this.#coordinator.create(spec, delayed);
    for (const { inputs } of spec.entries) for (const { header } of inputs) own(header, session.id);
    return session;
  }

  /** Why a session would be refused now: as data, since under overload it is asked more often than anything else. */
  refusal(app: string, inputBytes: number, invocations: number, delayed: boolean): ErrorData | undefined {
    const { table, counters, ports } = this.#coordinator;
    const want = { inputBytes, invocations, delayed };
    const refusal = table.admission.refusal(app, want, ports.clock.monotonicMs());
    if (refusal === undefined) return undefined;
    counters.refused++;
    return { code: 'E_QUEUE_FULL', message: refusal.detail, retryAfterMs: refusal.retryAfterMs };
  }

  /** From here on it is live; at once, or when `delayMs` are over. */
  accept(session: Session, delayMs?: number): void {
    const { monotonicMs } = this.#coordinator.now();
    if (delayMs === undefined) this.#coordinator.accept(session);
    else this.#coordinator.accept(session, (monotonicMs + delayMs) as MonotonicMs);
  }

  /** Resolves when a second server would find it; at once for one that is not durable. */
  writeStart(session: Session, delayMs?: number): Promise<void> {
    if (!session.spec.durable) return Promise.resolve();
    return this.#write(
      session,
      delayMs === undefined || delayMs <= 0 ? undefined : this.#coordinator.now().epochMs + delayMs,
    );
  }

  /** Resolves when what is written of it is durable; a start that could not be written is written again. */
  async kept(session: Session): Promise<void> {
    await this.#coordinator.writes.written(session.id);
    if (this.#unkept.has(session) && isLive(session)) await this.#write(session, this.#unkept.get(session));
  }

  /** Its start was refused: what of it has begun is in vain. */
  giveUp(session: Session, why: unknown): void {
    if (isLive(session)) this.#coordinator.handle({ type: 'cancel', session: session.id, error: toErrorData(why) });
  }

  async #write(session: Session, dueAtMs: number | undefined): Promise<void> {
    const changes: RecordChange[] = [sessionChange(session, dueAtMs)];
    for (const [n, event] of (session.outside ?? []).entries()) changes.push(outsideChange(session.id, n, event));
    const { idempotency } = session.spec;
    if (idempotency !== undefined) {
      const header = { session: session.id, digest: idempotency.digest, atMs: session.startedAtMs };
      changes.push({ put: keys.idempotency(idempotency.scope), header });
    }
    try {
      await this.#coordinator.writes.write(session, changes);
      this.#unkept.delete(session);
    } catch (error) {
      this.#unkept.set(session, dueAtMs);
      throw error;
    }
  }

  /**
   * A new session with the same inputs, on the current version; durable, and kept when this resolves.
   * @throws E_OBJECT_GONE when the payloads of the old one are not kept any more.
   */
  async again(
    old: Session,
    origin: Partial<Pick<SessionSpec, 'retryOf' | 'forkOf' | 'letter' | 'causes'>>,
  ): Promise<{ session: string }> {
    const app = openApp(this.#coordinator, old.spec.app);
    assertKept(this.#coordinator, old.id);
    for (const entry of old.spec.entries) assertFunction(old.spec.app, app.manifest, entry.function);
    const { idempotency: _key, consumes: _held, retryOf: _retry, forkOf: _fork, letter: _letter, ...rest } = old.spec;
    const spec: SessionSpec = {
      ...rest,
      version: app.version,
      durable: true,
      detached: true,
      ...origin,
      entries: rest.entries.map((entry) => ({
        function: entry.function,
        inputs: entry.inputs.map(({ header, bytes }) => ({
          header: header.session === old.id ? { ...header, session: '' } : header,
          bytes,
        })),
      })),
    };
    const session = this.admit(spec);
    if (old.outside !== undefined) {
      session.outside = old.outside.map((event) =>
        event.type === 'object'
          ? { ...event, object: { ...event.object, header: { ...event.object.header, session: session.id } } }
          : event,
      );
      session.outsideCount = session.outside.length;
    }
    return this.startKept(session);
  }

  /** Begins an admitted session; resolves when it is kept. */
  async startKept(session: Session): Promise<{ session: string }> {
    const written = this.writeStart(session);
    this.accept(session);
    try {
      await written;
    } catch (error) {
      this.giveUp(session, error);
      throw error;
    }
    return { session: session.id };
  }

  /** Lets the app's own validator look at a value. @throws what it refuses. */
  async validate(
    app: string,
    version: string,
    target: { readonly function: string } | { readonly bucket: string },
    payload: Payload,
  ): Promise<void> {
    const link = await this.#coordinator.link(app, version);
    const { contentType, bytes } = payload;
    await link.request({ type: 'validate', target, payload: { contentType, size: bytes.length } }, [bytes]);
  }
}

function mismatch(session: string): PlatformError {
  return fromErrorData({
    code: 'E_IDEMPOTENCY_MISMATCH',
    message: `This idempotency key started session '${session}' with another body. Use a new key for a new request.`,
    details: { session },
  });
}

/** An input made before its session had an id gets it now; nobody else has seen it. */
function own(header: { readonly session: string }, session: string): void {
  if (header.session === '') (header as { session: string }).session = session;
}
