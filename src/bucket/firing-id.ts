// Names of invocations: 64 bits, the same in every re-execution of the same session.

import { type Hash64, hashInts, hashText } from '../base/index.ts';
import type { StoredObject } from './stored-object.ts';

/** Entry `index` of a session. */
export function entryId(session: string, index: number): Hash64 {
  const hash = hashText(session);
  return hashInts(hash.hi, hash.lo, index, 0x656e);
}

/**
 * Successor that one object fires by a trigger: (bucket, trigger, object) and the place in the trigger's `run` list.
 * `inSession` keeps equal objects of different sessions apart only through their producers, which are unique in a session.
 */
export function objectFiringId(object: StoredObject, trigger: number, run: number): Hash64 {
  const where = object.bucket * 0x1_0000 + trigger * 0x100 + run;
  if (object.name === undefined) return hashInts(object.producer.hi, object.producer.lo, object.step + 1, where);
  const hash = hashText(object.name, object.bucket, trigger);
  return hashInts(hash.hi, hash.lo, run, where);
}

/** Any other firing: by the index that the trigger's machine gave it. */
export function firingId(bucket: number, trigger: number, index: string, run: number): Hash64 {
  const hash = hashText(index, bucket + 1, trigger + 1);
  return hashInts(hash.hi, hash.lo, run, 0x6669);
}
