import { PlatformError } from '../base/index.ts';
import { RECONNECT_MAX_MS, RECONNECT_MIN_MS, RECONNECTS_MAX } from './limits.ts';
import { pause } from './pause.ts';
import type { Transport } from './transport.ts';

/** Decides, for requests that may be repeated, whether a broken connection is worth another try, and waits for it. */
export class Reconnect {
  readonly #transport: Transport;
  #failures = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** News came: the count of failures in a row begins again. */
  progressed(): void {
    this.#failures = 0;
  }

  /** Waits with growing pauses; rethrows what is not a lost connection, or was lost too often. */
  async waitOrThrow(thrown: unknown, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) throw signal.reason;
    if (!isLostConnection(thrown) || !this.#transport.wasReached || this.#failures >= RECONNECTS_MAX) throw thrown;
    await pause(Math.min(RECONNECT_MIN_MS * 2 ** this.#failures++, RECONNECT_MAX_MS), signal);
  }
}

/** Of codes that may also be a session's own end only these two speak of the connection. */
function isLostConnection(thrown: unknown): boolean {
  if (thrown instanceof PlatformError) {
    return thrown.code === 'E_SERVER_UNREACHABLE' || thrown.code === 'E_SHUTTING_DOWN';
  }
  // A body that broke off: fetch rejects its reader with a TypeError (`terminated`, `network error`).
  return thrown instanceof TypeError;
}
