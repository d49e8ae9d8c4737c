// What is left when everything has ended: nothing but what triggers hold and records keep.
//
// RE1. App hosts have no session, no object, nothing queued or running.
// RE2. On disk there is no mark of a session that has ended, and no object or event from outside of one.

import { PAGE_BYTES } from '../bucket/index.ts';
import type { Evidence, Violation } from './evidence.ts';

export function checkRemains({ stats, keys }: Evidence): Violation[] {
  const violations: Violation[] = [];
  const fail = (message: string) => violations.push({ checker: 'remains', message });
  for (const one of stats) {
    const { objects, sessions, queued, running, memoryBytes, spilledBytes, store, instances } = one;
    if (objects + sessions + queued + running > 0) {
      fail(`RE1: a host has ${objects} objects, ${sessions} sessions, ${queued} queued, ${running} running`);
    }
    // Each thread may be filling one page.
    const pagesMax = (instances.length + 1) * PAGE_BYTES;
    if (memoryBytes + spilledBytes + store.blockBytes > 0 || store.usedBytes > pagesMax) {
      fail(
        `RE1: ${instances.length} instances, a host without objects has ${memoryBytes} bytes of them, and uses ${JSON.stringify(store)}`,
      );
    }
  }
  for (const prefix of ['k/', 'e/']) {
    const left = keys.filter((key) => key.startsWith(prefix));
    if (left.length > 0) fail(`RE2: left on disk: ${left.slice(0, 5).join(', ')}`);
  }
  return violations;
}
