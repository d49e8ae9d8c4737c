// The life of one app host: one process per app version.
//
// Owns: whether a process is wanted, when the next one starts, when one is given up.
// Does not own: the process and its socket (supervisor), the sessions on it (coordinator).
//
// HL1. At most one process lives at a time: `spawn` comes only when none does.
// HL2. Every `tell-ready` is followed by one `tell-lost` before the next, and by it at the latest before `spawn`.
// HL3. After `n` deaths in a row the next start waits at least backOffMs(n) / 2; a healthy run begins the count anew.
//
//             needed               ready                unused
//   stopped ─────────▶ starting ─────────▶ ready ─────────────────▶ draining ──▶ stopped
//      ▲                  │ died             │ died                     │ needed meanwhile, then died
//      │ not needed       ▼                  ▼                          ▼
//      └───────────── backing-off ◀──────────┘                       starting

import { assert, type ErrorData, type MonotonicMs, unreachable } from '../base/index.ts';
import { BACK_OFF_MS_MAX, BACK_OFF_MS_MIN, DRAIN_MS_MAX, HEALTHY_MS, START_MS_MAX, STOP_MS_MAX } from './limits.ts';

export type HostState = 'starting' | 'ready' | 'draining' | 'backing-off' | 'stopped';

const MOVES: Readonly<Record<HostState, readonly HostState[]>> = {
  stopped: ['starting'],
  starting: ['ready', 'backing-off', 'draining'],
  ready: ['backing-off', 'draining'],
  draining: ['stopped', 'starting'],
  'backing-off': ['starting', 'stopped'],
};

export type HostLifeEvent =
  /** A session, a validation or a deploy waits for it. */
  | { readonly type: 'needed' }
  | { readonly type: 'ready' }
  /** The bundle could not be loaded; the process is of no use. */
  | { readonly type: 'load-failed'; readonly error: ErrorData }
  /** The process has ended and everything that it sent has been read. */
  | { readonly type: 'exited'; readonly error: ErrorData }
  /** Its connection broke while the process may live. */
  | { readonly type: 'disconnected' }
  | { readonly type: 'unused' }
  /** For good: the app or the server goes. */
  | { readonly type: 'stop' }
  | { readonly type: 'timer-fired' };

export type HostLifeEffect =
  | { readonly type: 'spawn' }
  | { readonly type: 'kill'; readonly signal: 'SIGTERM' | 'SIGKILL' }
  /** Replaces the one before; undefined: none. */
  | { readonly type: 'set-timer'; readonly atMs: MonotonicMs | undefined }
  | { readonly type: 'send-drain' }
  | { readonly type: 'tell-ready' }
  | {
      readonly type: 'tell-lost';
      readonly phase: 'starting' | 'ready';
      /** It was told to go: nobody needs to know but those who had work on it. */
      readonly planned: boolean;
      readonly error: ErrorData;
    };

export class HostLife {
  #state: HostState = 'stopped';
  #needed = false;
  #stopping = false;
  #deaths = 0;
  #readySinceMs: MonotonicMs | undefined;
  #loadError: ErrorData | undefined;
  #timedOut = false;
  readonly #jitter: () => number;

  /** @param jitter 0 to 1, anew at each call. */
  constructor(jitter: () => number) {
    this.#jitter = jitter;
  }

  get state(): HostState {
    return this.#state;
  }

  get deaths(): number {
    return this.#deaths;
  }

