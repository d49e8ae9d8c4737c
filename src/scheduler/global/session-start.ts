// The start of a session, as a host or an instance is told.
//
// Owns: what the message says, and who gets it. Decides nothing about when (SessionTable).

import type { Clock } from '../../platform/index.ts';
import type { ObjectHeader, ServerToHost } from '../../protocol/index.ts';
import { LANE_INPUT_BYTES_MAX } from './limits.ts';
import type { HostLink } from './ports.ts';
import type { Session } from './session.ts';

type SessionStart = Extract<ServerToHost, { type: 'session-start' }>;

/**
 * Tells the host, or one of its instances, to begin the session, and what came from outside meanwhile.
 * @param link undefined: its host is gone, and this will be asked again for the next one.
 */
export function sendStart(link: HostLink | undefined, session: Session, clock: Clock): void {
  const { spec } = session;
  const blobs: Uint8Array[] = [];
  const entries = spec.entries.map((entry) => ({
    function: entry.function,
    inputs: entry.inputs.map(({ header, bytes }) => {
      blobs.push(bytes);
      return header;
    }),
  }));
  const message: { -readonly [K in keyof SessionStart]: SessionStart[K] } = {
    type: 'session-start',
    session: session.id,
    run: session.run,
    entries,
    priority: spec.priority,
    durable: spec.durable,
  };
  if (session.deadlineMs !== undefined) {
    message.deadlineInMs = Math.max(0, session.deadlineMs - clock.monotonicMs());
  }
  if (spec.open !== undefined) message.open = spec.open;
  if (session.outside !== undefined) {
    const objects: ObjectHeader[] = [];
    for (const event of session.outside) {
      if (event.type !== 'object') continue;
      objects.push(event.object.header);
      blobs.push(event.object.bytes);
    }
    message.objects = objects;
  }
  if (link === undefined || !giveToLane(link, session, message, blobs, clock.epochMs())) link?.send(message, blobs);
  for (const event of session.outside ?? []) {
    if (event.type === 'object' || link === undefined) continue;
    const { type, ...rest } = event;
    const request = type === 'close' ? { type: 'session-close' as const } : { type: 'session-join' as const };
    link.request({ ...request, ...rest, session: session.id } as Parameters<HostLink['request']>[0]).catch(() => {});
  }
}

/**
 * A small synchronous session goes straight to an instance that has nothing else from here, or has time for it soon. If
 * that one is not free after all, or older work waits in its host, it hands the session to the host.
 */
function giveToLane(
  link: HostLink,
  session: Session,
  message: { -readonly [K in keyof SessionStart]: SessionStart[K] },
  blobs: readonly Uint8Array[],
  givenAtMs: number,
): boolean {
  const { spec } = session;
  const entry = spec.entries[0];
  if (spec.durable || spec.detached || spec.entries.length !== 1 || entry === undefined) return false;
  if (session.outside !== undefined || session.inputBytes > LANE_INPUT_BYTES_MAX) return false;
  const giveToHost = () => {
    // One that is being cancelled too: the host has been told and waits for it.
    const lives = session.phase === 'running' || session.phase === 'cancelling';
    if (lives && session.run === message.run) link.send(message, blobs);
  };
  message.givenAtMs = givenAtMs;
  return link.lanes.give(entry.function, message, blobs, giveToHost);
}
