// The table of live sessions.
//
// Owns: which sessions are live, on which execution (run), and how and when each ends.
// Does not own: who may come and who goes to its host next (Admission), what ended sessions leave behind (archive),
// messages and timers (driver), the hosts (supervisor).
//
// ST1. Every accepted session ends exactly once; after its `ended` effect no effect names it.
// ST2. A session has at most one live run; messages of any other run change nothing.
// ST3. Its outcome is decided exactly once, at its first output or with its end, and never changes.
// ST4. A session is in exactly one version's live set, and `liveCount` of an app is the sum over its versions,
//      delayed ones apart.
// ST5. A session that lost its host SUSPECT_AFTER_LOSSES times waits among `suspects` and is executed as part of a trial:
//      alone, or with others after a trial that the host outlived; before its last execution always alone. So one session
//      that kills its host every time does not use up the executions of those that ran beside it.
// ST6. Each live session has a timer, a place in a queue, a host that has it or will be ready, or a trial before its own; or
//      it is parked, which somebody was told.

import { assert, type EpochMs, type ErrorData, Heap, type MonotonicMs, unreachable } from '../../base/index.ts';
import {
  CONTENT_JSON,
  type ObjectHeader,
  type OutputEvent,
  type Payload,
  type SyncOutcome,
} from '../../protocol/index.ts';
import { Admission, type AdmissionOptions } from './admission.ts';
import {
  CANCEL_GRACE_MS,
  LOST_RETRIES_MAX,
  OUTPUTS_MAX,
  QUEUE_MAX,
  SUSPECT_AFTER_LOSSES,
  TRIAL_MS_MAX,
  TRIAL_SESSIONS_MAX,
  WEIGHT_DEFAULT,
} from './limits.ts';
import { NO_COUNTS, type Session, type SessionEnd } from './session.ts';

export interface LostHost {
  /** `starting`: it never became ready. */
  readonly phase: 'starting' | 'ready';
  /** One sentence for people, with exit code and last log lines in `details`. */
  readonly error: ErrorData;
}

export type SessionTableEvent =
  | { readonly type: 'session-accepted'; readonly session: Session; readonly startAtMs?: MonotonicMs }
  | { readonly type: 'host-ready'; readonly app: string; readonly version: string }
  | { readonly type: 'host-lost'; readonly app: string; readonly version: string; readonly lost: LostHost }
  | {
      readonly type: 'host-output';
      readonly session: string;
      readonly run: number;
      readonly object: ObjectHeader;
      readonly bytes: Uint8Array;
    }
  /** Something of each of these runs, or has run. */
  | { readonly type: 'host-begun'; readonly sessions: readonly string[] }
  | { readonly type: 'host-ended'; readonly session: string; readonly run: number; readonly end: SessionEnd }
  /** An instance saw what a synchronous caller waits for. `final`: the session is over; its end follows. */
  | {
      readonly type: 'host-outcome';
      readonly session: string;
      readonly run: number;
      readonly payload: Payload | undefined;
      readonly final: boolean;
    }
  /** It cannot go on, by whoever found it. `run`: the execution that was looked at. */
  | { readonly type: 'stuck'; readonly session: string; readonly run: number; readonly error: ErrorData }
  /** A parked session shall be executed again. */
  | { readonly type: 'resume'; readonly session: string }
  | { readonly type: 'cancel'; readonly session: string; readonly error: ErrorData }
  | { readonly type: 'timer-fired' };

export type SessionTableEffect =
  | { readonly type: 'need-host'; readonly app: string; readonly version: string }
  | { readonly type: 'send-start'; readonly session: Session }
  | { readonly type: 'send-cancel'; readonly session: Session; readonly error: ErrorData }
  | { readonly type: 'output'; readonly session: Session; readonly output: OutputEvent }
  | { readonly type: 'outcome'; readonly session: Session; readonly outcome: SyncOutcome }
  /** It cannot go on; whoever waits for it is told. Its outcome is open. */
  | { readonly type: 'parked'; readonly session: Session; readonly error: ErrorData }
  | { readonly type: 'ended'; readonly session: Session };

interface VersionState {
  readonly app: AppState;
  readonly version: string;
  hostReady: boolean;
  readonly live: Set<Session>;
  /** Waiting for their trial, longest first. */
  readonly suspects: Set<Session>;
  /** Suspects that run and whose host has not proved to outlive them. */
  readonly onTrial: Set<Session>;
  trialSize: number;
}

