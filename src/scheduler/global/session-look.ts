// Looking at sessions and their objects: records, results, outputs, traces, lists.
//
// Owns: how a list is cut into pages, and how long a request waits for a result.
// Does not own: anything that it shows: live sessions (SessionTable), ended ones (Archive), objects of a session (its host).

import { type MonotonicMs, PlatformError } from '../../base/index.ts';
import {
  INPUT_BUCKET,
  type ObjectSource,
  type OutputEvent,
  type Payload,
  type SessionProgress,
  type SessionRecord,
  type SessionState,
  type SessionTrace,
  type SyncOutcome,
  sourceOf,
} from '../../protocol/index.ts';
import { newestFirst, outcomeOf } from './archive.ts';
import type { Coordinator } from './coordinator.ts';
import { assertBucket, assertKept, findSession, openApp, unknownSession } from './door-checks.ts';
import { openHostObject } from './host-source.ts';
import { LIST_LIMIT_MAX, PROGRESS_WAIT_MS } from './limits.ts';
import type { HostLink } from './ports.ts';
import type { Session, StoredObject } from './session.ts';
import { recordOf, stateOf } from './session-codec.ts';

/** Longest wait of one `/result` request. */
const RESULT_WAIT_MS_MAX = 600_000;

export interface SessionQuery {
  readonly app?: string;
  readonly state?: SessionState;
  readonly tag?: readonly [string, string];
  readonly limit: number;
  readonly cursor?: string;
}

export class SessionLook {
  readonly #coordinator: Coordinator;

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
  }

  async getSession(id: string): Promise<SessionRecord> {
    const session = await findSession(this.#coordinator, id);
    if (session.end !== undefined) return recordOf(session);
    const progress = await this.#progressOf(session);
    // It may have ended meanwhile.
    return session.end === undefined ? { ...recordOf(session), ...progress } : recordOf(session);
  }

  async sessionResult(id: string, waitMs: number, signal?: AbortSignal): Promise<SyncOutcome | undefined> {
    const session = await findSession(this.#coordinator, id);
    if (session.outcome !== undefined) {
      assertKept(this.#coordinator, id);
      return this.#coordinator.waits.outcomeOf(session);
    }
    if (session.phase === 'ended') return outcomeOf(session);
    if (session.parkError !== undefined) return { ok: false, error: session.parkError };
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

  /** Undefined when its host does not say in time: it has not begun, is busy, or is gone. */
  #progressOf(session: Session): Promise<SessionProgress | undefined> {
    const link = this.#coordinator.linkOf(session.spec.app, session.spec.version);
    if (link === undefined) return Promise.resolve(undefined);
    const { clock, timers } = this.#coordinator.ports;
    return new Promise((resolve) => {
      const untilMs = (clock.monotonicMs() + PROGRESS_WAIT_MS) as MonotonicMs;
      const cancel = timers.set(untilMs, () => resolve(undefined));
      link
        .request({ type: 'progress-get', session: session.id })
        .then(({ reply }) => resolve(reply.progress))
        .catch(() => resolve(undefined))
        .finally(cancel);
    });
  }

  /** Of a session that has ended what was kept of it; of a live one, or a longer one, what its host knows. */
  async trace(id: string): Promise<SessionTrace> {
    const session = await findSession(this.#coordinator, id);
    const { writes, archive } = this.#coordinator;
    const link = this.#coordinator.linkOf(session.spec.app, session.spec.version);
    if (session.phase !== 'ended') return link === undefined ? { session: id, invocations: [] } : traceFrom(link, id);
    await writes.written(id);
    const kept = await archive.trace(id);
    if (kept !== undefined && (kept.dropped === undefined || link === undefined)) return kept;
    if (link === undefined) {
      throw new PlatformError('E_OBJECT_GONE', `The trace of session '${id}' was freed with its app host.`);
    }
    return traceFrom(link, id).catch((error) => {
      if (kept === undefined) throw error;
      return kept;
    });
  }

  async *outputs(id: string, after: number, signal: AbortSignal): AsyncIterable<OutputEvent> {
    const session = await findSession(this.#coordinator, id);
    if (session.phase === 'ended') assertKept(this.#coordinator, id);
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

  async listSessions(query: SessionQuery): Promise<{ sessions: readonly SessionRecord[]; cursor?: string }> {
    await this.#coordinator.waits.accounted(this.#coordinator.table.all());
    const limit = Math.min(Math.max(1, query.limit), LIST_LIMIT_MAX);
    const before = query.cursor === undefined ? undefined : cursorOf(query.cursor);
    if (query.app !== undefined) openApp(this.#coordinator, query.app, true);
    const matches = (session: Session) =>
      (query.app === undefined || session.spec.app === query.app) &&
      (query.state === undefined || stateOf(session) === query.state) &&
      (query.tag === undefined || session.spec.tags[query.tag[0]] === query.tag[1]) &&
      (before === undefined || newestFirst(session, before) > 0);
    const found: Session[] = [];
    const liveStates: readonly (SessionState | undefined)[] = [undefined, 'running', 'parked'];
    if (liveStates.includes(query.state)) {
      for (const session of this.#coordinator.table.all()) if (matches(session)) found.push(session);
    }
    if (query.state !== 'running' && query.state !== 'parked') {
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

  /** @param first what will be read first, `end` excluded; when it is empty, nothing will. */
  async openObject(
    app: string,
    bucket: string,
    name: string,
    session: string | undefined,
    first: { start: number; end: number },
  ): Promise<ObjectSource> {
    const { persisted, archive, table } = this.#coordinator;
    const current = openApp(this.#coordinator, app, true);
    if (bucket !== INPUT_BUCKET && !bucket.startsWith('$')) assertBucket(app, current.manifest, bucket);
    if (session === undefined) return persisted.open(app, bucket, name);
    if (table.get(session) === undefined && archive.find(session) === undefined) {
      const kept = archive.openOutput(app, session, bucket, name);
      if (kept !== undefined) return kept;
    }
    const found = await findSession(this.#coordinator, session);
    if (found.spec.app !== app) throw unknownSession(session);
    // What is here goes first: the host may have ended the session already, although its message is still on the way.
    const payload =
      found.outputs.find((output) => output.bucket === bucket && output.name === name)?.payload ??
      payloadOf(found.outsideObject(bucket, name)?.object);
    if (payload !== undefined) return sourceOf(payload, `${session}.kept`);
    const link = this.#coordinator.linkOf(app, found.spec.version);
    if (found.phase !== 'running' || link === undefined) {
      throw new PlatformError('E_OBJECT_GONE', `The objects of session '${session}' were freed when it ended.`);
    }
    return openHostObject(link, session, bucket, name, first);
  }
}

async function traceFrom(link: HostLink, session: string): Promise<SessionTrace> {
  const { reply } = await link.request({ type: 'trace-get', session });
  return reply.trace ?? { session, invocations: [] };
}

function payloadOf(object: StoredObject | undefined): Payload | undefined {
  return object === undefined ? undefined : { contentType: object.header.contentType, bytes: object.bytes };
}

function cursorOf(cursor: string): { startedAtMs: number; id: string } {
  const [startedAtMs, id] = Buffer.from(cursor, 'base64url').toString().split(':');
  if (id === undefined || !/^\d{1,14}$/.test(startedAtMs ?? '')) {
    throw new PlatformError('E_REQUEST_INVALID', 'The cursor is not one that this list gave.');
  }
  return { startedAtMs: Number(startedAtMs), id };
}
