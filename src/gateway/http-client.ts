// Requests of the gateway's tests: plain node:http and raw sockets, so that nothing is mended on the way.

import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly json: () => any;
}

export interface Sent {
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
  /** Sent one after the other, without content-length. */
  readonly chunks?: readonly Uint8Array[];
}

export function send(url: string, method: string, path: string, sent: Sent = {}): Promise<Answer> {
  const { body, chunks, headers = {} } = sent;
  const { hostname, port } = new URL(url);
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const req = request({ host: hostname, port, method, path, agent: false, headers: { ...length, ...headers } });
    req.on('error', reject);
    req.on('response', (res) => {
      const parts: Buffer[] = [];
      res.on('data', (part: Buffer) => parts.push(part));
      res.on('error', reject);
      res.on('end', () => {
        const whole = Buffer.concat(parts);
        const json = () => JSON.parse(whole.toString('utf8'));
        resolve({ status: res.statusCode ?? 0, headers: res.headers, body: whole, json });
      });
    });
    for (const chunk of chunks ?? []) req.write(chunk);
    req.end(body);
  });
}

/** Everything the server says to these bytes until it closes. */
export function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes));
    let said = '';
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      said += text;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(said));
  });
}