interface AppState {
  readonly app: string;
  readonly versions: Map<string, VersionState>;
  liveCount: number;
  delayedCount: number;
}

interface TableTimer {
  readonly atMs: MonotonicMs;
  readonly what: 'delay' | 'deadline' | 'grace' | 'trial';
  /** Cleared when it ended, so that a far timer does not keep its inputs in memory. */
  session: Session | undefined;
  /** The session's execution when it was set. */
  readonly run: number;
}

const NULL_PAYLOAD: Payload = { contentType: CONTENT_JSON, bytes: new TextEncoder().encode('null') };

const ADMISSION_DEFAULT: AdmissionOptions = { queueMax: QUEUE_MAX, weightOf: () => WEIGHT_DEFAULT };

export class SessionTable {
  readonly admission: Admission;
  readonly #sessions = new Map<string, Session>();
  readonly #apps = new Map<string, AppState>();
  readonly #timers = new Heap<TableTimer>((a, b) => a.atMs < b.atMs);
  readonly #timersOf = new Map<Session, TableTimer[]>();
  #deadTimers = 0;

  constructor(admission: AdmissionOptions = ADMISSION_DEFAULT) {
    this.admission = new Admission(admission);
  }

  get(id: string): Session | undefined {
    return this.#sessions.get(id);
  }

  get size(): number {
    return this.#sessions.size;
  }

  all(): Iterable<Session> {
    return this.#sessions.values();
  }

  liveOf(app: string): number {
    const state = this.#apps.get(app);
    return state === undefined ? 0 : state.liveCount + state.delayedCount;
  }

  usedBy(app: string, version: string): number {
    return this.#apps.get(app)?.versions.get(version)?.live.size ?? 0;
  }

  sessionsOf(app: string): Session[] {
    const sessions: Session[] = [];
    for (const version of this.#apps.get(app)?.versions.values() ?? []) sessions.push(...version.live);
    return sessions;
  }

  /** Monotonic ms of the next timer. */
  nextTimerMs(): MonotonicMs | undefined {
    const timerMs = this.#nextOwnMs();
    const roundMs = this.admission.nextRoundMs as MonotonicMs | undefined;
    if (timerMs === undefined || roundMs === undefined) return timerMs ?? roundMs;
    return Math.min(roundMs, timerMs) as MonotonicMs;
  }

  #nextOwnMs(): MonotonicMs | undefined {
    for (;;) {
      const next = this.#timers.peek();
      if (next === undefined || next.session !== undefined) return next?.atMs;
      this.#timers.pop();
      this.#deadTimers--;
    }
  }

  handle(event: SessionTableEvent, nowMs: MonotonicMs, epochMs: EpochMs): SessionTableEffect[] {
    const effects: SessionTableEffect[] = [];
    switch (event.type) {
      case 'session-accepted':
        this.#accept(event.session, event.startAtMs, nowMs, effects);
        return effects;
      case 'host-ready': {
        const version = this.#versionOf(event.app, event.version);
        version.hostReady = true;
        this.admission.hostReady(event.app, event.version);
        this.#serve(version, nowMs, effects);
        this.#tryNext(version, nowMs, effects);
        return effects;
      }
      case 'host-lost':
        this.#lose(this.#versionOf(event.app, event.version), event.lost, nowMs, epochMs, effects);
        return effects;
      case 'host-output': {
        const session = this.#sessions.get(event.session);
        if (session === undefined || session.run !== event.run || session.phase !== 'running') return effects; // (ST2)
        if (session.outputs.length >= OUTPUTS_MAX) return effects;
        const { bucket, name, contentType } = event.object;
        const output = session.addOutput(bucket, name, { contentType, bytes: event.bytes });
        if (output === undefined) return effects;
        effects.push({ type: 'output', session, output });
        decide(session, { ok: true, payload: output.payload }, effects);
        this.#begun(session, nowMs, effects);
        return effects;
      }
      case 'host-begun':
        for (const id of event.sessions) {
          const session = this.#sessions.get(id);
          if (session === undefined) this.#confirmed(id, nowMs, effects);
          else if (session.phase === 'running' || session.phase === 'cancelling') this.#begun(session, nowMs, effects);
        }
        return effects;
      case 'host-ended': {
        const session = this.#sessions.get(event.session);
        if (session === undefined) {
          this.#confirmed(event.session, nowMs, effects);
          return effects;
        }
        if (session.run !== event.run) return effects; // (ST2)
        if (session.phase === 'running') this.#end(session, event.end, nowMs, epochMs, effects);
        else if (session.phase === 'cancelling') {
          this.#end(session, cancelledEnd(session, event.end), nowMs, epochMs, effects);
        }
        return effects;
      }
      case 'host-outcome': {
        const session = this.#sessions.get(event.session);
        if (session?.phase !== 'running' || session.run !== event.run) return effects; // (ST2)
        if (event.final) session.settled = true;
        decide(session, { ok: true, payload: event.payload ?? NULL_PAYLOAD }, effects);
        this.#begun(session, nowMs, effects);
        return effects;
      }
      case 'stuck': {
        const session = this.#sessions.get(event.session);
        if (session?.run !== event.run) return effects; // (ST2)
        this.#park(session, event.error, nowMs, effects);
        return effects;
      }
      case 'resume': {
        const session = this.#sessions.get(event.session);
        if (session?.phase !== 'parked') return effects;
        session.move('waiting');
        session.parkError = undefined;
        this.#wait(session, this.#versionOf(session.spec.app, session.spec.version), nowMs, effects);
        return effects;
      }
      case 'cancel': {
        const session = this.#sessions.get(event.session);
        if (session !== undefined) this.#cancel(session, event.error, nowMs, epochMs, effects);
        return effects;
      }
      case 'timer-fired':
        this.#fireTimers(nowMs, epochMs, effects);
        return effects;
      default:
        return unreachable(event, 'SessionTableEvent');
    }
  }

