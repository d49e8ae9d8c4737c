// Which session goes to its host next, and whether one more may come.
//
// Owns: the queues of sessions that wait for their host, how many starts each host has that it has not begun, how fast
// sessions begin.
// Does not own: the sessions' phases and ends (SessionTable), what a host does with what it was given (LocalScheduler).
//
// AD1. A session is in one place: queued, under way (given to its host, not begun), begun, or gone.
// AD2. A host has at most STARTS_UNDER_WAY_MAX starts under way, and no more once their inputs are above
//      STARTS_UNDER_WAY_BYTES_MAX; so one that stands still makes nothing grow but its queue here, and that is bounded. A
//      start that ended here alone keeps its place until the host has said so too.
// AD3. What was begun once goes before what was not; then priority and age decide (PriorityFifo).
// AD4. `waiting` of an app is the number of invocations of its sessions that were never begun, delayed ones apart.

import { assert, PriorityFifo } from '../../base/index.ts';
import { FairTurns } from './fair-turns.ts';
import {
  AGED_AFTER_MS,
  AGED_EVERY,
  DELAYED_SESSIONS_MAX,
  LIVE_INPUT_BYTES_MAX,
  LIVE_SESSIONS_MAX,
  RETRY_AFTER_MS_MAX,
  RETRY_AFTER_MS_MIN,
  ROUND_MS,
  STARTS_PER_ROUND,
  STARTS_QUANTUM,
  STARTS_UNDER_WAY_BYTES_MAX,
  STARTS_UNDER_WAY_MAX,
  THROUGHPUT_WINDOW_MS,
} from './limits.ts';
import type { Session } from './session.ts';

export interface AdmissionOptions {
  /** Invocations of sessions that have not begun, per app. */
  readonly queueMax: number;
  /** Above 0; 1 where nothing else was said. */
  readonly weightOf: (app: string) => number;
}

export interface Refusal {
  readonly retryAfterMs: number;
  readonly detail: string;
}

interface VersionQueue {
  readonly app: AppQueue;
  readonly version: string;
  hostReady: boolean;
  readonly queue: PriorityFifo<Session>;
  underWay: number;
  underWayBytes: number;
  /** Ended here while they were under way: sessions and their bytes. */
  readonly unconfirmed: Map<string, number>;
}

interface AppQueue {
  readonly app: string;
  readonly versions: Map<string, VersionQueue>;
  live: number;
  delayed: number;
  waiting: number;
  inputBytes: number;
  windowStartMs: number;
  begunInWindow: number;
  begunPerMs: number;
}

