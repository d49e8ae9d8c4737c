// Objects of a session: whose they are, who sees them, what is told of them elsewhere.
//
// Owns: objects by name, and what waits for the owner of persisted objects and bucket-scoped triggers to answer.
// Does not own: bytes (bucket), what fires because of an object (session-triggers).
//
// Names are claimed before triggers see the object; a name has one producer (SM5).

import { type ErrorData, PlatformError, refusalData } from '../../base/index.ts';
import {
  type BucketRow,
  CALL_BUCKET_INDEX,
  isStored,
  nameOf,
  objectFiringId,
  type StoredObject,
  sizeOf,
} from '../../bucket/index.ts';
import { isStateless, matchesName, scopeOf } from '../../trigger/index.ts';
import type { SessionEvent } from './events.ts';
import { HOLLOW_OBJECTS_MAX, SESSION_OBJECTS_MAX } from './limits.ts';
import { expectAck, findSpeaker, type MachineState } from './machine-state.ts';
import { findInvocation, forget, type Invocation, type Session } from './session.ts';
import { noteFailure, releaseWhenIdle, settle } from './session-end.ts';
import { fire, madeByInstance, refuseClosed, showTo } from './session-triggers.ts';

/** Stands for a trigger where `ctx.call` fires. */
const CALL = { name: '$call' };

/** What a handler sent, unless it was overtaken or has sent it before. */
export function objectSent(state: MachineState, event: SessionEvent & { type: 'object-sent' }): void {
  const sender = findSpeaker(state, event);
  const { object } = event;
  if (sender === undefined || sender.place === 'ended' || sender.session.state !== 'running') {
    state.effects.push({ type: 'discard', object });
    return;
  }
  const { session } = sender;
  const bucket = session.tables.buckets[object.bucket] as BucketRow;
  if (event.firings !== undefined && !sender.hostEvaluates) {
    recordObject(session, sender, object);
    for (const firing of event.firings) madeByInstance(state, sender, bucket, object, firing, event);
    return;
  }
  if (object.name === undefined) {
    if (sender.attempts > 1 && sender.out.some((made) => made.step === object.step)) {
      state.effects.push({ type: 'discard', object });
      return;
    }
  } else {
    const there = session.named.get(object.bucket)?.get(object.name);
    if (there !== undefined) {
      state.effects.push({ type: 'discard', object });
      if (!sameProducer(there, object)) {
        sender.sendError ??= {
          code: 'E_OBJECT_EXISTS',
          message: `bucket ${bucket.name} has an object ${object.name} of another invocation already: choose another name`,
        };
      }
      return;
    }
  }
  try {
    refuseClosed(session, bucket);
    if (session.objects.length + session.droppedObjects >= SESSION_OBJECTS_MAX) {
      throw new PlatformError('E_QUOTA_EXCEEDED', `a session has at most ${SESSION_OBJECTS_MAX} objects`);
    }
  } catch (refusal) {
    sender.sendError ??= refusalData(refusal);
    state.effects.push({ type: 'discard', object });
    return;
  }
  if (event.firings === undefined) {
    takeObject(state, session, sender, bucket, object, event.output, event.persist);
    return;
  }
  // `ctx.call` of a repeated attempt, whose instance has left the invocation to us.
  recordObject(session, sender, object);
  for (const { id, function: target } of event.firings) {
    fire(state, session, sender, bucket, CALL, nameOf(object), id, target, [object]);
  }
}

/** Claims the name (SM5), then lets every trigger of the bucket see it. */
export function takeObject(
  state: MachineState,
  session: Session,
  sender: Invocation | undefined,
  bucket: BucketRow,
  object: StoredObject,
  output: boolean,
  persist: boolean,
): void {
  recordObject(session, sender, object);
  if (output) {
    session.outputs++;
    state.effects.push({ type: 'output', session, object });
  }
  if (persist) state.effects.push({ type: 'persist', session, seq: expectAck(session, sender), object });
  let elsewhere = false;
  for (const trigger of bucket.triggers) {
    if (scopeOf(trigger.spec) === 'bucket') {
      elsewhere = true;
      continue;
    }
    if (isStateless(trigger.spec)) {
      if (!matchesName(trigger.spec, nameOf(object))) continue;
      trigger.run.forEach((target, run) => {
        const id = objectFiringId(object, trigger.index, run);
        fire(state, session, sender, bucket, trigger, nameOf(object), id, target, [object]);
      });
      continue;
    }
    showTo(state, session, sender, bucket, trigger, object);
  }
  if (elsewhere) {
    state.effects.push({ type: 'copy-object', session, seq: expectAck(session, sender), object });
  }
}

/** It has ended: what nobody can ask for any more is taken out of the session. */
export function forgetEnded(invocation: Invocation): void {
  const objects = forget(invocation);
  if (objects === undefined) return;
  const { session } = invocation;
  for (const object of objects) {
    session.inlineBytes -= sizeOf(object);
    (object as { content: unknown }).content = '';
    session.hollowObjects++;
  }
  if (session.hollowObjects < HOLLOW_OBJECTS_MAX || session.hollowObjects * 2 < session.objects.length) return;
  const before = session.objects.length;
  session.objects = session.objects.filter(({ bucket, content }) => bucket !== CALL_BUCKET_INDEX || content !== '');
  session.droppedObjects += before - session.objects.length;
  session.hollowObjects = 0;
}

/** An object of the session: by its chosen name, or by `<invocation>.<step>`. */
export function objectNamed(session: Session, bucket: number, name: string): StoredObject | undefined {
  const named = session.named.get(bucket)?.get(name);
  if (named !== undefined) return named;
  // Not indexed, since nearly nobody asks for those.
  const match = /^([0-9a-f]{8})([0-9a-f]{8})\.(\d+)$/.exec(name);
  if (match === null) return undefined;
  const id = { hi: Number.parseInt(match[1] ?? '', 16), lo: Number.parseInt(match[2] ?? '', 16) };
  const step = Number(match[3]);
  return findInvocation(session, id)?.out.find((made) => made.bucket === bucket && made.step === step);
}

/** It lives as long as the session. @returns its size. */
export function keepObject(session: Session, object: StoredObject): number {
  const size = sizeOf(object);
  session.objects.push(object);
  if (isStored(object.content)) session.storedObjects++;
  else session.inlineBytes += size;
  return size;
}

/** The object counts from now on. */
export function recordObject(session: Session, sender: Invocation | undefined, object: StoredObject): void {
  session.bytes += keepObject(session, object);
  sender?.out.push(object);
  if (object.name === undefined) return;
  let names = session.named.get(object.bucket);
  if (names === undefined) {
    names = new Map();
    session.named.set(object.bucket, names);
  }
  names.set(object.name, object);
}

/** The owner of an object's bucket has it, or has refused it. */
export function acknowledged(state: MachineState, sessionId: string, seq: number, error: ErrorData | undefined): void {
  const session = state.byId.get(sessionId);
  if (session === undefined || !session.acks.has(seq)) return;
  const sender = session.acks.get(seq);
  session.acks.delete(seq);
  if (error !== undefined && session.state === 'running') {
    if (sender !== undefined && sender.place === 'running') sender.sendError ??= error;
    else noteFailure(session, sender, error);
  }
  if (session.state === 'running') settle(state, session);
  else releaseWhenIdle(state, session);
}

function sameProducer(a: StoredObject, b: StoredObject): boolean {
  return a.producer.hi === b.producer.hi && a.producer.lo === b.producer.lo;
}
