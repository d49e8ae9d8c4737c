// Sessions of one app host: who produces what, what fires because of it, and when a session has ended.
//
// Owns: sessions, their invocations and attempts (fences, retries), objects by name, session-scoped trigger state. This
// file takes events and begins sessions; attempts, session-objects, session-triggers and session-end change what they are
// named for.
// Does not own: which instance runs what (LocalScheduler), the bytes of objects (bucket), bucket-scoped triggers
// (coordinator).
//
// SM1. An invocation is in exactly one place: queued, held by an instance, running, in back-off, or ended.
// SM2. At most one attempt of an invocation counts: the one that bears its fence. What another says is dropped.
// SM3. A firing has a deterministic id and makes at most one invocation.
// SM4. A session ends when nothing of it is queued, held, running, in back-off, timed or unacknowledged, and then once.
// SM5. Names are claimed before triggers see the object; a name has one producer.
//
// Sources: Pheromone (NSDI 2023) for buckets and triggers; the end of sessions and the fences are ours.

import { assert, hexOf, PlatformError, type Prng, refusalData, unreachable } from '../../base/index.ts';
import { type BucketRow, entryId, nameOf, type StoredObject } from '../../bucket/index.ts';
import type { Now } from '../../trigger/index.ts';
import { attemptEnded, attemptLost, attemptStarted, failForGood, retryDue, ruleTimeOver } from './attempts.ts';
import type { SessionEffect, SessionEvent, Which } from './events.ts';
import { IDLE_TIMEOUT_MS_DEFAULT } from './limits.ts';
import { enqueue, findSpeaker, type MachineState, makeInvocation } from './machine-state.ts';
import { type Invocation, invocationsOf, liveInvocationsOf, markEnded, newSession, type Session } from './session.ts';
import { cancelSession, parkSession, settle, touch } from './session-end.ts';
import { evaluated } from './session-evaluations.ts';
import { acknowledged, objectNamed, objectSent, recordObject, takeObject } from './session-objects.ts';
import { closeGroup, joinGroup, refuseClosed, timerFired, watchProducers } from './session-triggers.ts';
import { TimerQueue } from './timer-queue.ts';
import { type StuckSession, stuckSessions, type WatchdogView } from './watchdog.ts';

/** Above are the numbers of sessions that instances begin themselves. */
const HOST_NO_MAX = 0x7fff_ffff;

export interface SessionMachinePorts {
  readonly random: Prng;
  /** Whether two objects have the same bytes: for repeated puts from outside. */
  readonly sameContent: (a: StoredObject, b: StoredObject) => boolean;
}

export class SessionMachine {
  readonly #sameContent: SessionMachinePorts['sameContent'];
  readonly #state: MachineState;
  #nextNo = 1;

