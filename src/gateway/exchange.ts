// One request and its answer. Answers are written straight to the socket's response: Fastify routes, we answer.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ErrorData, PlatformError } from '../base/index.ts';
import { CONTENT_BYTES, CONTENT_JSON, isJsonType, type Payload } from '../protocol/index.ts';
import { type BodyRoom, BodyStalled, ClientGone, dropBody, hasBody, receiveBody } from './body.ts';
import type { ControlPlane, SyncOutcome } from './control-plane.ts';
import type { HostGuard } from './host-guard.ts';
import { checkJson, readJson } from './json-body.ts';
import {
  ANSWER_JOIN_BYTES_MAX,
  ANSWER_UNWATCHED_BYTES_MAX,
  type GatewayTiming,
  NAME_CHARS_MAX,
  REFUSED_BODY_KEEP_BYTES_MAX,
} from './limits.ts';
import { CONTENT_PROBLEM, platformErrorData, problemOf, problemText, retryAfterSeconds } from './problem.ts';
import { SlowAnswer } from './slow-answer.ts';
import type { OpenStream } from './streams.ts';

export interface GatewayLogEntry {
  readonly level: 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}
export type GatewayLog = (entry: GatewayLogEntry) => void;

/** What all exchanges of one gateway share. */
export interface Gate {
  readonly controlPlane: ControlPlane;
  readonly guard: HostGuard;
  readonly log: GatewayLog;
  readonly timing: GatewayTiming;
  readonly room: BodyRoom;
  readonly streams: Set<OpenStream>;
  /** Resolves when others had their turn. */
  readonly pause: () => Promise<void>;
  closing: boolean;
}

const NO_HEADERS: readonly string[] = [];

export class Exchange {
  readonly gate: Gate;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly #params: Readonly<Record<string, string | undefined>>;
  /** Goes into the header `antrail-session` of whatever is answered. */
  session: string | undefined;

  constructor(gate: Gate, req: IncomingMessage, res: ServerResponse, params: unknown) {
    this.gate = gate;
    this.req = req;
    this.res = res;
    this.#params = params as Record<string, string>;
  }

  /** A name in the path, decoded. */
  param(name: string): string {
    const value = this.#params[name];
    if (value === undefined || value.length === 0 || value.length > NAME_CHARS_MAX) {
      throw new PlatformError(
        'E_REQUEST_INVALID',
        `{${name}} in the path must have 1 to ${NAME_CHARS_MAX} characters, percent-encoded as one segment.`,
        { details: { parameter: name } },
      );
    }
    return value;
  }

  /** The session a client speaks of. One that could not be an id is not repeated in a header. */
  claimSession(session: string | undefined): void {
    if (session !== undefined && /^[\w-]{1,64}$/.test(session)) this.session = session;
  }

  header(name: string): string | undefined {
    const value = this.req.headers[name];
    return Array.isArray(value) ? value[0] : value;
  }

  /** The body as a value: JSON checked and otherwise as it came, or bytes. Empty: undefined. */
  async value(): Promise<Payload | undefined> {
    const bytes = await this.#body();
    if (bytes.length === 0) return undefined;
    const contentType = this.header('content-type') ?? CONTENT_BYTES;
    if (!isJson(contentType)) return { contentType, bytes };
    const checked = checkJson(bytes, this.gate.pause);
    if (checked !== undefined) await checked;
    return { contentType: CONTENT_JSON, bytes };
  }

  /** The body as a JSON object for the gateway itself, whatever type it claims. */
  async jsonObject(what: string): Promise<Record<string, unknown>> {
    const bytes = await this.#body();
    const value = bytes.length === 0 ? undefined : await readJson(bytes);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    throw new PlatformError('E_REQUEST_INVALID', `The body must be ${what}, as a JSON object.`);
  }

