// Answers without an end in sight: server-sent events and lines of JSON.
//
// ST1. At most one item is held per stream: the next one is asked for when the socket has taken the last.
// ST2. A stream ends when its source ends, its reader goes or stalls, or the gateway closes; its signal aborts then.

import { once } from 'node:events';
import { PlatformError } from '../base/index.ts';
import type { Exchange } from './exchange.ts';
import { STREAMS_MAX } from './limits.ts';
import { platformErrorData, problemOf, problemText } from './problem.ts';
import type { Watched } from './watch.ts';

export interface StreamShape<T> {
  readonly contentType: string;
  /** Written when nothing else is, if the format has something that means nothing. */
  readonly heartbeat?: string;
  readonly write: (item: T) => string;
  /** Written when the source has ended by itself. */
  readonly end?: string;
  /** How an error of the source is told, if the format can. */
  readonly problem?: (text: string) => string;
}

export class OpenStream implements Watched {
  readonly #exchange: Exchange;
  readonly #abort = new AbortController();
  readonly #heartbeat: string | undefined;
  #stopWaiting: (() => void) | undefined;
  #ticksIdle = 0;
  #ticksStalled = 0;

  /** @throws E_RATE_LIMITED beyond STREAMS_MAX. */
  constructor(exchange: Exchange, heartbeat: string | undefined) {
    const { gate, res } = exchange;
    if (gate.streams.size >= STREAMS_MAX) {
      throw new PlatformError('E_RATE_LIMITED', `${STREAMS_MAX} streams are open, which is the limit; close some.`, {
        retryAfterMs: 5_000,
      });
    }
    this.#exchange = exchange;
    this.#heartbeat = heartbeat;
    gate.streams.add(this);
    gate.room.watch.add(this);
    res.on('close', () => this.close());
    if (res.destroyed || gate.closing) this.close();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Idempotent. */
  close(): void {
    const { gate } = this.#exchange;
    gate.streams.delete(this);
    gate.room.watch.delete(this);
    this.#abort.abort();
    this.#stopWaiting?.();
  }

  /** The next item, or undefined once the stream is closed, even if the source ignores its signal. */
  next<T>(source: AsyncIterator<T>): Promise<IteratorResult<T> | undefined> {
    return new Promise((resolve, reject) => {
      this.#stopWaiting = () => resolve(undefined);
      source.next().then(resolve, reject);
    });
  }

  tick(): void {
    const { res, gate } = this.#exchange;
    const { watch } = gate.room;
    if (res.writableNeedDrain) {
      if (++this.#ticksStalled > watch.ticksOf(gate.timing.streamStallMs)) res.destroy();
      return;
    }
    if (++this.#ticksIdle < watch.ticksOf(gate.timing.heartbeatMs)) return;
    this.#ticksIdle = 0;
    if (this.#heartbeat !== undefined) res.write(this.#heartbeat);
  }

  /** Resolves when the socket wants more (ST1). */
  async write(text: string): Promise<void> {
    const { res } = this.#exchange;
    this.#ticksIdle = 0;
    if (!res.write(text)) await once(res, 'drain', { signal: this.signal });
    this.#ticksStalled = 0;
  }
}

/** Opens the answer and copies `open(signal)` into it until one of them ends (ST2). @throws what `open` refuses at once. */
export async function streamAnswer<T>(
  exchange: Exchange,
  shape: StreamShape<T>,
  open: (signal: AbortSignal) => AsyncIterable<T>,
): Promise<void> {
  const { res } = exchange;
  const stream = new OpenStream(exchange, shape.heartbeat);
  let source: AsyncIterator<T>;
  try {
    source = open(stream.signal)[Symbol.asyncIterator]();
  } catch (refusal) {
    stream.close();
    throw refusal;
  }
  const head = ['content-type', shape.contentType, 'cache-control', 'no-store', 'x-accel-buffering', 'no'];
  if (exchange.session !== undefined) head.push('antrail-session', exchange.session);
  res.writeHead(200, head);
  res.flushHeaders();
  try {
    while (!stream.signal.aborted) {
      const next = await stream.next(source);
      if (next === undefined) {
        // Not awaited: a source that ignores its signal must not hold the connection.
        source.return?.().catch(() => {});
        break;
      }
      if (next.done === true) {
        if (shape.end !== undefined) await stream.write(shape.end);
        break;
      }
      await stream.write(shape.write(next.value));
    }
    res.end();
  } catch (thrown) {
    if (stream.signal.aborted) res.end();
    else endBroken(exchange, shape, thrown);
  } finally {
    stream.close();
  }
}

/** A reader must be able to tell a broken stream from one that ended. */
function endBroken<T>(exchange: Exchange, shape: StreamShape<T>, thrown: unknown): void {
  const known = platformErrorData(thrown);
  if (known === undefined) {
    exchange.gate.log({ level: 'error', message: 'a stream failed', fields: { url: exchange.req.url, error: thrown } });
  }
  if (shape.problem === undefined || known === undefined) exchange.res.destroy();
  else exchange.res.end(shape.problem(problemText(problemOf(known, exchange.session))));
}