  constructor({ random, sameContent }: SessionMachinePorts) {
    this.#sameContent = sameContent;
    this.#state = {
      byId: new Map(),
      byNo: new Map(),
      timers: new TimerQueue(),
      random,
      now: { monotonicMs: 0, epochMs: 0 },
      effects: [],
    };
  }

  /** Applies one event; returns what must happen because of it, in order. */
  handle(event: SessionEvent, now: Now): SessionEffect[] {
    this.#state.effects = [];
    this.#state.now = now;
    switch (event.type) {
      case 'session-started':
        this.#start(event);
        break;
      case 'attempt-started':
        attemptStarted(this.#state, event);
        break;
      case 'object-sent':
        objectSent(this.#state, event);
        break;
      case 'attempt-ended':
        attemptEnded(this.#state, event);
        break;
      case 'handed-over': {
        const invocation = findSpeaker(this.#state, event);
        if (invocation !== undefined) this.#putDown(invocation);
        break;
      }
      case 'group-closed':
        this.#fromInvocation(event, (session) => closeGroup(this.#state, session, event.bucket));
        break;
      case 'joined':
        this.#fromInvocation(event, (session) => joinGroup(this.#state, session, event.bucket, event, hexOf(event.id)));
        break;
      case 'attempt-lost':
        attemptLost(this.#state, event.invocation, event.why, event.error);
        break;
      case 'offer-lost':
        this.#putDown(event.invocation);
        break;
      case 'offer-failed':
        if (event.invocation.place === 'queued') failForGood(this.#state, event.invocation, event.error);
        break;
      case 'session-cancelled':
        cancelSession(this.#state, event.session, event.error);
        break;
      case 'session-stuck':
        parkSession(this.#state, event.session, event.reason);
        break;
      case 'acknowledged':
        acknowledged(this.#state, event.session, event.seq, event.error);
        break;
      case 'evaluated':
        evaluated(this.#state, event);
        break;
      case 'time-passed':
        this.#timePassed();
        break;
      default:
        unreachable(event, 'SessionEvent');
    }
    return this.#state.effects;
  }

  /**
   * An object from outside for a running session. Same name and bytes again: a duplicate.
   * @throws E_SESSION_ENDED, E_OBJECT_EXISTS, E_BUCKET_UNKNOWN.
   */
  put(sessionId: string, object: StoredObject, now: Now): { duplicate: boolean; effects: SessionEffect[] } {
    const session = this.#running(sessionId);
    this.#state.effects = [];
    this.#state.now = now;
    const bucket = session.tables.buckets[object.bucket];
    assert(bucket !== undefined, 'the driver resolved the bucket');
    const there = session.named.get(object.bucket)?.get(nameOf(object));
    if (there !== undefined) {
      if (this.#sameContent(there, object)) {
        this.#state.effects.push({ type: 'discard', object });
        return { duplicate: true, effects: this.#state.effects };
      }
      throw new PlatformError(
        'E_OBJECT_EXISTS',
        `bucket ${bucket.name} has another object ${nameOf(object)} in this session`,
      );
    }
    refuseClosed(session, bucket);
    touch(this.#state, session);
    takeObject(this.#state, session, undefined, bucket, object, false, false);
    settle(this.#state, session);
    return { duplicate: false, effects: this.#state.effects };
  }

  /** `close` and `join` from outside. @throws E_SESSION_ENDED, and what the trigger refuses. */
  closeFromOutside(sessionId: string, bucket: number, now: Now): SessionEffect[] {
    return this.#fromOutside(sessionId, now, (session) => closeGroup(this.#state, session, bucket));
  }

  joinFromOutside(
    sessionId: string,
    bucket: number,
    join: { readonly names?: readonly string[]; readonly count?: number },
    now: Now,
  ): SessionEffect[] {
    return this.#fromOutside(sessionId, now, (session) => joinGroup(this.#state, session, bucket, join, 'outside'));
  }

  session(id: string): Session | undefined {
    return this.#state.byId.get(id);
  }

  sessionByNo(no: number): Session | undefined {
    return this.#state.byNo.get(no);
  }

  sessions(): IterableIterator<Session> {
    return this.#state.byId.values();
  }

  get sessionCount(): number {
    return this.#state.byId.size;
  }

  /** Monotonic ms of the next thing that time brings; undefined when nothing is timed. */
  nextTimerMs(): number | undefined {
    return this.#state.timers.nextMs();
  }

  object(session: Session, bucket: number, name: string): StoredObject | undefined {
    return objectNamed(session, bucket, name);
  }

  /** Sessions that would wait for ever (WD1). */
  stuck(view: WatchdogView): StuckSession[] {
    return stuckSessions(this.#state.byId.values(), this.#state.timers.values(), view);
  }

  /** (SM1), (SM2), (SM4): tests and the simulator call it after every event. */
  checkInvariants(): void {
    for (const session of this.#state.byId.values()) {
      let live = 0;
      let running = 0;
      const listed = new Set(liveInvocationsOf(session));
      for (const one of invocationsOf(session)) {
        assert(listed.has(one) === (one.place !== 'ended'), 'those that have not ended are listed');
        if (one.place !== 'ended') live++;
        if (one.place === 'running') running++;
        assert((one.place === 'running' || one.place === 'held') === one.slot >= 0, 'who holds an invocation is known');
      }
      if (session.state === 'running') {
        assert(live === session.live, 'live counts the invocations that have not ended');
        assert(running === session.running, 'running counts the invocations on instances');
      }
      assert(session.state !== 'ended', 'an ended session is not in the table');
    }
  }

  // ── beginning ──────────────────────────────────────────────────────────────────────────────────────────────────

  #start(event: SessionEvent & { type: 'session-started' }): void {
    assert(!this.#state.byId.has(event.id), 'a session begins once');
    const now = this.#state.now.monotonicMs;
    const session = newSession({
      no: event.lane?.no ?? this.#nextNo,
      id: event.id,
      run: event.run,
      durable: event.durable,
      priority: event.priority,
      deadlineMs: event.deadlineMs,
      tables: event.tables,
      startedAtMs: now,
      open:
        event.open === undefined
          ? undefined
          : { idleTimeoutMs: event.open.idleTimeoutMs || IDLE_TIMEOUT_MS_DEFAULT, closed: false, idleSinceMs: now },
    });
    if (event.lane === undefined) this.#nextNo = this.#nextNo === HOST_NO_MAX ? 1 : this.#nextNo + 1;
    assert(!this.#state.byNo.has(session.no), 'a session number is used by one session at a time');
    this.#state.byId.set(session.id, session);
    this.#state.byNo.set(session.no, session);
    watchProducers(this.#state, session);
    event.entries.forEach((entry, index) => {
      const row = session.tables.functions[entry.function];
      assert(row !== undefined, 'the driver resolved the entry');
      for (const input of entry.inputs) recordObject(session, undefined, input);
      const invocation = makeInvocation(this.#state, session, {
        id: entryId(session.id, index),
        row,
        firing: undefined,
        parent: undefined,
        inputs: entry.inputs,
        fence: 1,
        wantsResult: index === 0,
      });
      session.entries.push(invocation);
      if (event.lane === undefined || event.lane.queue) enqueue(this.#state, invocation);
      else {
        invocation.place = 'held';
        invocation.slot = event.lane.slot;
      }
    });
    for (const object of event.objects) {
      takeObject(
        this.#state,
        session,
        undefined,
        session.tables.buckets[object.bucket] as BucketRow,
        object,
        false,
        false,
      );
    }
    if (session.open !== undefined) touch(this.#state, session);
    settle(this.#state, session);
  }

  /** Whoever held it does not any more: it waits for an instance, unless its session is over. */
  #putDown(invocation: Invocation): void {
    if (invocation.place !== 'held') return;
    if (invocation.session.state === 'running') enqueue(this.#state, invocation);
    else markEnded(invocation);
  }

  // ── from handlers and from outside ─────────────────────────────────────────────────────────────────────────────

  #fromInvocation(which: Which, act: (session: Session) => void): void {
    const invocation = findSpeaker(this.#state, which);
    if (invocation === undefined || invocation.place === 'ended' || invocation.session.state !== 'running') return;
    try {
      act(invocation.session);
    } catch (refusal) {
      invocation.sendError ??= refusalData(refusal);
    }
  }

  #fromOutside(sessionId: string, now: Now, act: (session: Session) => void): SessionEffect[] {
    const session = this.#running(sessionId);
    this.#state.effects = [];
    this.#state.now = now;
    touch(this.#state, session);
    act(session);
    settle(this.#state, session);
    return this.#state.effects;
  }

  #running(sessionId: string): Session {
    const session = this.#state.byId.get(sessionId);
    if (session === undefined || session.state !== 'running') {
      throw new PlatformError('E_SESSION_ENDED', `session ${sessionId} has ended`);
    }
    return session;
  }

  // ── time ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #timePassed(): void {
    for (;;) {
      const due = this.#state.timers.takeDue(this.#state.now.monotonicMs);
      if (due === undefined) return;
      if (due.kind === 'retry') {
        retryDue(this.#state, due.invocation, due.fence);
      } else if (due.kind === 'rerun') {
        if (due.invocation.session.state === 'running') ruleTimeOver(this.#state, due.invocation, due.fence, due.rule);
      } else if (due.session.state !== 'running') {
        // Nothing: the session ended in the meantime.
      } else if (due.kind === 'idle') {
        settle(this.#state, due.session);
      } else if (timerFired(this.#state, due.session, due.key)) {
        settle(this.#state, due.session);
      }
    }
  }
}