  /** Sessions that would wait for ever (ST6), as far as this table knows. Cost: all live sessions and timers. */
  stuck(): { readonly session: Session; readonly reason: string }[] {
    const timed = new Map<Session, Set<TableTimer['what']>>();
    for (const { session, what } of this.#timers.values()) {
      if (session === undefined) continue;
      const kinds = timed.get(session);
      if (kinds === undefined) timed.set(session, new Set([what]));
      else kinds.add(what);
    }
    const found: { session: Session; reason: string }[] = [];
    for (const session of this.#sessions.values()) {
      const version = this.#apps.get(session.spec.app)?.versions.get(session.spec.version);
      const reason = stuckReason(session, version, timed.get(session));
      if (reason !== undefined) found.push({ session, reason });
    }
    return found;
  }

  checkInvariants(): void {
    let live = 0;
    for (const app of this.#apps.values()) {
      let count = 0;
      let delayed = 0;
      for (const version of app.versions.values()) {
        for (const session of version.live) {
          assert(this.#sessions.get(session.id) === session, 'a live session is in the table (ST4)');
          assert(session.phase !== 'ended', 'an ended session is not live (ST1)');
          assert(session.outputs.length > 0 <= (session.outcome !== undefined), 'an output decides the outcome (ST3)');
          if (session.phase === 'delayed') delayed++;
          else count++;
        }
        for (const session of version.suspects) assert(session.phase === 'waiting', 'a suspect waits (ST5)');
        for (const session of version.onTrial) {
          assert(session.phase === 'running' || session.phase === 'cancelling', 'who is on trial runs (ST5)');
          assert(!mustBeAlone(session) || version.onTrial.size === 1, 'the last execution is alone (ST5)');
        }
        live += version.live.size;
      }
      assert(
        count === app.liveCount && delayed === app.delayedCount,
        'counts of an app are those of its versions (ST4)',
      );
    }
    assert(live === this.#sessions.size, 'every session is in one live set (ST4)');
    this.admission.checkInvariants(this.#sessions.values());
  }

  #accept(
    session: Session,
    startAtMs: MonotonicMs | undefined,
    nowMs: MonotonicMs,
    effects: SessionTableEffect[],
  ): void {
    assert(!this.#sessions.has(session.id), 'a session is accepted once (ST1)');
    const version = this.#versionOf(session.spec.app, session.spec.version);
    this.#sessions.set(session.id, session);
    version.live.add(session);
    if (session.phase === 'delayed') {
      version.app.delayedCount++;
      this.admission.delay(session);
      this.#setTimer(session, 'delay', startAtMs ?? nowMs);
    } else {
      version.app.liveCount++;
      this.#begin(session, version, nowMs, effects);
    }
  }

  #begin(session: Session, version: VersionState, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    this.admission.arrive(session);
    this.#wait(session, version, nowMs, effects);
  }

  /** It waits for its host from now on. */
  #wait(session: Session, version: VersionState, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    if (session.spec.timeoutMs !== undefined && session.deadlineMs === undefined) {
      session.deadlineMs = (nowMs + Math.max(0, session.spec.timeoutMs - session.spentMs)) as MonotonicMs;
      this.#setTimer(session, 'deadline', session.deadlineMs);
    }
    this.admission.enqueue(session, nowMs);
    if (version.hostReady) this.#serve(version, nowMs, effects);
    else effects.push({ type: 'need-host', app: version.app.app, version: version.version });
  }

