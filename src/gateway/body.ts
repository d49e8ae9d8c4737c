// Receives request bodies, and reads away those nobody wants.

import type { IncomingMessage } from 'node:http';
import { PlatformError } from '../base/index.ts';
import { BodyRequest, type BodySink } from './body-request.ts';
import { BODIES_UNDER_WAY_FACTOR, REFUSED_BODY_DROP_BYTES_MAX } from './limits.ts';
import type { Watch, Watched } from './watch.ts';

/** The client went away; nobody is left to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';
}

/** The body brought nothing for a while: 408. */
export class BodyStalled extends Error {
  override readonly name = 'BodyStalled';
}

/** What bodies of one gateway share. */
export interface BodyRoom {
  readonly watch: Watch;
  readonly bodyStallMs: number;
  /** Bytes of all bodies that are being received. */
  bytesUnderWay: number;
  /** Objects that are being read in parts. */
  objectReaders: number;
}

const EMPTY = Buffer.alloc(0);

export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return req.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/**
 * The whole body; a body of one chunk is that chunk, a longer one of announced length is copied once, as it comes.
 *
 * @throws E_BODY_TOO_LARGE before anything is read if the length is announced, else as soon as it is passed;
 *   E_QUOTA_EXCEEDED when all bodies under way together are too large; ClientGone; BodyStalled.
 */
export function receiveBody(req: IncomingMessage, bytesMax: number, room: BodyRoom): Promise<Buffer> {
  if (!hasBody(req)) return Promise.resolve(EMPTY);
  const announced = Number(req.headers['content-length'] ?? -1);
  if (announced > bytesMax) return Promise.reject(bodyTooLarge(bytesMax));
  return new Promise((resolve, reject) => {
    new BodyReceiver(req, announced, bytesMax, room, resolve, reject);
  });
}

class BodyReceiver implements Watched, BodySink {
  readonly #req: IncomingMessage;
  readonly #announced: number;
  readonly #bytesMax: number;
  readonly #room: BodyRoom;
  readonly #resolve: (body: Buffer) => void;
  readonly #reject: (reason: Error) => void;
  readonly #chunks: Buffer[] = [];
  /** Holds what came, from the second chunk on, if the length was announced. */
  #whole: Buffer | undefined;
  #bytes = 0;
  #bytesAtTick = 0;
  #ticksIdle = 0;
  /** The listeners, where the body must be read as a stream. */
  #stream: StreamListeners | undefined;

  constructor(
    req: IncomingMessage,
    announced: number,
    bytesMax: number,
    room: BodyRoom,
    resolve: (body: Buffer) => void,
    reject: (reason: Error) => void,
  ) {
    this.#req = req;
    this.#announced = announced;
    this.#bytesMax = bytesMax;
    this.#room = room;
    this.#resolve = resolve;
    this.#reject = reject;
    if (!(req instanceof BodyRequest && req.takeBody(this))) this.#stream = listen(req, this);
    room.watch.add(this);
  }

  tick(): void {
    this.#ticksIdle = this.#bytes === this.#bytesAtTick ? this.#ticksIdle + 1 : 0;
    this.#bytesAtTick = this.#bytes;
    if (this.#ticksIdle > this.#room.watch.ticksOf(this.#room.bodyStallMs)) this.#fail(new BodyStalled());
  }

  chunk(chunk: Buffer): void {
    const before = this.#bytes;
    this.#bytes += chunk.length;
    this.#room.bytesUnderWay += chunk.length;
    if (this.#bytes > this.#bytesMax) this.#fail(bodyTooLarge(this.#bytesMax));
    else if (this.#room.bytesUnderWay > this.#bytesMax * BODIES_UNDER_WAY_FACTOR) this.#fail(noRoom());
    else this.#keep(chunk, before);
  }

  #keep(chunk: Buffer, before: number): void {
    if (before === 0 || this.#announced < 0) {
      this.#chunks.push(chunk);
      return;
    }
    if (this.#whole === undefined) {
      // Asked for only when a second chunk is there: an announcement alone costs no memory.
      try {
        this.#whole = Buffer.allocUnsafeSlow(this.#announced);
      } catch {
        this.#fail(noRoom());
        return;
      }
      this.#chunks.pop()?.copy(this.#whole);
    }
    chunk.copy(this.#whole, before);
  }

  gone(): void {
    this.#fail(new ClientGone());
  }

  end(): void {
    this.#release();
    const [first] = this.#chunks;
    if (this.#whole !== undefined) this.#resolve(this.#whole);
    else if (this.#chunks.length === 1 && first !== undefined) this.#resolve(first);
    else this.#resolve(Buffer.concat(this.#chunks, this.#bytes));
  }

  #fail(reason: Error): void {
    this.#release();
    this.#reject(reason);
  }

  #release(): void {
    this.#room.bytesUnderWay -= this.#bytes;
    this.#room.watch.delete(this);
    if (this.#stream !== undefined) unlisten(this.#req, this.#stream);
    else (this.#req as BodyRequest).leaveBody();
  }
}

interface StreamListeners {
  readonly onData: (chunk: Buffer) => void;
  readonly onEnd: () => void;
  readonly onGone: () => void;
}

function listen(req: IncomingMessage, sink: BodySink): StreamListeners {
  const listeners = {
    onData: (chunk: Buffer) => sink.chunk(chunk),
    onEnd: () => sink.end(),
    onGone: () => sink.gone(),
  };
  req.on('data', listeners.onData);
  req.on('end', listeners.onEnd);
  req.on('error', listeners.onGone);
  req.on('close', listeners.onGone);
  return listeners;
}

function unlisten(req: IncomingMessage, { onData, onEnd, onGone }: StreamListeners): void {
  req.off('data', onData);
  req.off('end', onEnd);
  req.off('error', onGone);
  req.off('close', onGone);
}

/**
 * Reads and drops the rest of a body whose answer is already on its way: a connection that is closed with bytes unread
 * is reset, and the reset can overtake the answer. Ends at the body's end (`isComplete`), at REFUSED_BODY_DROP_BYTES_MAX, or at a stall.
 */
export function dropBody(req: IncomingMessage, room: BodyRoom, then: (isComplete: boolean) => void): void {
  let bytes = 0;
  let bytesAtTick = -1;
  const done = () => {
    room.watch.delete(stall);
    req.off('data', onData);
    req.off('end', done);
    req.off('close', done);
    then(req.complete);
  };
  const onData = (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > REFUSED_BODY_DROP_BYTES_MAX) done();
  };
  const stall: Watched = {
    tick() {
      if (bytes === bytesAtTick) done();
      bytesAtTick = bytes;
    },
  };
  req.on('error', () => {});
  req.on('data', onData);
  req.on('end', done);
  req.on('close', done);
  req.resume();
  room.watch.add(stall);
}

function bodyTooLarge(limitBytes: number): PlatformError {
  return new PlatformError(
    'E_BODY_TOO_LARGE',
    `The body is larger than ${limitBytes} bytes, the limit of one body. Send less, put the data into a bucket in ` +
      'parts, or raise `bodyBytesMax` in the configuration of the server (`antrail limits` shows it).',
    { details: { limitBytes } },
  );
}

function noRoom(): PlatformError {
  return new PlatformError('E_QUOTA_EXCEEDED', 'Too many bytes of bodies are under way at once; send this one later.', {
    retryAfterMs: 1_000,
  });
}
