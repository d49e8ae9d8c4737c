// Triggers of session scope, and what fires because of them.
//
// Owns: the state of triggers per session, and which of a session's objects they hold.
// Does not own: primitives (trigger/), bucket-scoped triggers (coordinator), when objects are shown (session-objects).
//
// A firing has a deterministic id and makes at most one invocation (SM3), whoever sees it first: the sender's instance or
// this host.

import { assert, type Hash64, PlatformError, refusalData } from '../../base/index.ts';
import {
  type BucketRow,
  CALL_BUCKET_INDEX,
  type FunctionRow,
  firingId,
  nameOf,
  type StoredObject,
  type TriggerRow,
} from '../../bucket/index.ts';
import {
  CustomMachine,
  createTrigger,
  type Firing,
  isStateless,
  scopeOf,
  type TriggerMachine,
} from '../../trigger/index.ts';
import type { MadeFiring } from './events.ts';
import { cancelIfLost, cancelLosers } from './losers.ts';
import { enqueue, expectAck, type MachineState, makeInvocation } from './machine-state.ts';
import { type Invocation, isKnown, type Session } from './session.ts';

/** An object of its bucket has come. What the trigger refuses, its sender fails with. */
export function showTo(
  state: MachineState,
  session: Session,
  sender: Invocation | undefined,
  bucket: BucketRow,
  trigger: TriggerRow,
  object: StoredObject,
): void {
  const machine = triggerOf(state, session, bucket, trigger);
  const key = keyOf(bucket, trigger);
  const name = nameOf(object);
  const held = session.heldObjects.get(key) as Map<string, StoredObject>;
  held.set(name, object);
  try {
    const firings = machine.onObject({ key: name, name, group: object.group, session: session.id }, state.now);
    fireAll(state, session, sender, bucket, trigger, machine, firings);
  } catch (refusal) {
    held.delete(name);
    const error = refusalData(refusal);
    if (sender !== undefined) sender.sendError ??= error;
    else session.firstError ??= error;
  }
}

/** A successor that its sender's instance holds or offers. */
export function madeByInstance(
  state: MachineState,
  sender: Invocation,
  bucket: BucketRow,
  object: StoredObject,
  firing: MadeFiring,
  by: { readonly slot: number; readonly atMs: number },
): void {
  const { session } = sender;
  if (isKnown(session, firing.id)) return;
  session.firings++;
  const trigger = bucket.index === CALL_BUCKET_INDEX ? '$call' : (bucket.triggers[firing.trigger]?.name ?? '');
  const invocation = makeInvocation(state, session, {
    id: firing.id,
    row: session.tables.functions[firing.function] as FunctionRow,
    firing: { bucket: bucket.index, trigger, index: nameOf(object) },
    parent: sender.id,
    inputs: [object],
    fence: sender.fence,
    wantsResult: false,
  });
  invocation.place = 'held';
  invocation.slot = by.slot;
  invocation.queuedAtMs = by.atMs;
  cancelIfLost(state, invocation);
}

/** No more objects come into the bucket's groups in this session. */
export function closeGroup(state: MachineState, session: Session, bucketIndex: number): void {
  const bucket = session.tables.buckets[bucketIndex] as BucketRow;
  let elsewhere = false;
  for (const trigger of bucket.triggers) {
    if (isStateless(trigger.spec)) continue;
    if (scopeOf(trigger.spec) === 'bucket') {
      elsewhere ||= trigger.spec.kind === 'dynamicGroup';
      continue;
    }
    const machine = triggerOf(state, session, bucket, trigger);
    fireAll(state, session, undefined, bucket, trigger, machine, machine.onClose(state.now));
  }
  if (elsewhere) {
    state.effects.push({
      type: 'close-copy',
      session,
      seq: expectAck(session, undefined),
      bucket: bucketIndex,
    });
  }
  if (session.open !== undefined) session.open.closed = true;
}

/** Says what the bucket's `dynamicJoin` trigger waits for. @throws what it refuses. */
export function joinGroup(
  state: MachineState,
  session: Session,
  bucketIndex: number,
  join: { readonly names?: readonly string[]; readonly count?: number },
  by: string,
): void {
  const bucket = session.tables.buckets[bucketIndex] as BucketRow;
  const trigger = bucket.triggers.find((row) => row.spec.kind === 'dynamicJoin');
  if (trigger === undefined) {
    throw new PlatformError('E_REQUEST_INVALID', `bucket ${bucket.name} has no dynamicJoin trigger to join`);
  }
  const machine = triggerOf(state, session, bucket, trigger);
  const wanted = {
    ...(join.names === undefined ? {} : { names: join.names }),
    ...(join.count === undefined ? {} : { count: join.count }),
  };
  fireAll(state, session, undefined, bucket, trigger, machine, machine.onJoin(wanted, by, state.now));
  if (session.open !== undefined) session.open.closed = true;
}