  #lose(
    version: VersionState,
    lost: LostHost,
    nowMs: MonotonicMs,
    epochMs: EpochMs,
    effects: SessionTableEffect[],
  ): void {
    version.hostReady = false;
    this.admission.hostLost(version.app.app, version.version);
    if (version.live.size === 0) {
      version.app.versions.delete(version.version);
      this.admission.forgetVersion(version.app.app, version.version);
    }
    version.onTrial.clear();
    version.trialSize = 1;
    for (const session of [...version.live]) {
      Admission.backFromHost(session);
      if (session.phase === 'cancelling') {
        this.#end(session, cancelledEnd(session), nowMs, epochMs, effects);
      } else if (session.settled) {
        // It was over, and its caller was told: only the account of it is lost.
        this.#end(session, settledEnd(session), nowMs, epochMs, effects);
      } else if (session.phase === 'running' || (session.phase === 'waiting' && lost.phase === 'starting')) {
        session.lost++;
        if (session.lost > LOST_RETRIES_MAX) {
          this.#end(session, lostEnd(session, lost), nowMs, epochMs, effects);
        } else if (session.phase === 'running') {
          session.move('waiting');
          if (session.lost >= SUSPECT_AFTER_LOSSES) version.suspects.add(session);
          else this.admission.enqueue(session, nowMs);
        }
      }
    }
    for (const session of version.live) {
      if (session.phase !== 'waiting') continue;
      effects.push({ type: 'need-host', app: version.app.app, version: version.version });
      break;
    }
  }

  /** Begins the next trial when none is under way (ST5). */
  #tryNext(version: VersionState, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    if (!version.hostReady || version.onTrial.size > 0) return;
    for (const session of version.suspects) {
      if (mustBeAlone(session) && version.onTrial.size > 0) break;
      version.suspects.delete(session);
      version.onTrial.add(session);
      this.#run(session, nowMs, effects);
      this.#setTimer(session, 'trial', (nowMs + TRIAL_MS_MAX) as MonotonicMs);
      if (mustBeAlone(session) || version.onTrial.size >= version.trialSize) break;
    }
  }

  #outlived(version: VersionState, session: Session, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    if (!version.onTrial.delete(session) || version.onTrial.size > 0) return;
    version.trialSize = Math.min(TRIAL_SESSIONS_MAX, version.trialSize * 2);
    this.#tryNext(version, nowMs, effects);
  }

  /** (ST6) A session whose end is decided, or on its way, is left alone. */
  #park(session: Session, error: ErrorData, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    const { phase } = session;
    if (phase !== 'delayed' && phase !== 'waiting' && phase !== 'running') return;
    if (session.place === 'queued') return; // its turn comes
    const version = this.#versionOf(session.spec.app, session.spec.version);
    if (phase === 'delayed') {
      version.app.delayedCount--;
      version.app.liveCount++;
      this.admission.delayOver(session);
      this.admission.arrive(session);
    }
    this.admission.begun(session, nowMs);
    session.move('parked');
    session.parkError = error;
    session.settled = false;
    version.suspects.delete(session);
    effects.push({ type: 'parked', session, error });
    this.#outlived(version, session, nowMs, effects);
    this.#serve(version, nowMs, effects);
  }

  #cancel(
    session: Session,
    error: ErrorData,
    nowMs: MonotonicMs,
    epochMs: EpochMs,
    effects: SessionTableEffect[],
  ): void {
    if (session.phase === 'cancelling') return;
    session.cancelError = error;
    if (session.phase !== 'running') {
      this.#end(session, cancelledEnd(session), nowMs, epochMs, effects);
      return;
    }
    session.move('cancelling');
    this.#setTimer(session, 'grace', (nowMs + CANCEL_GRACE_MS) as MonotonicMs);
    effects.push({ type: 'send-cancel', session, error });
    decide(session, { ok: false, error }, effects);
  }

  /** @param confirmed its host knows that it is over, or has never heard of it. */
  #end(
    session: Session,
    end: SessionEnd,
    nowMs: MonotonicMs,
    epochMs: EpochMs,
    effects: SessionTableEffect[],
    confirmed = true,
  ): void {
    const version = this.#versionOf(session.spec.app, session.spec.version);
    const app = version.app;
    if (session.phase === 'delayed') {
      app.delayedCount--;
      this.admission.delayOver(session);
    } else {
      app.liveCount--;
      this.admission.leave(session, confirmed, nowMs);
    }
    session.move('ended');
    session.end = end;
    session.endedAtMs = epochMs;
    this.#sessions.delete(session.id);
    version.live.delete(session);
    this.#dropTimers(session);
    decide(
      session,
      end.error === undefined && end.state === 'completed'
        ? { ok: true, payload: end.result ?? NULL_PAYLOAD }
        : {
            ok: false,
            error: end.error ?? { code: 'E_INTERNAL', message: `the session ended as ${end.state} without an error` },
          },
      effects,
    );
    effects.push({ type: 'ended', session });
    version.suspects.delete(session);
    this.#outlived(version, session, nowMs, effects);
    this.#serve(version, nowMs, effects);
  }

  // ── to the host ────────────────────────────────────────────────────────────────────────────────────────────────

  #serve(version: VersionState, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    this.admission.serve(version.app.app, version.version, nowMs, (session) => this.#run(session, nowMs, effects));
  }

  #run(session: Session, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    session.move('running');
    session.run++;
    this.admission.given(session);
    effects.push({ type: 'send-start', session });
    // One that waits for objects from outside has nothing to begin.
    if (session.spec.entries.length === 0) this.admission.begun(session, nowMs);
  }

  #begun(session: Session, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    if (!this.admission.begun(session, nowMs)) return;
    this.#serve(this.#versionOf(session.spec.app, session.spec.version), nowMs, effects);
  }

  /** A host says that a session is over which ended here before. */
  #confirmed(id: string, nowMs: MonotonicMs, effects: SessionTableEffect[]): void {
    const version = this.admission.confirmed(id);
    if (version !== undefined) this.#serve(this.#versionOf(version.app, version.version), nowMs, effects);
  }

  #fireTimers(nowMs: MonotonicMs, epochMs: EpochMs, effects: SessionTableEffect[]): void {
    this.admission.nextRound(nowMs, (session) => this.#run(session, nowMs, effects));
    for (;;) {
      const atMs = this.#nextOwnMs();
      if (atMs === undefined || atMs > nowMs) return;
      const timer = this.#timers.pop();
      const session = timer?.session;
      if (timer === undefined || session === undefined) continue;
      const others = this.#timersOf.get(session)?.filter((other) => other !== timer);
      if (others === undefined || others.length === 0) this.#timersOf.delete(session);
      else this.#timersOf.set(session, others);
      if (timer.what === 'delay') {
        if (session.phase !== 'delayed') continue; // it was parked meanwhile
        const version = this.#versionOf(session.spec.app, session.spec.version);
        session.move('waiting');
        version.app.delayedCount--;
        version.app.liveCount++;
        this.admission.delayOver(session);
        this.#begin(session, version, nowMs, effects);
      } else if (timer.what === 'deadline') {
        const message = `The session did not end within ${session.spec.timeoutMs} ms.`;
        this.#cancel(session, { code: 'E_TIMEOUT', message }, nowMs, epochMs, effects);
      } else if (timer.what === 'trial') {
        if (timer.run !== session.run) continue;
        this.#outlived(this.#versionOf(session.spec.app, session.spec.version), session, nowMs, effects);
      } else {
        this.#end(session, cancelledEnd(session), nowMs, epochMs, effects, false);
      }
    }
  }

  #setTimer(session: Session, what: TableTimer['what'], atMs: MonotonicMs): void {
    const timer: TableTimer = { atMs, what, session, run: session.run };
    this.#timers.push(timer);
    const timers = this.#timersOf.get(session);
    if (timers === undefined) this.#timersOf.set(session, [timer]);
    else timers.push(timer);
  }

  #dropTimers(session: Session): void {
    const timers = this.#timersOf.get(session);
    if (timers === undefined) return;
    this.#timersOf.delete(session);
    for (const timer of timers) timer.session = undefined;
    this.#deadTimers += timers.length;
    // Far deadlines of sessions long ended: sift them out when they are the most.
    if (this.#deadTimers > 1_000 && this.#deadTimers * 2 > this.#timers.size) {
      const alive: TableTimer[] = [];
      for (let timer = this.#timers.pop(); timer !== undefined; timer = this.#timers.pop()) {
        if (timer.session !== undefined) alive.push(timer);
      }
      for (const timer of alive) this.#timers.push(timer);
      this.#deadTimers = 0;
    }
  }

  #versionOf(app: string, version: string): VersionState {
    let state = this.#apps.get(app);
    if (state === undefined) {
      state = {
        app,
        versions: new Map(),
        liveCount: 0,
        delayedCount: 0,
      };
      this.#apps.set(app, state);
    }
    let known = state.versions.get(version);
    if (known === undefined) {
      known = {
        app: state,
        version,
        hostReady: false,
        live: new Set(),
        suspects: new Set(),
        onTrial: new Set(),
        trialSize: 1,
      };
      state.versions.set(version, known);
    }
    return known;
  }

  /** The app is gone and has no session: forget it. */
  forgetApp(app: string): void {
    const state = this.#apps.get(app);
    if (state === undefined) return;
    assert(state.liveCount + state.delayedCount === 0, 'an app with live sessions is not forgotten');
    this.#apps.delete(app);
    this.admission.forgetApp(app);
  }
}