  handle(event: HostLifeEvent, nowMs: MonotonicMs): HostLifeEffect[] {
    const effects: HostLifeEffect[] = [];
    switch (event.type) {
      case 'needed':
        if (this.#stopping) return effects;
        this.#needed = true;
        if (this.#state === 'stopped') this.#start(nowMs, effects);
        return effects;
      case 'ready':
        if (this.#state !== 'starting' || this.#loadError !== undefined || this.#timedOut) return effects;
        this.#move('ready');
        this.#readySinceMs = nowMs;
        this.#needed = false;
        effects.push({ type: 'set-timer', atMs: undefined }, { type: 'tell-ready' });
        return effects;
      case 'load-failed':
        if (this.#state !== 'starting') return effects;
        this.#loadError = event.error;
        effects.push({ type: 'kill', signal: 'SIGKILL' });
        return effects;
      case 'disconnected':
        effects.push({ type: 'kill', signal: 'SIGKILL' });
        return effects;
      case 'exited':
        this.#exited(event.error, nowMs, effects);
        return effects;
      case 'unused':
        if (this.#state === 'backing-off') this.#needed = false;
        if (this.#state === 'ready' && !this.#needed) {
          const message = 'The app host is draining: nothing uses its version any more.';
          this.#retire('send-drain', { code: 'E_NODE_LOST', message }, (nowMs + DRAIN_MS_MAX) as MonotonicMs, effects);
        }
        return effects;
      case 'stop':
        this.#stop(nowMs, effects);
        return effects;
      case 'timer-fired':
        if (this.#state === 'backing-off') {
          if (this.#needed) this.#start(nowMs, effects);
          else this.#move('stopped');
        } else if (this.#state === 'starting') {
          this.#timedOut = true;
          effects.push({ type: 'kill', signal: 'SIGKILL' });
        } else if (this.#state === 'draining') {
          effects.push({ type: 'kill', signal: 'SIGKILL' });
        }
        return effects;
      default:
        return unreachable(event, 'HostLifeEvent');
    }
  }

  #start(nowMs: MonotonicMs, effects: HostLifeEffect[]): void {
    this.#move('starting');
    this.#loadError = undefined;
    this.#timedOut = false;
    effects.push({ type: 'spawn' }, { type: 'set-timer', atMs: (nowMs + START_MS_MAX) as MonotonicMs });
  }

  #retire(how: 'send-drain' | 'kill', error: ErrorData, untilMs: MonotonicMs, effects: HostLifeEffect[]): void {
    const phase = this.#state === 'ready' ? 'ready' : 'starting';
    this.#move('draining');
    effects.push(how === 'kill' ? { type: 'kill', signal: 'SIGTERM' } : { type: 'send-drain' });
    effects.push({ type: 'set-timer', atMs: untilMs }, { type: 'tell-lost', phase, planned: true, error });
  }

  #stop(nowMs: MonotonicMs, effects: HostLifeEffect[]): void {
    this.#stopping = true;
    this.#needed = false;
    if (this.#state === 'backing-off') {
      this.#move('stopped');
      effects.push({ type: 'set-timer', atMs: undefined });
    } else if (this.#state === 'starting' || this.#state === 'ready') {
      const message = 'The app host was stopped.';
      this.#retire('kill', { code: 'E_NODE_LOST', message }, (nowMs + STOP_MS_MAX) as MonotonicMs, effects);
    } else if (this.#state === 'draining') {
      effects.push({ type: 'kill', signal: 'SIGTERM' });
      effects.push({ type: 'set-timer', atMs: (nowMs + STOP_MS_MAX) as MonotonicMs });
    }
  }

  #exited(exit: ErrorData, nowMs: MonotonicMs, effects: HostLifeEffect[]): void {
    if (this.#state === 'draining') {
      if (this.#needed) {
        this.#start(nowMs, effects);
      } else {
        this.#move('stopped');
        effects.push({ type: 'set-timer', atMs: undefined });
      }
      return;
    }
    const phase = this.#state === 'ready' ? 'ready' : 'starting';
    const healthy = this.#readySinceMs !== undefined && nowMs - this.#readySinceMs >= HEALTHY_MS;
    this.#readySinceMs = undefined;
    this.#deaths = healthy ? 0 : this.#deaths + 1;
    this.#move('backing-off');
    const pauseMs = backOffMs(this.#deaths) * (1 - this.#jitter() / 2); // (HL3)
    effects.push({ type: 'set-timer', atMs: (nowMs + pauseMs) as MonotonicMs });
    const timeout: ErrorData = { code: 'E_NODE_LOST', message: `It was not ready within ${START_MS_MAX} ms.` };
    const error = this.#loadError ?? (this.#timedOut ? { ...exit, ...timeout } : exit);
    effects.push({ type: 'tell-lost', phase, planned: false, error });
  }

  #move(to: HostState): void {
    assert(MOVES[this.#state].includes(to), `an app host may go from ${this.#state} to ${to}`);
    this.#state = to;
  }
}

/** The pause before the start that follows `deaths` deaths in a row, without jitter. */
export function backOffMs(deaths: number): number {
  if (deaths === 0) return 0;
  return Math.min(BACK_OFF_MS_MAX, BACK_OFF_MS_MIN * 2 ** Math.min(30, deaths - 1));
}
