// The checkers of a run: each reads what could be seen of it, and says what must not be.
//
// They share no code with what they check. `liveness` and `invariants` are judged while the run goes on (simulate).

import { checkAttempts } from './check-attempts.ts';
import { checkBucketFirings } from './check-bucket-firings.ts';
import { checkPromises } from './check-promises.ts';
import { checkRemains } from './check-remains.ts';
import { checkSessionFirings } from './check-session-firings.ts';
import { checkSessions } from './check-sessions.ts';
import type { Evidence, Violation } from './evidence.ts';

export function check(evidence: Evidence): Violation[] {
  return [
    ...checkSessions(evidence),
    ...checkSessionFirings(evidence),
    ...checkBucketFirings(evidence),
    ...checkPromises(evidence),
    ...checkAttempts(evidence),
    ...checkRemains(evidence),
  ];
}
