// The one table of error codes: kind, HTTP status, title. `docs/errors.md` has cause and remedy per code, and a
// test proves table and page equal. Codes are compared, messages never.

export type ErrorKind =
  | 'usage'
  | 'function'
  | 'overload'
  | 'transient'
  | 'fenced'
  | 'cancelled'
  | 'corrupt'
  | 'internal';

interface ErrorRow {
  readonly kind: ErrorKind;
  /** HTTP status of the answer that carries this code. */
  readonly status: number;
  readonly title: string;
}

export const ERROR_TABLE = {
  E_JSON_INVALID: { kind: 'usage', status: 400, title: 'The body is not valid JSON' },
  E_REQUEST_INVALID: { kind: 'usage', status: 400, title: 'The request is malformed' },
  E_UNAUTHENTICATED: { kind: 'usage', status: 401, title: 'A token is needed' },
  E_FORBIDDEN: { kind: 'usage', status: 403, title: 'This is not allowed' },
  E_APP_UNKNOWN: { kind: 'usage', status: 404, title: 'No such application' },
  E_FUNCTION_UNKNOWN: { kind: 'usage', status: 404, title: 'No such function' },
  E_BUCKET_UNKNOWN: { kind: 'usage', status: 404, title: 'No such bucket' },
  E_TRIGGER_UNKNOWN: { kind: 'usage', status: 404, title: 'No such trigger' },
  E_OBJECT_UNKNOWN: { kind: 'usage', status: 404, title: 'No such object' },
  E_OBJECT_GONE: { kind: 'usage', status: 404, title: 'The object was freed' },
  E_SESSION_UNKNOWN: { kind: 'usage', status: 404, title: 'No such session' },
  E_SESSION_LOST: { kind: 'transient', status: 404, title: 'The session was lost in a restart' },
  E_DEAD_LETTER_UNKNOWN: { kind: 'usage', status: 404, title: 'No such dead letter' },
  E_KEY_UNKNOWN: { kind: 'usage', status: 404, title: 'No such key' },
  E_OBJECT_EXISTS: {
    kind: 'usage',
    status: 409,
    title: 'The object exists with other content or from another invocation',
  },
  E_SESSION_ENDED: { kind: 'usage', status: 409, title: 'The session has ended' },
  E_IDEMPOTENCY_MISMATCH: { kind: 'usage', status: 409, title: 'The idempotency key was used with another body' },
  E_CANCELLED: { kind: 'cancelled', status: 409, title: 'Cancelled' },
  E_PARKED: { kind: 'transient', status: 409, title: 'The session is parked' },
  E_BODY_TOO_LARGE: { kind: 'usage', status: 413, title: 'The body is above the limit' },
  E_INPUT_INVALID: { kind: 'usage', status: 422, title: 'The input does not fit its schema' },
  E_APP_INVALID: { kind: 'usage', status: 422, title: 'The application is not valid' },
  E_RATE_LIMITED: { kind: 'overload', status: 429, title: 'Too many requests' },
  E_QUOTA_EXCEEDED: { kind: 'overload', status: 429, title: 'A quota is used up' },
  E_FUNCTION_FAILED: { kind: 'function', status: 500, title: 'The function failed' },
  E_INTERNAL: { kind: 'internal', status: 500, title: 'Internal error' },
  E_QUEUE_FULL: { kind: 'overload', status: 503, title: 'The queue is full' },
  E_NODE_LOST: { kind: 'transient', status: 503, title: 'The node or app host was lost' },
  E_SHUTTING_DOWN: { kind: 'transient', status: 503, title: 'The server is shutting down' },
  E_TIMEOUT: { kind: 'transient', status: 504, title: 'Out of time' },
  E_FENCED: { kind: 'fenced', status: 409, title: 'The attempt was overtaken' },
  E_CHECKSUM: { kind: 'corrupt', status: 500, title: 'Bytes fail their check' },
  E_PROTOCOL: { kind: 'corrupt', status: 500, title: 'A message breaks the protocol' },
  E_OPTION_INVALID: { kind: 'usage', status: 400, title: 'An option is not valid' },
  E_VALUE_UNSERIALISABLE: { kind: 'usage', status: 400, title: 'A value cannot be serialised' },
  E_PORT_IN_USE: { kind: 'usage', status: 500, title: 'The port is in use' },
  E_DATA_IN_USE: { kind: 'usage', status: 500, title: 'The data folder is in use by another server' },
  E_SERVER_UNREACHABLE: { kind: 'transient', status: 503, title: 'The server cannot be reached' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERROR_TABLE;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_TABLE, code);
}

