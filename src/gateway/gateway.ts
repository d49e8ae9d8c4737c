// HTTP in, calls of the control plane out.
//
// Owns: routing, bodies, answers, streams, connection limits. Does not own: anything an answer says (ControlPlane).
//
// GW1. Every request gets exactly one answer, or its connection is closed.
// GW2. What refuses a request without looking at its body (host, path, query, announced length) does so before the body
//      is received.
// GW3. The gateway holds at most the bodies under way, one item per stream, and what the sockets have not taken.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { fastify } from 'fastify';
import { PlatformError } from '../base/index.ts';
import type { Clock, Timers } from '../platform/index.ts';
import { nodeClock, nodeTimers } from '../platform/node/index.ts';
import { BodyRequest } from './body-request.ts';
import type { ControlPlane } from './control-plane.ts';
import { Exchange, type Gate, type GatewayLog } from './exchange.ts';
import { HostGuard } from './host-guard.ts';
import {
  CLOSE_IDLE_PERIOD_MS,
  CONNECT_BACKLOG,
  CONNECTIONS_MAX,
  GATEWAY_TIMING,
  type GatewayTiming,
  HEADER_BYTES_MAX,
  HEADERS_TIMEOUT_MS,
  KEEP_ALIVE_TIMEOUT_MS,
  REQUEST_TIMEOUT_MS,
} from './limits.ts';
import { notFound } from './not-found.ts';
import { plainRoutes } from './plain-routes.ts';
import { portOwner } from './port-owner.ts';
import { CONTENT_PROBLEM, problemOf, problemText } from './problem.ts';
import { readQuery } from './query.ts';
import { methodsOf, type Route } from './route.ts';
import { ROUTES } from './routes.ts';
import { after, every, type Time, Watch } from './watch.ts';

export interface GatewayOptions {
  /** Address or name to listen at. */
  readonly host: string;
  /** 0 to 65535; 0 takes a free one. */
  readonly port: number;
  /** Host names beside loopback and `host` that requests may name, and whose pages may send them; `*` allows all. */
  readonly allowedHosts?: readonly string[];
  readonly log?: GatewayLog;
  /** Default: the machine's. */
  readonly clock?: Clock;
  readonly timers?: Timers;
  /** For tests. */
  readonly timing?: Partial<GatewayTiming>;
}

export interface Gateway {
  readonly url: string;
  readonly port: number;
  /** Takes no more connections, ends streams, lets running requests end for `closeGraceMs`, then cuts. Idempotent. */
  close(): Promise<void>;
}

/** Resolves once it listens. @throws E_PORT_IN_USE. */
export async function createGateway(controlPlane: ControlPlane, options: GatewayOptions): Promise<Gateway> {
  const timing = { ...GATEWAY_TIMING, ...options.timing };
  const time: Time = { clock: options.clock ?? nodeClock, timers: options.timers ?? nodeTimers };
  const watch = new Watch(time, timing.tickMs);
  const gate: Gate = {
    controlPlane,
    guard: new HostGuard(options.host, options.allowedHosts ?? []),
    log: options.log ?? (() => {}),
    timing,
    room: { watch, bodyStallMs: timing.bodyStallMs, bytesUnderWay: 0, objectReaders: 0 },
    streams: new Set(),
    pause: () => new Promise((resolve) => after(time, 0, resolve)),
    closing: false,
  };
  const servers: Server[] = [];
  const sockets = new Set<Socket>();
  const app = routed(gate, servers, sockets);
  try {
    await app.listen({ host: options.host, port: options.port, backlog: CONNECT_BACKLOG });
  } catch (error) {
    await app.close();
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') throw await portInUse(options.host, options.port);
    throw error;
  }
  const port = (app.server.address() as AddressInfo).port;
  let closed: Promise<void> | undefined;
  return {
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    port,
    close() {
      closed ??= closeGate(gate, time, () => app.close(), servers, sockets);
      return closed;
    },
  };
}

function routed(gate: Gate, servers: Server[], sockets: Set<Socket>) {
  const findPlain = plainRoutes(ROUTES);
  const app = fastify({
    logger: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    // A path segment ends where the header does; names are measured decoded (NAME_CHARS_MAX).
    routerOptions: { maxParamLength: HEADER_BYTES_MAX },
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    clientErrorHandler: (error, socket) => afterEarlier(error, socket),
    frameworkErrors: (error, request, reply) => {
      reply.hijack();
      const message = `The path is not valid: ${error.message}. Percent-encode each name as one segment.`;
      new Exchange(gate, request.raw, reply.raw, {}).refuse({ code: 'E_REQUEST_INVALID', message });
    },
    serverFactory: (handler) => {
      const server = newServer((req, res) => {
        const found = findPlain(req.method, req.url);
        if (found === undefined) handler(req, res);
        else answerBy(found.route, new Exchange(gate, req, res, found.params));
      });
      servers.push(server);
      server.on('connection', (socket: Socket) => {
        sockets.add(socket);
        socket.once('close', () => sockets.delete(socket));
      });
      return server;
    },
  });
  for (const route of ROUTES) {
    // Answered in onRequest, the first thing Fastify calls: before it looks at the body (GW2).
    const options = {
      method: methodsOf(route),
      url: route.path.replaceAll(/\{(\w+)\}/g, ':$1'),
      onRequest: (
        request: { raw: IncomingMessage; params: unknown },
        reply: { raw: ServerResponse; hijack(): void },
      ) => {
        reply.hijack();
        answerBy(route, new Exchange(gate, request.raw, reply.raw, request.params));
      },
      handler: () => {},
    };
    app.route(options);
  }
  app.addHook('onRequest', (request, reply, done) => {
    if (!request.is404) return done();
    reply.hijack();
    answerNotFound(new Exchange(gate, request.raw, reply.raw, {}));
  });
  return app;
}

