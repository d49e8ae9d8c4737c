// Errors of the server, made PlatformErrors again.

import { ERROR_CAUSES_MAX, type ErrorCode, isErrorCode, PlatformError } from '../base/index.ts';
import { FOREIGN_TEXT_CHARS_MAX } from './limits.ts';

/** Members of problem+json that have a place of their own in PlatformError. */
const PLACED = new Set(['type', 'title', 'status', 'code', 'detail', 'message', 'retryAfterMs', 'cause', 'details']);

/**
 * The error that a failed answer stands for.
 *
 * `details` holds what the server added: `session`, `didYouMean`, `issues`, `position`, …; for E_FUNCTION_FAILED also
 * `name` and `stack` of the user's error. A code that this version does not know becomes E_INTERNAL with
 * `details.code`, an answer that is not of antrail at all E_SERVER_UNREACHABLE or E_INTERNAL by its status.
 */
export async function errorOfResponse(response: Response): Promise<PlatformError> {
  const text = await response.text().catch(() => '');
  const error = errorOfAnswer(response, text);
  answerTexts.set(error, text);
  return error;
}

/** The body of the answer that an error was made of, as the server wrote it. */
export function answerTextOf(error: unknown): string | undefined {
  return typeof error === 'object' && error !== null ? answerTexts.get(error) : undefined;
}

/** Beside the errors and not on them: nobody wants the whole text in a log. */
const answerTexts = new WeakMap<object, string>();

function errorOfAnswer(response: Response, text: string): PlatformError {
  const session = response.headers.get('antrail-session');
  const problem = parseProblem(text);
  if (problem === undefined) return foreignError(response, text, session);
  const retryAfterMs = retryAfterOf(problem, response);
  return errorOfProblem(
    {
      ...problem,
      ...(problem.session === undefined && session !== null ? { session } : {}),
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    },
    response.status,
  );
}

export type Problem = Readonly<Record<string, unknown>>;

/** @param problem problem+json, or an error as session records hold it (`message` instead of `detail`). */
export function errorOfProblem(problem: Problem, status = 500, depth = 0): PlatformError {
  const details: Record<string, unknown> = { ...(isRecord(problem.details) ? problem.details : {}) };
  for (const [key, value] of Object.entries(problem)) if (!PLACED.has(key)) details[key] = value;
  if (!isErrorCode(problem.code) && problem.code !== undefined) details.code = problem.code;
  const error = new PlatformError(codeOf(problem.code, status), detailOf(problem), {
    details,
    ...(typeof problem.retryAfterMs === 'number' ? { retryAfterMs: problem.retryAfterMs } : {}),
    ...(isRecord(problem.cause) && depth < ERROR_CAUSES_MAX
      ? { cause: errorOfProblem({ code: problem.code, ...problem.cause }, status, depth + 1) }
      : {}),
  });
  if (typeof problem.stack === 'string') error.stack = joinStacks(problem.stack, error.stack);
  return error;
}

function parseProblem(text: string): Problem | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && typeof value.code === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
}

function foreignError(response: Response, text: string, session: string | null): PlatformError {
  const gateway = response.status === 502 || response.status === 503 || response.status === 504;
  const said = text.trim().slice(0, FOREIGN_TEXT_CHARS_MAX);
  return new PlatformError(
    gateway ? 'E_SERVER_UNREACHABLE' : codeOf(undefined, response.status),
    `${response.url} answered ${response.status} and not as antrail does${said === '' ? '' : `: ${said}`}. ` +
      'Is this the address of an antrail server?',
    { details: { httpStatus: response.status, ...(session === null ? {} : { session }) } },
  );
}

function codeOf(code: unknown, status: number): ErrorCode {
  if (isErrorCode(code)) return code;
  if (code === undefined && status === 401) return 'E_UNAUTHENTICATED';
  if (code === undefined && status === 403) return 'E_FORBIDDEN';
  return 'E_INTERNAL';
}

function detailOf(problem: Problem): string {
  for (const text of [problem.detail, problem.message, problem.title, problem.code]) {
    if (typeof text === 'string' && text !== '') return text;
  }
  return 'no detail given';
}

function retryAfterOf(problem: Problem, response: Response): number | undefined {
  if (typeof problem.retryAfterMs === 'number') return problem.retryAfterMs;
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds * 1_000 : undefined;
}

/** The user's frames first, then where the client was called. */
function joinStacks(remote: string, local: string | undefined): string {
  const frames = (local ?? '').split('\n').filter((line) => /^\s+at /.test(line));
  return frames.length === 0 ? remote : `${remote}\n    --- called from ---\n${frames.join('\n')}`;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
