// Whose the objects of this host are: by session, and by the triggers that wait half-filled.

import type { HostObjects, SessionObjects } from '../../protocol/index.ts';
import type { Session } from '../../scheduler/local/index.ts';
import { STATS_ROWS_MAX } from './limits.ts';
import { unfiredOf } from './session-messages.ts';
import type { Spiller } from './spiller.ts';

/**
 * Sessions that are over and whose objects are still read have a row too, so that the rows add up to the host's bytes.
 * @param only of this session. Cost: all blocks, and all triggers of the sessions.
 */
export function hostObjects(sessions: Iterable<Session>, spiller: Spiller, only: string | undefined): HostObjects {
  const stored = spiller.blocks.bySession();
  const bySession: SessionObjects[] = [];
  const waits: (ReturnType<typeof unfiredOf>[number] & { session: string })[] = [];
  const seen = new Set<Session>();
  for (const session of sessions) {
    seen.add(session);
    if (only !== undefined && session.id !== only) continue;
    const { memoryBytes = 0, spilledBytes = 0 } = stored.get(session) ?? {};
    bySession.push({
      session: session.id,
      memoryBytes: memoryBytes + session.inlineBytes,
      spilledBytes,
      objects: session.objects.length,
    });
    for (const trigger of unfiredOf(session)) waits.push({ session: session.id, ...trigger });
  }
  for (const [session, bytes] of stored) {
    if (session !== undefined && seen.has(session)) continue;
    const id = session?.id ?? '';
    if (only === undefined || id === only) bySession.push({ session: id, ...bytes, objects: 0 });
  }
  bySession.sort((a, b) => b.memoryBytes + b.spilledBytes - (a.memoryBytes + a.spilledBytes));
  waits.sort((a, b) => b.held - a.held);
  return { bySession: bySession.slice(0, STATS_ROWS_MAX), waits: waits.slice(0, STATS_ROWS_MAX) };
}
