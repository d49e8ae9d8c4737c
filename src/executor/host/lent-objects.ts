// Objects that handlers have asked for by name: in memory as long as something of the session runs on that instance.

import type { StoredObject } from '../../bucket/index.ts';
import type { RunningInstance } from './instances.ts';

interface Lent {
  readonly sessionNo: number;
  readonly object: StoredObject;
}

export class LentObjects {
  readonly #byInstance = new Map<RunningInstance, Lent[]>();

  add(running: RunningInstance, sessionNo: number, object: StoredObject): void {
    const lent = this.#byInstance.get(running) ?? [];
    this.#byInstance.set(running, lent);
    if (!lent.some((one) => one.object === object)) lent.push({ sessionNo, object });
  }

  /** An attempt of the session is over there. */
  attemptOver(running: RunningInstance, sessionNo: number): void {
    const lent = this.#byInstance.get(running);
    if (lent === undefined || running.actual.some((one) => one.sessionNo === sessionNo)) return;
    const left = lent.filter((one) => one.sessionNo !== sessionNo);
    if (left.length === 0) this.#byInstance.delete(running);
    else this.#byInstance.set(running, left);
  }

  instanceGone(running: RunningInstance): void {
    this.#byInstance.delete(running);
  }

  *objects(): Generator<StoredObject> {
    for (const lent of this.#byInstance.values()) for (const { object } of lent) yield object;
  }
}