  #body(): Promise<Buffer> {
    if (this.req.headers.expect !== undefined && hasBody(this.req) && !this.isTooLong) this.res.writeContinue();
    return receiveBody(this.req, this.gate.controlPlane.bodyBytesMax, this.gate.room);
  }

  /** Of the body, as its sender says; 0 when it does not. */
  get announcedBytes(): number {
    return Number(this.req.headers['content-length'] ?? 0);
  }

  /** Refused by `value`, with its own code: no waiting would make it fit. */
  get isTooLong(): boolean {
    return this.announcedBytes > this.gate.controlPlane.bodyBytesMax;
  }

  json(status: number, value: unknown, headers: readonly string[] = NO_HEADERS): void {
    this.text(status, CONTENT_JSON, JSON.stringify(value), headers);
  }

  text(status: number, contentType: string, text: string, headers: readonly string[] = NO_HEADERS): void {
    this.bytes(status, contentType, Buffer.from(text), headers);
  }

  /** @param bytes not written to again by the caller. */
  bytes(status: number, contentType: string, bytes: Uint8Array, headers: readonly string[] = NO_HEADERS): void {
    const { res } = this;
    const length = bytes.byteLength;
    res.writeHead(status, this.#head(contentType, length, headers));
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, length);
    // As text of one-byte characters, headers and body are one write; as bytes they would be two.
    if (length <= ANSWER_JOIN_BYTES_MAX) res.end(buffer.toString('latin1'), 'latin1');
    else if (length <= ANSWER_UNWATCHED_BYTES_MAX) res.end(buffer);
    else new SlowAnswer(res, buffer, this.gate.room.watch, this.gate.timing.streamStallMs);
  }

  /** A value as HTTP has it: JSON as its bytes are, everything else as bytes. */
  payload(payload: Payload): void {
    this.bytes(200, isJson(payload.contentType) ? CONTENT_JSON : CONTENT_BYTES, payload.bytes);
  }

  outcome(outcome: SyncOutcome): void {
    if (outcome.ok) this.payload(outcome.payload);
    else this.problem(outcome.error, undefined, NO_HEADERS, true);
  }

  /** @param status where HTTP has a narrower one than the code's. */
  problem(error: ErrorData, status?: number, headers: readonly string[] = NO_HEADERS, ofSession = false): void {
    const { req } = this;
    const named = error.details?.session;
    if (this.session === undefined && typeof named === 'string') this.session = named;
    const session = error.code === 'E_SESSION_UNKNOWN' ? undefined : this.session;
    this.session = session;
    const problem = problemOf(error, session, status, ofSession);
    const retryAfter = retryAfterSeconds(problem);
    const more = retryAfter === undefined ? headers : [...headers, 'retry-after', String(retryAfter)];
    const text = problemText(problem);
    if (req.complete || !hasBody(req)) this.text(problem.status, CONTENT_PROBLEM, text, more);
    else this.#answerEarly(problem.status, text, more);
  }

  /** Answers while the body is still coming. The connection outlives it only if the body is small. */
  #answerEarly(status: number, text: string, headers: readonly string[]): void {
    const { res, req, gate } = this;
    const body = Buffer.from(text);
    const isWaiting = status === 408 || req.headers.expect !== undefined;
    const keep = !isWaiting && Number(req.headers['content-length']) <= REFUSED_BODY_KEEP_BYTES_MAX;
    res.writeHead(status, this.#head(CONTENT_PROBLEM, body.length, headers, !keep || gate.closing));
    // As text of one-byte characters, headers and body are one write.
    if (isWaiting) {
      res.end(body.toString('latin1'), 'latin1');
    } else if (keep) {
      res.end(body.toString('latin1'), 'latin1');
      dropBody(req, gate.room, (isComplete) => isComplete || req.destroy());
    } else {
      // Complete for the client, which may stop sending; ended when the body is.
      res.write(body);
      dropBody(req, gate.room, () => res.end());
    }
  }

  /** Whatever was thrown while answering. */
  fail(thrown: unknown): void {
    const { res } = this;
    if (thrown instanceof ClientGone) {
      res.destroy();
      return;
    }
    if (thrown instanceof BodyStalled) {
      const seconds = Math.round(this.gate.timing.bodyStallMs / 1_000);
      const message = `The body brought nothing for ${seconds} s; the request was given up.`;
      this.refuse({ code: 'E_REQUEST_INVALID', message }, 408);
      return;
    }
    const known = platformErrorData(thrown);
    if (known === undefined) {
      this.gate.log({
        level: 'error',
        message: 'a request failed for an unexpected reason',
        fields: { method: this.req.method, url: this.req.url, error: thrown },
      });
    }
    this.refuse(known ?? { code: 'E_INTERNAL', message: 'The server failed; its log says why.' });
  }

  refuse(error: ErrorData, status?: number): void {
    if (this.res.headersSent) this.res.destroy();
    else this.problem(error, status);
  }

  #head(contentType: string, length: number, more: readonly string[], last = this.gate.closing): string[] {
    const head = ['content-type', contentType, 'content-length', String(length)];
    if (this.session !== undefined) head.push('antrail-session', this.session);
    if (last) head.push('connection', 'close');
    if (more.length > 0) head.push(...more);
    return head;
  }
}

/** As isJsonType, and whatever case and spaces a client writes. */
export function isJson(contentType: string): boolean {
  if (isJsonType(contentType)) return true;
  const semicolon = contentType.indexOf(';');
  return (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase() === CONTENT_JSON;
}
