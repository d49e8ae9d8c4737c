// Which keys a trigger has taken, so that a second delivery of the same object changes nothing (T2).
//
// Session scope: one set, for the machine's life. Bucket scope: one set per session, until that session is forgotten.
// Exact keys, no hashes: a false match would lose an object. Their text is shared with the owner's, not copied.

import { PlatformError } from '../base/index.ts';
import { entriesOf, stringsOf } from './decode.ts';
import { TAKEN_KEYS_MAX } from './limits.ts';
import type { TriggerObject } from './machine.ts';
import type { TriggerScope } from './spec.ts';

const WHOLE_SESSION = '';

export class TakenKeys {
  readonly #scope: TriggerScope;
  readonly #bySession = new Map<string, Set<string>>();
  #size = 0;

  constructor(scope: TriggerScope) {
    this.#scope = scope;
  }

  static restore(scope: TriggerScope, snapshot: unknown): TakenKeys {
    const taken = new TakenKeys(scope);
    for (const [session, keys] of entriesOf(snapshot, 'taken')) {
      const set = new Set(stringsOf(keys, 'taken'));
      taken.#bySession.set(session, set);
      taken.#size += set.size;
    }
    return taken;
  }

  get size(): number {
    return this.#size;
  }

  has(object: TriggerObject): boolean {
    return this.#bySession.get(this.#sessionOf(object))?.has(object.key) === true;
  }

  /** @throws E_QUOTA_EXCEEDED (overload): TAKEN_KEYS_MAX are remembered already. */
  assertRoom(kind: string): void {
    if (this.#size < TAKEN_KEYS_MAX) return;
    throw new PlatformError(
      'E_QUOTA_EXCEEDED',
      `The ${kind} trigger remembers ${TAKEN_KEYS_MAX} objects of sessions that have not ended, the most it may: ` +
        'end sessions sooner, or spread the objects over several buckets.',
      { details: { limit: 'TAKEN_KEYS_MAX', max: TAKEN_KEYS_MAX } },
    );
  }

  add(object: TriggerObject): void {
    const session = this.#sessionOf(object);
    let keys = this.#bySession.get(session);
    if (keys === undefined) {
      keys = new Set();
      this.#bySession.set(session, keys);
    }
    keys.add(object.key);
    this.#size++;
  }

  forgetSession(session: string): void {
    if (this.#scope !== 'bucket') return;
    this.#size -= this.#bySession.get(session)?.size ?? 0;
    this.#bySession.delete(session);
  }

  clear(): void {
    this.#bySession.clear();
    this.#size = 0;
  }

  snapshot(): unknown {
    return Array.from(this.#bySession, ([session, keys]) => [session, [...keys]]);
  }

  #sessionOf(object: TriggerObject): string {
    return this.#scope === 'bucket' ? object.session : WHOLE_SESSION;
  }
}
