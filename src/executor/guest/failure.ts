import { type ErrorData, toErrorData } from '../../base/index.ts';
import { ERROR_JSON_CHARS_MAX } from './limits.ts';

const MESSAGE_CHARS_MAX = 4_096;

/** What a handler threw, as JSON of ErrorData, within its limit. */
export function failureJson(thrown: unknown): string {
  const data = toErrorData(thrown, 'E_FUNCTION_FAILED');
  const text = jsonOf(data);
  if (text !== undefined && text.length <= ERROR_JSON_CHARS_MAX) return text;
  const short: ErrorData = {
    code: data.code,
    message: data.message.slice(0, MESSAGE_CHARS_MAX),
    ...(data.stack === undefined ? {} : { stack: data.stack.slice(0, MESSAGE_CHARS_MAX) }),
    ...(data.terminal === true ? { terminal: true } : {}),
  };
  return JSON.stringify(short);
}

/** @returns undefined for details that a user's own error brought and JSON cannot hold. */
function jsonOf(data: ErrorData): string | undefined {
  try {
    return JSON.stringify(data);
  } catch {
    return undefined;
  }
}
