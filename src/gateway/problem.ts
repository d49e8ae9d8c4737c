// The one place where an error becomes an answer: application/problem+json (RFC 9457).

import { ERROR_TABLE, type ErrorCode, type ErrorData, isErrorCode, toErrorData } from '../base/index.ts';

export const CONTENT_PROBLEM = 'application/problem+json';

export interface Problem {
  /** A link to the page with cause and remedy, relative to the server. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly detail: string;
  readonly retryAfterMs?: number;
  readonly session?: string;
  /** didYouMean, position, limitBytes, issues, problems, name, stack, cause, … */
  readonly [extension: string]: unknown;
}

/** The error in `thrown` if it is one of ours, as data; undefined for bugs and foreign errors. */
export function platformErrorData(thrown: unknown): ErrorData | undefined {
  if (!(thrown instanceof Error) || thrown.name !== 'PlatformError') return undefined;
  return isErrorCode((thrown as { code?: unknown }).code) ? toErrorData(thrown) : undefined;
}

/**
 * What the user's own code threw, or ran into, is shown whole: message, class, source-mapped stack, cause chain. Of every
 * other error only its sentence and its details are.
 * @param status where HTTP has a narrower one than the code's (408, 416, 431).
 * @param ofSession it is how a session ended: its stack, if it has one, leads to the user's code.
 */
export function problemOf(error: ErrorData, session?: string, status?: number, ofSession = false): Problem {
  const row = ERROR_TABLE[error.code];
  const own = error.code === 'E_FUNCTION_FAILED' || (ofSession && /\n\s+at /.test(error.stack ?? ''));
  return {
    ...error.details,
    ...(own && error.name !== undefined ? { name: error.name } : {}),
    ...(own && error.stack !== undefined ? { stack: error.stack } : {}),
    ...(own && error.cause !== undefined ? { cause: causeOf(error.cause) } : {}),
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(session === undefined ? {} : { session }),
    type: `/docs/errors#${error.code.toLowerCase()}`,
    title: row.title,
    status: status ?? row.status,
    code: error.code,
    detail: error.message,
  };
}

export function problemText(problem: Problem): string {
  try {
    return JSON.stringify(problem);
  } catch {
    // Details that JSON cannot say (a cycle, a bigint) must not cost the answer.
    const { type, title, status, code, detail } = problem;
    return JSON.stringify({ type, title, status, code, detail });
  }
}

/** Seconds for the `retry-after` header, or undefined: rounded up and at least 1, since 0 invites a storm. */
export function retryAfterSeconds(problem: Problem): number | undefined {
  if (problem.retryAfterMs === undefined && problem.status !== 429 && problem.status !== 503) return undefined;
  return Math.max(1, Math.ceil((problem.retryAfterMs ?? 0) / 1_000));
}

interface ProblemCause {
  readonly code: ErrorCode;
  readonly name?: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: ProblemCause;
}

function causeOf(error: ErrorData): ProblemCause {
  return {
    code: error.code,
    ...(error.name === undefined ? {} : { name: error.name }),
    message: error.message,
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(error.cause === undefined ? {} : { cause: causeOf(error.cause) }),
  };
}