function answerBy(route: Route, exchange: Exchange): void {
  try {
    admit(exchange);
    const query = readQuery(route.query ?? {}, exchange.req.url ?? '');
    route.answer(exchange, query).catch((thrown: unknown) => exchange.fail(thrown));
  } catch (thrown) {
    exchange.fail(thrown);
  }
}

function answerNotFound(exchange: Exchange): void {
  try {
    admit(exchange);
    const { req } = exchange;
    const { error, status, allow } = notFound(req.method ?? '', req.url ?? '', ROUTES);
    exchange.problem(error, status, allow === undefined ? [] : ['allow', allow]);
  } catch (thrown) {
    exchange.fail(thrown);
  }
}

/** @throws E_FORBIDDEN, E_SHUTTING_DOWN. */
function admit({ gate, req }: Exchange): void {
  gate.guard.check(req);
  if (gate.closing) {
    throw new PlatformError('E_SHUTTING_DOWN', 'The server is shutting down; send the request again later.', {
      retryAfterMs: 1_000,
    });
  }
}

function newServer(handler: (req: IncomingMessage, res: ServerResponse) => void): Server {
  const server = createServer(
    {
      IncomingMessage: BodyRequest,
      maxHeaderSize: HEADER_BYTES_MAX,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      noDelay: true,
      // Missing, it is refused by HostGuard, in our words.
      requireHostHeader: false,
    },
    handler,
  );
  server.maxConnections = CONNECTIONS_MAX;
  // HEADER_BYTES_MAX bounds them. Node would leave out those beyond a number, without a word: a body's length, a key.
  server.maxHeadersCount = 0;
  // "100 Continue" is sent when the body is wanted, not before.
  server.on('checkContinue', handler);
  return server;
}

/** Answers behind which garbage waits: once, however much of it comes. */
const waitingGarbage = new WeakSet<ServerResponse>();

/**
 * What is no HTTP request, behind requests that are still being answered, waits for its turn: before it, its refusal would
 * be read as the answer of one that is executed, or stand in the middle of one.
 */
function afterEarlier(error: Error & { code?: string }, socket: Socket): void {
  // The answer whose turn it is. Of a request whose own body is garbage, if that is not there yet.
  const earlier = (socket as { _httpMessage?: ServerResponse | null })._httpMessage;
  if (earlier?.req.complete === true) {
    if (waitingGarbage.has(earlier)) return;
    waitingGarbage.add(earlier);
    earlier.once('close', () => afterEarlier(error, socket));
  } else if (earlier?.headersSent === true) socket.destroy();
  else answerGarbage(error, socket);
}

/** Answered by hand, since there is no response object for it. */
function answerGarbage(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, reason, message] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? [431, 'Request Header Fields Too Large', `Request line and headers are above ${HEADER_BYTES_MAX} bytes.`]
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [408, 'Request Timeout', 'The request did not come in time.']
        : [400, 'Bad Request', 'This is not an HTTP/1.1 request.'];
  const body = problemText(
    problemOf({ code: 'E_REQUEST_INVALID', message: message as string }, undefined, status as number),
  );
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: ${CONTENT_PROBLEM}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
}

async function closeGate(
  gate: Gate,
  time: Time,
  closeApp: () => Promise<void>,
  servers: readonly Server[],
  sockets: ReadonlySet<Socket>,
): Promise<void> {
  gate.closing = true;
  for (const stream of gate.streams) stream.close();
  // A connection becomes idle when its last answer is out; nobody else closes it then.
  const stopIdle = every(time, CLOSE_IDLE_PERIOD_MS, () => {
    for (const server of servers) server.closeIdleConnections();
    // Clients that open connections ahead of need: to Node one that has not asked anything yet is not idle.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy();
  });
  const stopGrace = after(time, gate.timing.closeGraceMs, () => {
    for (const server of servers) server.closeAllConnections();
  });
  try {
    await closeApp();
  } finally {
    stopGrace();
    stopIdle();
  }
  gate.room.watch.close();
}

async function portInUse(host: string, port: number): Promise<PlatformError> {
  const owner = await portOwner(port);
  const by = owner === undefined ? 'by another program' : `by ${owner}`;
  return new PlatformError(
    'E_PORT_IN_USE',
    `Port ${port} of ${host} is in use ${by}. Choose another with \`--port N\`, or \`--port 0\` for a free one.`,
    { details: { host, port, ...(owner === undefined ? {} : { owner }) } },
  );
}
