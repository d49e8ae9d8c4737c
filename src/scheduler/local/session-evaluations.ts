// Custom triggers of session scope: what their classes are asked, and what comes of the answers.
//
// Owns: nothing; the state is in the trigger's machine (trigger/custom.ts).
// Does not own: who asks the class (driver), what fires (session-triggers).

import { hexOf, refusalData } from '../../base/index.ts';
import type { BucketRow, TriggerRow } from '../../bucket/index.ts';
import { CustomMachine } from '../../trigger/index.ts';
import type { SessionEvent } from './events.ts';
import type { MachineState } from './machine-state.ts';
import type { Invocation } from './session.ts';
import { noteFailure, settle } from './session-end.ts';
import { fireAll, keyOf, triggerOf } from './session-triggers.ts';

/** Triggers that name its function among their `sources` hear of it. */
export function sourceStarted(state: MachineState, invocation: Invocation): void {
  const { session, row } = invocation;
  for (const watcher of row.watchedBy) {
    const bucket = session.tables.buckets[watcher.bucket] as BucketRow;
    const trigger = bucket.triggers[watcher.trigger] as TriggerRow;
    const machine = triggerOf(state, session, bucket, trigger);
    if (!(machine instanceof CustomMachine)) continue;
    try {
      machine.onSourceStarted({ function: row.name, invocation: hexOf(invocation.id) }, state.now);
    } catch (refusal) {
      noteFailure(session, invocation, refusalData(refusal));
    }
    fireAll(state, session, undefined, bucket, trigger, machine, []);
  }
}

/** The class has answered, or could not. */
export function evaluated(state: MachineState, event: SessionEvent & { type: 'evaluated' }): void {
  const { session, bucket, trigger, id, result } = event;
  const machine = session.triggers.get(keyOf(bucket, trigger));
  if (session.state !== 'running' || !(machine instanceof CustomMachine)) return;
  const { firings, dropped, gaveUp } = machine.answered(id, result);
  fireAll(state, session, undefined, bucket, trigger, machine, firings);
  const held = session.heldObjects.get(keyOf(bucket, trigger));
  for (const key of dropped) held?.delete(key);
  if (gaveUp !== undefined) {
    const of = gaveUp.key === undefined ? '' : ` object ${gaveUp.key} of`;
    const message = `trigger ${trigger.name} gave up${of} bucket ${bucket.name}: ${gaveUp.error.message}`;
    noteFailure(session, undefined, { ...gaveUp.error, message });
  }
  settle(state, session);
}