function stuckReason(
  session: Session,
  version: VersionState | undefined,
  timers: ReadonlySet<TableTimer['what']> | undefined,
): string | undefined {
  switch (session.phase) {
    case 'delayed':
      return timers?.has('delay') ? undefined : 'its delay has no timer';
    case 'waiting':
      if (version === undefined) return 'its version is not known here';
      if (!version.hostReady) return undefined;
      if (session.place === 'queued') return undefined;
      if (!version.suspects.has(session)) return 'it waits for its app host, but in no queue';
      return version.onTrial.size > 0 ? undefined : 'its app host is ready and nobody is on trial before it';
    case 'running':
      return version?.hostReady === true ? undefined : 'its app host is gone';
    case 'cancelling':
      return timers?.has('grace') ? undefined : 'its cancellation has no timer';
    case 'parked':
      return undefined;
    case 'ended':
      return 'it has ended and is listed as live';
  }
}

function mustBeAlone(session: Session): boolean {
  return session.lost >= LOST_RETRIES_MAX;
}

function settledEnd({ outcome }: Session): SessionEnd {
  const result = outcome?.ok === true ? { result: outcome.payload } : {};
  return { state: 'completed', ...result, unfired: [], counts: NO_COUNTS, meteredMs: 0 };
}

function decide(session: Session, outcome: SyncOutcome, effects: SessionTableEffect[]): void {
  if (session.outcome !== undefined) return; // (ST3)
  session.outcome = outcome;
  effects.push({ type: 'outcome', session, outcome });
}

