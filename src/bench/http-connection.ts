// The least that an HTTP/1.1 client can do, so that it is never what is measured: one kept connection, requests as bytes
// made beforehand, answers found by their content-length.
//
// One request is on its way at a time. Only for servers of our own: no chunks, no trailers, no 1xx.

import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { PlatformError } from '../base/index.ts';

export interface Address {
  readonly host: string;
  readonly port: number;
}

const HEAD_END = Buffer.from('\r\n\r\n');
/** Of one answer: `content-length: ` in lower or upper case, then its digits. */
const LENGTH = /\r\ncontent-length: *(\d+)/i;

/** The bytes of one POST. */
export function requestBytes({ host, port }: Address, path: string, body: string): Buffer {
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: ${host}:${port}\r\ncontent-type: application/json\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

export class HttpConnection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #done: ((body: Buffer, status: number) => void) | undefined;
  #anyStatus = false;
  #fail: ((error: Error) => void) | undefined;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#take(chunk));
    socket.on('error', (error) => this.#end(error));
    socket.on('close', () => this.#end(new PlatformError('E_NODE_LOST', 'the server closed the connection')));
  }

  static async open({ host, port }: Address): Promise<HttpConnection> {
    const socket = createConnection({ host, port });
    await once(socket, 'connect');
    return new HttpConnection(socket);
  }

  /**
   * @param done gets the answer's body, a view that is valid until the next request. Called in the turn it arrived.
   * @param fail the connection is lost, or the status is not 200.
   */
  send(request: Buffer, done: (body: Buffer) => void, fail: (error: Error) => void): void {
    this.#anyStatus = false;
    this.#write(request, done, fail);
  }

  /** The same for who wants to be told of every answer, whatever its status. */
  sendAny(request: Buffer, done: (body: Buffer, status: number) => void, fail: (error: Error) => void): void {
    this.#anyStatus = true;
    this.#write(request, done, fail);
  }

  #write(request: Buffer, done: (body: Buffer, status: number) => void, fail: (error: Error) => void): void {
    this.#done = done;
    this.#fail = fail;
    if (this.#socket.destroyed) this.#end(new PlatformError('E_NODE_LOST', 'the connection is closed'));
    else this.#socket.write(request);
  }

  request(request: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => this.send(request, resolve, reject));
  }

  close(): void {
    this.#done = undefined;
    this.#fail = undefined;
    this.#socket.destroy();
  }

  #take(chunk: Buffer): void {
    const bytes = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const headEnd = bytes.indexOf(HEAD_END);
    const head = headEnd < 0 ? '' : bytes.toString('latin1', 0, headEnd);
    const length = LENGTH.exec(head)?.[1];
    if (headEnd >= 0 && length === undefined) {
      this.#end(new PlatformError('E_PROTOCOL', `an answer without content-length: ${head}`));
      return;
    }
    const bodyStart = headEnd + HEAD_END.length;
    if (headEnd < 0 || bytes.length < bodyStart + Number(length)) {
      this.#received = bytes;
      return;
    }
    this.#received = EMPTY;
    const body = bytes.subarray(bodyStart, bodyStart + Number(length));
    if (this.#anyStatus || head.startsWith('HTTP/1.1 200 ')) {
      const done = this.#done;
      this.#done = undefined;
      this.#fail = undefined;
      done?.(body, Number(head.slice(9, 12)));
    } else {
      this.#end(
        new PlatformError('E_INTERNAL', `${head.split('\r\n', 1)[0]}: ${body.toString('utf8').slice(0, 1_000)}`),
      );
    }
  }

  #end(error: Error): void {
    const fail = this.#fail;
    this.#done = undefined;
    this.#fail = undefined;
    this.#received = EMPTY;
    fail?.(error);
  }
}

const EMPTY = Buffer.alloc(0);