/** Above every priority. */
const BEGUN_BEFORE = 10_000;

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #apps = new Map<string, AppQueue>();
  readonly #turns = new FairTurns<VersionQueue>({
    roundMs: ROUND_MS,
    perRound: STARTS_PER_ROUND,
    quantum: STARTS_QUANTUM,
  });
  /** Where the unconfirmed are, by session. */
  readonly #unconfirmed = new Map<string, VersionQueue>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  // ── whether one more may come ──────────────────────────────────────────────────────────────────────────────────

  /** Undefined: yes. Costs some comparisons, so it is asked before anything is read or made. */
  refusal(
    app: string,
    want: { readonly inputBytes: number; readonly invocations: number; readonly delayed: boolean },
    nowMs: number,
  ): Refusal | undefined {
    const state = this.#apps.get(app);
    if (state === undefined) return undefined;
    const { queueMax } = this.#options;
    let detail: string;
    if (want.delayed && state.delayed >= DELAYED_SESSIONS_MAX) {
      detail = `App '${app}' has ${state.delayed} sessions that wait for their delay, the most it may.`;
    } else if (!want.delayed && state.waiting > 0 && state.waiting + want.invocations > queueMax) {
      detail = `${state.waiting} invocations of sessions that have not begun wait in app '${app}'; it may have ${queueMax}.`;
    } else if (!want.delayed && state.live >= LIVE_SESSIONS_MAX) {
      detail = `App '${app}' has ${state.live} sessions that have not ended, the most it may.`;
    } else if (state.inputBytes + want.inputBytes > LIVE_INPUT_BYTES_MAX) {
      detail = `App '${app}' has ${state.inputBytes} bytes of input in sessions that have not ended; ${want.inputBytes} more are too many.`;
    } else {
      return undefined;
    }
    // Time in which a tenth of what waits will have begun.
    const retryAfterMs = state.waiting / 10 / Math.max(1 / RETRY_AFTER_MS_MAX, ratePerMs(state, nowMs));
    return {
      retryAfterMs: Math.round(Math.min(RETRY_AFTER_MS_MAX, Math.max(RETRY_AFTER_MS_MIN, retryAfterMs))),
      detail,
    };
  }

  waitingOf(app: string): number {
    return this.#apps.get(app)?.waiting ?? 0;
  }

  // ── where sessions are ─────────────────────────────────────────────────────────────────────────────────────────

  /** It waits for its delay. */
  delay(session: Session): void {
    const { app } = this.#versionOf(session);
    app.delayed++;
    app.inputBytes += session.inputBytes;
  }

  /** Its delay is over. */
  delayOver(session: Session): void {
    const { app } = this.#versionOf(session);
    app.delayed--;
    app.inputBytes -= session.inputBytes + session.outsideBytes;
    session.outsideBytes = 0;
  }

  /** It is there from now on. */
  arrive(session: Session): void {
    const { app } = this.#versionOf(session);
    app.live++;
    app.waiting += session.invocationCount;
    for (const event of session.outside ?? []) {
      if (event.type === 'object') session.outsideBytes += event.object.bytes.length;
    }
    app.inputBytes += session.inputBytes + session.outsideBytes;
    session.neverBegun = true;
  }

  /** Something comes from outside, and is kept with the session until it ends. @returns whether there is room for it. */
  takeInput(session: Session, bytes: number): boolean {
    const { app } = this.#versionOf(session);
    if (app.inputBytes + bytes > LIVE_INPUT_BYTES_MAX) return false;
    app.inputBytes += bytes;
    session.outsideBytes += bytes;
    return true;
  }

  /** It was not kept after all. */
  dropInput(session: Session, bytes: number): void {
    if (session.place === 'gone') return;
    this.#versionOf(session).app.inputBytes -= bytes;
    session.outsideBytes -= bytes;
  }

  /** It waits for its host from now on; then `serve`. */
  enqueue(session: Session, nowMs: number): void {
    const version = this.#versionOf(session);
    session.place = 'queued';
    version.queue.push(session, session.rank + (session.neverBegun ? 0 : BEGUN_BEFORE), nowMs);
  }

  /** Gives sessions of this version to its host, as far as it and others have room. `give`: the session is under way. */
  serve(app: string, version: string, nowMs: number, give: (session: Session) => void): void {
    const queue = this.#apps.get(app)?.versions.get(version);
    if (queue === undefined) return;
    while (mayGive(queue) && queue.queue.peek(nowMs) !== undefined) {
      if (!this.#turns.takeAtOnce(nowMs)) {
        this.#turns.want(queue, this.#options.weightOf(app));
        return;
      }
      this.#giveNext(queue, nowMs, give);
    }
  }

  /** Monotonic ms of the next round, if somebody waits for it; then `nextRound`. */
  get nextRoundMs(): number | undefined {
    return this.#turns.nextRoundMs;
  }

  nextRound(nowMs: number, give: (session: Session) => void): void {
    this.#turns.serve(nowMs, (queue) => this.#giveNext(queue, nowMs, give));
  }

  #giveNext(queue: VersionQueue, nowMs: number, give: (session: Session) => void): boolean {
    const session = mayGive(queue) ? queue.queue.take(nowMs) : undefined;
    if (session === undefined) return false;
    give(session);
    return true;
  }

  /** Its host was told to begin it: by `give`, or past the queue. */
  given(session: Session): void {
    const version = this.#versionOf(session);
    session.place = 'under-way';
    version.underWay++;
    version.underWayBytes += session.inputBytes;
  }

  /** Something of it runs, or has run. Idempotent. @returns whether there is more room for others. */
  begun(session: Session, nowMs: number): boolean {
    const first = this.#countBegun(session, nowMs);
    if (session.place !== 'under-way') return first;
    this.#leaveRoom(this.#versionOf(session), session.inputBytes);
    session.place = 'begun';
    return true;
  }

  /** It has ended, wherever it was. @param confirmed its host knows. */
  leave(session: Session, confirmed: boolean, nowMs: number): void {
    const version = this.#versionOf(session);
    this.#countBegun(session, nowMs);
    if (session.place === 'under-way') {
      if (confirmed) this.#leaveRoom(version, session.inputBytes);
      else {
        version.unconfirmed.set(session.id, session.inputBytes);
        this.#unconfirmed.set(session.id, version);
      }
    }
    const queued = session.place === 'queued';
    session.place = 'gone';
    if (queued) version.queue.withdrawn();
    version.app.live--;
    version.app.inputBytes -= session.inputBytes + session.outsideBytes;
  }

  /** A host says that a session has begun or ended which is over here. @returns where there is room now. (AD2) */
  confirmed(session: string): { readonly app: string; readonly version: string } | undefined {
    const version = this.#unconfirmed.get(session);
    const bytes = version?.unconfirmed.get(session);
    if (version === undefined || bytes === undefined) return undefined;
    this.#unconfirmed.delete(session);
    version.unconfirmed.delete(session);
    this.#leaveRoom(version, bytes);
    return { app: version.app.app, version: version.version };
  }

  /** It takes sessions from now on. */
  hostReady(app: string, version: string): void {
    this.#queueOf(app, version).hostReady = true;
  }

  /** Nothing is under way to it any more: what was is queued again, or `leave`s. */
  hostLost(app: string, version: string): void {
    const queue = this.#apps.get(app)?.versions.get(version);
    if (queue === undefined) return;
    queue.hostReady = false;
    queue.underWay = 0;
    queue.underWayBytes = 0;
    for (const session of queue.unconfirmed.keys()) this.#unconfirmed.delete(session);
    queue.unconfirmed.clear();
    this.#turns.forget(queue);
  }

  /** Sessions that were on the lost host: they wait, or end, but are not under way. */
  static backFromHost(session: Session): void {
    if (session.place === 'under-way') session.place = 'begun';
  }

  forgetVersion(app: string, version: string): void {
    this.#apps.get(app)?.versions.delete(version);
  }

  forgetApp(app: string): void {
    this.#apps.delete(app);
  }

  checkInvariants(all: Iterable<Session>): void {
    const waiting = new Map<AppQueue, number>();
    const underWay = new Map<VersionQueue, number>();
    for (const session of all) {
      const version = this.#versionOf(session);
      const { app } = version;
      if (session.neverBegun) waiting.set(app, (waiting.get(app) ?? 0) + session.invocationCount);
      if (session.place === 'under-way') underWay.set(version, (underWay.get(version) ?? 0) + 1);
    }
    for (const app of this.#apps.values()) {
      assert(app.waiting === (waiting.get(app) ?? 0), 'what waits is what was never begun (AD4)');
      for (const version of app.versions.values()) {
        const count = (underWay.get(version) ?? 0) + version.unconfirmed.size;
        assert(version.underWay === count, 'what is under way was given and has not begun (AD1)');
      }
    }
  }

  #countBegun(session: Session, nowMs: number): boolean {
    if (!session.neverBegun) return false;
    session.neverBegun = false;
    const { app } = this.#versionOf(session);
    app.waiting -= session.invocationCount;
    if (nowMs - app.windowStartMs >= THROUGHPUT_WINDOW_MS) {
      app.begunPerMs = app.begunInWindow / (nowMs - app.windowStartMs);
      app.windowStartMs = nowMs;
      app.begunInWindow = 0;
    }
    app.begunInWindow += session.invocationCount;
    return true;
  }

  #leaveRoom(version: VersionQueue, bytes: number): void {
    version.underWay--;
    version.underWayBytes -= bytes;
  }

  #versionOf({ spec }: Session): VersionQueue {
    return this.#queueOf(spec.app, spec.version);
  }

  #queueOf(appName: string, versionName: string): VersionQueue {
    let app = this.#apps.get(appName);
    if (app === undefined) {
      app = {
        app: appName,
        versions: new Map(),
        live: 0,
        delayed: 0,
        waiting: 0,
        inputBytes: 0,
        windowStartMs: 0,
        begunInWindow: 0,
        begunPerMs: 0,
      };
      this.#apps.set(appName, app);
    }
    let version = app.versions.get(versionName);
    if (version === undefined) {
      const waits = (session: Session) => session.place === 'queued';
      const queue = new PriorityFifo<Session>({ waits, agedAfterMs: AGED_AFTER_MS, agedEvery: AGED_EVERY });
      version = {
        app,
        version: versionName,
        hostReady: false,
        queue,
        underWay: 0,
        underWayBytes: 0,
        unconfirmed: new Map(),
      };
      app.versions.set(versionName, version);
    }
    return version;
  }
}

/** (AD2) */
function mayGive({ hostReady, underWay, underWayBytes }: VersionQueue): boolean {
  return hostReady && underWay < STARTS_UNDER_WAY_MAX && underWayBytes < STARTS_UNDER_WAY_BYTES_MAX;
}

/** Invocations that begin per ms: of the last whole window, or of this one as far as it has come. */
function ratePerMs(state: AppQueue, nowMs: number): number {
  const passedMs = Math.max(1, nowMs - state.windowStartMs);
  const now = state.begunInWindow / passedMs;
  return passedMs < THROUGHPUT_WINDOW_MS ? Math.max(state.begunPerMs, now) : now;
}
