// What every request is checked for before the coordinator hears of it, and how it is refused.

import { nearMiss, PlatformError, parseSessionId } from '../../base/index.ts';
import type { Manifest } from '../../protocol/index.ts';
import type { Coordinator } from './coordinator.ts';
import { TAG_CHARS_MAX, TAGS_MAX } from './limits.ts';
import type { CurrentApp } from './ports.ts';
import type { Session } from './session.ts';

/** @throws E_SHUTTING_DOWN. */
export function assertAccepting(coordinator: Coordinator): void {
  if (!coordinator.accepting) {
    throw new PlatformError('E_SHUTTING_DOWN', 'The server is shutting down.', { retryAfterMs: 1_000 });
  }
}

/** @throws E_APP_UNKNOWN, E_SHUTTING_DOWN unless only `looking`. */
export function openApp(coordinator: Coordinator, app: string, looking = false): CurrentApp {
  if (!looking) assertAccepting(coordinator);
  const current = coordinator.ports.apps.current(app);
  if (current === undefined) throw unknownApp(app, coordinator.ports.apps.names());
  return current;
}

/** Live or ended. @throws E_SESSION_UNKNOWN, E_SESSION_LOST. */
export async function findSession(coordinator: Coordinator, id: string): Promise<Session> {
  const live = coordinator.table.get(id);
  if (live?.settled === true) await coordinator.waits.accounted([live]);
  const session = coordinator.table.get(id) ?? (await coordinator.archive.load(id));
  if (session !== undefined) return session;
  const parsed = parseSessionId(id);
  if (parsed !== undefined && parsed.durability === 'e' && parsed.bootEpoch < coordinator.bootEpoch) {
    const detail = `Session '${id}' was not durable and is gone since the server restarted. Start it again if need be.`;
    throw new PlatformError('E_SESSION_LOST', detail);
  }
  throw unknownSession(id);
}

/** @throws E_SESSION_ENDED. */
export function assertTakes(session: Session): void {
  if (isLive(session)) return;
  throw new PlatformError('E_SESSION_ENDED', `Session '${session.id}' has ended and takes nothing more.`);
}

/** @throws E_OBJECT_GONE when only the record of the session is left. */
export function assertKept(coordinator: Coordinator, id: string): void {
  if (!coordinator.archive.isStripped(id)) return;
  const detail = `The payloads of session '${id}' were too large to be kept after its end; start it with mode=async for that.`;
  throw new PlatformError('E_OBJECT_GONE', detail);
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

export function unknownSession(id: string): PlatformError {
  return new PlatformError('E_SESSION_UNKNOWN', `There is no session '${id}', or its record is no longer kept.`);
}

/** @throws E_REQUEST_INVALID. */
export function assertTags(tags: Readonly<Record<string, string>>): void {
  const entries = Object.entries(tags);
  if (entries.length <= TAGS_MAX && entries.every(([k, v]) => k.length <= TAG_CHARS_MAX && v.length <= TAG_CHARS_MAX)) {
    return;
  }
  throw new PlatformError(
    'E_REQUEST_INVALID',
    `A session has at most ${TAGS_MAX} tags of ${TAG_CHARS_MAX} characters.`,
  );
}

/** It has not ended, and is not about to. */
export function isLive(session: Session): boolean {
  return session.phase !== 'ended' && session.phase !== 'cancelling';
}