/** @returns whether its time had come. */
export function timerFired(state: MachineState, session: Session, key: number): boolean {
  const machine = session.triggers.get(key);
  const next = machine?.nextTimerMs();
  if (machine === undefined || next === undefined) return false;
  if (next > state.now.monotonicMs) {
    watchTimer(state, session, key, machine);
    return false;
  }
  const bucket = session.tables.buckets[Math.floor(key / 0x1_0000)] as BucketRow;
  const trigger = bucket.triggers[key % 0x1_0000] as TriggerRow;
  fireAll(state, session, undefined, bucket, trigger, machine, machine.onTimer(state.now));
  return true;
}

/** Triggers that must hear of producers from the beginning. */
export function watchProducers(state: MachineState, session: Session): void {
  for (const bucket of session.tables.buckets) {
    for (const trigger of bucket.triggers) {
      if (trigger.spec.kind !== 'dynamicGroup' || trigger.spec.producers === undefined) continue;
      if (scopeOf(trigger.spec) === 'session') triggerOf(state, session, bucket, trigger);
    }
  }
}

/** @throws E_SESSION_ENDED for an object that would come after the close. */
export function refuseClosed(session: Session, bucket: BucketRow): void {
  for (const trigger of bucket.triggers) {
    if (session.triggers.get(keyOf(bucket, trigger))?.closed === true) {
      throw new PlatformError(
        'E_SESSION_ENDED',
        `bucket ${bucket.name} was closed in this session: send before ctx.closeGroup`,
      );
    }
  }
}

/** One invocation of one firing, unless it was made before. */
export function fire(
  state: MachineState,
  session: Session,
  sender: Invocation | undefined,
  bucket: BucketRow,
  trigger: Pick<TriggerRow, 'name'>,
  index: string,
  id: Hash64,
  target: number,
  inputs: readonly StoredObject[],
): void {
  // (SM3)
  if (isKnown(session, id)) return;
  session.firings++;
  const invocation = makeInvocation(state, session, {
    id,
    row: session.tables.functions[target] as FunctionRow,
    firing: { bucket: bucket.index, trigger: trigger.name, index },
    parent: sender?.id,
    inputs,
    fence: sender?.fence ?? 1,
    wantsResult: false,
  });
  if (!cancelIfLost(state, invocation)) enqueue(state, invocation);
}

/** Makes the invocations of what a trigger has decided, and watches what it waits for next. */
export function fireAll(
  state: MachineState,
  session: Session,
  sender: Invocation | undefined,
  bucket: BucketRow,
  trigger: TriggerRow,
  machine: TriggerMachine,
  firings: readonly Firing[],
): void {
  const key = keyOf(bucket, trigger);
  const held = session.heldObjects.get(key) as Map<string, StoredObject>;
  for (const firing of firings) {
    const inputs: StoredObject[] = [];
    for (const name of firing.objects) {
      const object = held.get(name);
      assert(object !== undefined, 'a firing names objects that the trigger was shown');
      inputs.push(object);
      held.delete(name);
    }
    trigger.run.forEach((target, run) => {
      const { name } = session.tables.functions[target] as FunctionRow;
      if (firing.run?.includes(name) === false) return;
      const id = firingId(bucket.index, trigger.index, firing.index, run);
      fire(state, session, sender, bucket, trigger, firing.index, id, target, inputs);
    });
  }
  if (firings.length > 0) cancelLosers(state, session, bucket, trigger);
  ask(state, session, bucket, trigger, machine);
  watchTimer(state, session, key, machine);
}

/** The class of a custom trigger is asked about what has come, unless its last answer is still awaited. */
function ask(
  state: MachineState,
  session: Session,
  bucket: BucketRow,
  trigger: TriggerRow,
  machine: TriggerMachine,
): void {
  const plan = machine instanceof CustomMachine ? machine.begin(state.now) : undefined;
  if (plan !== undefined) state.effects.push({ type: 'evaluate', session, bucket, trigger, plan });
}

/** Made when it is first needed. */
export function triggerOf(
  state: MachineState,
  session: Session,
  bucket: BucketRow,
  trigger: TriggerRow,
): TriggerMachine {
  const key = keyOf(bucket, trigger);
  let machine = session.triggers.get(key);
  if (machine === undefined) {
    machine = createTrigger(withoutSource(trigger), state.now);
    session.triggers.set(key, machine);
    session.heldObjects.set(key, new Map());
  }
  return machine;
}

/** One entry per due time, however many objects arrive before it. */
function watchTimer(state: MachineState, session: Session, key: number, machine: TriggerMachine): void {
  const due = machine.nextTimerMs();
  if (due === undefined || session.timedAtMs.get(key) === due) return;
  session.timedAtMs.set(key, due);
  state.timers.add(due, { kind: 'trigger', session, key });
}

export function keyOf(bucket: BucketRow, trigger: TriggerRow): number {
  return bucket.index * 0x1_0000 + trigger.index;
}

function withoutSource(trigger: TriggerRow): Parameters<typeof createTrigger>[0] {
  const { source: _, ...spec } = trigger.spec;
  return spec as Parameters<typeof createTrigger>[0];
}