export interface PlatformErrorOptions {
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class PlatformError extends Error {
  override readonly name = 'PlatformError';
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly retryAfterMs: number | undefined;

  /** @param detail one sentence for people: what happened and what to do about it. */
  constructor(code: ErrorCode, detail: string, options: PlatformErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
    this.retryAfterMs = options.retryAfterMs;
  }

  get kind(): ErrorKind {
    return ERROR_TABLE[this.code].kind;
  }

  get status(): number {
    return ERROR_TABLE[this.code].status;
  }
}

/** An error as plain data: what crosses threads, processes and the network. */
export interface ErrorData {
  readonly code: ErrorCode;
  /** The user's message for E_FUNCTION_FAILED, else ours. */
  readonly message: string;
  /** Class name of the original error, for example `TypeError`. */
  readonly name?: string;
  /** Source-mapped. Display only: nothing may branch on it. */
  readonly stack?: string;
  /** Innermost last. */
  readonly cause?: ErrorData;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly retryAfterMs?: number;
  /** True when the thrower said that retries are pointless (`TerminalError`). */
  readonly terminal?: boolean;
}

export const ERROR_CAUSES_MAX = 8;
export const ERROR_STACK_CHARS_MAX = 8_192;

/**
 * Turns anything thrown into plain data. Errors of the platform keep their code; everything else gets `code`.
 * Cause chains deeper than ERROR_CAUSES_MAX are cut. Never throws, whatever its getters and traps do: what cannot be read
 * is left out.
 */
export function toErrorData(thrown: unknown, code: ErrorCode = 'E_INTERNAL', depth = 0): ErrorData {
  if (!isError(thrown)) {
    return { code, message: typeof thrown === 'string' ? thrown : `thrown: ${safeString(thrown)}` };
  }
  const own = read(thrown, 'code');
  const name = textOf(read(thrown, 'name')) ?? 'Error';
  const platform = name === 'PlatformError' && isErrorCode(own);
  const details = platform ? read(thrown, 'details') : undefined;
  const retryAfterMs = platform ? read(thrown, 'retryAfterMs') : undefined;
  const stack = textOf(read(thrown, 'stack'));
  const cause = depth >= ERROR_CAUSES_MAX ? undefined : read(thrown, 'cause');
  return {
    code: platform ? own : code,
    message: textOf(read(thrown, 'message')) || name,
    name,
    ...(stack === undefined ? {} : { stack: stack.slice(0, ERROR_STACK_CHARS_MAX) }),
    ...(cause === undefined ? {} : { cause: toErrorData(cause, code, depth + 1) }),
    ...(isFilled(details) ? { details } : {}),
    ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}),
    ...(name === 'TerminalError' ? { terminal: true } : {}),
  };
}

/**
 * What a user's call was refused for: without the stack, which is ours and says nothing about the call. A bug keeps it.
 */
export function refusalData(thrown: unknown): ErrorData {
  const { stack, ...data } = toErrorData(thrown);
  return data.code === 'E_INTERNAL' && stack !== undefined ? { ...data, stack } : data;
}

/** The way back, for callers that throw. */
export function fromErrorData(data: ErrorData): PlatformError {
  const error = new PlatformError(data.code, data.message, {
    ...(data.details === undefined ? {} : { details: data.details }),
    ...(data.retryAfterMs === undefined ? {} : { retryAfterMs: data.retryAfterMs }),
    ...(data.cause === undefined ? {} : { cause: fromErrorData(data.cause) }),
  });
  if (data.stack !== undefined) error.stack = data.stack;
  return error;
}

function isError(thrown: unknown): thrown is Error {
  try {
    return thrown instanceof Error;
  } catch {
    return false;
  }
}

function read(thrown: Error, key: string): unknown {
  try {
    return (thrown as unknown as Record<string, unknown>)[key];
  } catch {
    return undefined;
  }
}

function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === 'string' ? value : safeString(value);
}

function isFilled(details: unknown): details is Record<string, unknown> {
  try {
    return typeof details === 'object' && details !== null && Object.keys(details).length > 0;
  } catch {
    return false;
  }
}

function safeString(value: unknown): string {
  try {
    return typeof value === 'object' ? JSON.stringify(value) : String(value);
  } catch {
    return safeTag(value);
  }
}

function safeTag(value: unknown): string {
  try {
    return Object.prototype.toString.call(value);
  } catch {
    return 'a value that throws when it is looked at';
  }
}