/** How a session ends that was cancelled: by someone, or by its deadline, which an output outweighs. */
function cancelledEnd(session: Session, said?: SessionEnd): SessionEnd {
  const error = session.cancelError;
  assert(error !== undefined, 'a cancelled session knows why');
  const rest = {
    unfired: said?.unfired ?? [],
    counts: said?.counts ?? NO_COUNTS,
    meteredMs: said?.meteredMs ?? 0,
    ...(said?.trace === undefined ? {} : { trace: said.trace }),
  };
  if (error.code === 'E_CANCELLED') return { state: 'cancelled', error, ...rest };
  if (session.outputs.length === 0) return { state: 'failed', error, ...rest };
  const failed = { invocation: '', function: session.spec.entries[0]?.function ?? '', error };
  return { state: 'completed', ...rest, failures: [...(said?.failures ?? []), failed] };
}

function lostEnd(session: Session, lost: LostHost): SessionEnd {
  const error: ErrorData = {
    code: 'E_NODE_LOST',
    message: `The app host of this session died ${session.lost} times; the last time: ${lost.error.message}`,
    details: { lost: session.lost, ...lost.error.details },
    ...(lost.error.stack === undefined ? {} : { stack: lost.error.stack }),
  };
  const rest = { unfired: [], counts: NO_COUNTS, meteredMs: 0 };
  if (session.outputs.length === 0) return { state: 'failed', error, ...rest };
  const failed = { invocation: '', function: session.spec.entries[0]?.function ?? '', error };
  return { state: 'completed', ...rest, failures: [failed] };
}
