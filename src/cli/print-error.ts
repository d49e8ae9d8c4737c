// A failure on standard error: what happened, where in the user's code, why, and what to do next.

import { ERROR_CAUSES_MAX, type ErrorData, PlatformError } from '../base/index.ts';
import { duration, type Paint, printable } from './text.ts';

const ISSUES_MAX = 20;

interface Problem {
  readonly message?: unknown;
  readonly path?: unknown;
  readonly file?: unknown;
  readonly line?: unknown;
}

/** Ends with a line break. */
export function errorText(thrown: unknown, paint: Paint): string {
  if (!(thrown instanceof PlatformError)) return ownErrorText(thrown, paint);
  const { code, message, details } = thrown;
  const known = typeof details.code === 'string' ? details.code : code;
  const lines = [`${paint('red', known)} ${printable(message)}`];
  lines.push(...stackLines(thrown, paint), ...causeLines(thrown, paint), ...problemLines(thrown));
  if (typeof details.file === 'string' && !message.startsWith(details.file)) lines.push(`  at ${placeOf(details)}`);
  if (typeof details.didYouMean === 'string' && !/did you mean/i.test(message)) {
    lines.push(`Did you mean ${printable(details.didYouMean)}?`);
  }
  if (typeof details.position === 'number') lines.push(`At position ${details.position} of the body.`);
  if (typeof details.limitBytes === 'number') lines.push(`The limit is ${details.limitBytes} bytes.`);
  if (thrown.retryAfterMs !== undefined) lines.push(`Try again in ${duration(thrown.retryAfterMs)}.`);
  if (typeof details.session === 'string') {
    lines.push(paint('dim', `session ${printable(details.session)} (antrail trace ${printable(details.session)})`));
  }
  return `${lines.join('\n')}\n`;
}

/** An error as plain data: code, message, stack and causes; without a line break at its end. */
export function errorDataText(error: ErrorData, paint: Paint): string {
  let text = `${paint('red', error.code)} ${printable(error.message)}`;
  if (error.stack !== undefined) text += `\n${printable(error.stack)}`;
  for (let cause = error.cause; cause !== undefined; cause = cause.cause) {
    text += `\ncaused by: ${printable(cause.stack ?? cause.message)}`;
  }
  return text;
}

/** A bug of ours or of the machine: all that is known. */
function ownErrorText(thrown: unknown, paint: Paint): string {
  const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return `${paint('red', 'failed:')} ${text}\n`;
}

/** The user's stack as the server mapped it; frames of this process say nothing about it. */
function stackLines(error: PlatformError, paint: Paint): string[] {
  const { stack } = error.details;
  if (typeof stack !== 'string') return [];
  const [head = '', ...frames] = printable(stack).split('\n');
  // The head repeats the message, mostly behind the class of the error.
  const shown = head === error.message || head === `Error: ${error.message}` ? frames : [`  ${head}`, ...frames];
  return shown.map((line) => (/^\s+at /.test(line) ? paint('dim', line) : line));
}

function causeLines(error: PlatformError, paint: Paint): string[] {
  const lines: string[] = [];
  let cause = error.cause;
  for (let depth = 0; cause instanceof PlatformError && depth < ERROR_CAUSES_MAX; depth++) {
    const { name } = cause.details;
    lines.push(`caused by: ${typeof name === 'string' ? `${printable(name)}: ` : ''}${printable(cause.message)}`);
    lines.push(...stackLines(cause, paint).filter((line) => !line.startsWith('  ') || line.includes('at ')));
    cause = cause.cause;
  }
  return lines;
}

/** The list behind the message, unless it is one that the message already says. */
function problemLines({ details, message }: PlatformError): string[] {
  const problems = [details.problems, details.issues].find(isArrayOfProblems) ?? [];
  if (problems.length === 1 && problems[0] !== undefined && message.includes(String(problems[0].message))) return [];
  const lines = problems.slice(0, ISSUES_MAX).map((problem) => `  ${problemText(problem)}`);
  if (problems.length > ISSUES_MAX) lines.push(`  and ${problems.length - ISSUES_MAX} more`);
  return lines;
}

/** `app.ts:12: what is wrong`, or `order.id: …` for a value. */
export function problemText(problem: Problem): string {
  const place = placeOf(problem) || pathOf(problem.path);
  return `${place === '' ? '' : `${place}: `}${printable(String(problem.message ?? JSON.stringify(problem)))}`;
}

function isArrayOfProblems(value: unknown): value is readonly Problem[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'object' && item !== null);
}

function placeOf({ file, line }: Problem): string {
  if (typeof file !== 'string') return '';
  return printable(typeof line === 'number' ? `${file}:${line}` : file);
}

/** Standard Schema: a path is a list of keys, or of `{key}`. */
function pathOf(path: unknown): string {
  if (!Array.isArray(path)) return typeof path === 'string' ? printable(path) : '';
  return path
    .map((part: unknown) =>
      printable(String(typeof part === 'object' && part !== null ? (part as { key: unknown }).key : part)),
    )
    .join('.');
}
