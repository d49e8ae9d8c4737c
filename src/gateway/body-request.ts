// A request whose body goes straight to who receives it.
//
// IncomingMessage queues each chunk, tells of it by events and looks after it in ticks of its own: for a body of one chunk
// that costs more than everything else that is done with it. `push` is where the parser hands chunks over.

import { IncomingMessage } from 'node:http';

export interface BodySink {
  chunk(bytes: Buffer): void;
  /** The last chunk was given. Not after `gone`. */
  end(): void;
  /** The client went away, or the connection was closed, before the end. */
  gone(): void;
}

export class BodyRequest extends IncomingMessage {
  #sink: BodySink | undefined;
  #isTaken = false;

  /**
   * The body goes to `sink` from here on, unless the stream has begun to collect it.
   * @returns false: read the stream.
   */
  takeBody(sink: BodySink): boolean {
    if (this.complete || this.readableLength > 0 || this.readableFlowing === true || this.destroyed) return false;
    this.#sink = sink;
    // Node reads away what nobody asked for, unless it knows that somebody did.
    (this as { _consumed?: boolean })._consumed = true;
    return true;
  }

  /** What comes from here on goes to the stream. */
  leaveBody(): void {
    this.#sink = undefined;
  }

  /** The whole body was given to a sink: what the stream calls `readableEnded`. */
  get isBodyTaken(): boolean {
    return this.#isTaken;
  }

  override push(chunk: Buffer | null, encoding?: BufferEncoding): boolean {
    const sink = this.#sink;
    if (sink === undefined) return super.push(chunk, encoding);
    if (chunk !== null) sink.chunk(chunk);
    else {
      this.#sink = undefined;
      this.#isTaken = true;
      sink.end();
    }
    return true;
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.gone();
    super._destroy(error, callback);
  }
}

const ofStream = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(IncomingMessage.prototype), 'readableEnded');
// Node takes a request whose body was not read to its end for one that was cut off.
Object.defineProperty(BodyRequest.prototype, 'readableEnded', {
  configurable: true,
  get(this: BodyRequest): boolean {
    return this.isBodyTaken || ofStream?.get?.call(this) === true;
  },
});
