import { PlatformError } from '../base/index.ts';
import type { AppProblem } from '../protocol/index.ts';

/**
 * The refusal of an app. Its message is the first problem, with its place; `details` has `problems`, all of them, and
 * `file` and `line` of the first.
 */
export function appInvalid(problems: readonly AppProblem[], cause?: unknown): PlatformError {
  const [first] = problems;
  const { message = 'The app is not valid.', file, line } = first ?? {};
  const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}: `;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  return new PlatformError('E_APP_INVALID', `${place}${message}${more}`, {
    details: {
      problems,
      ...(file === undefined ? {} : { file }),
      ...(line === undefined ? {} : { line }),
    },
    ...(cause === undefined ? {} : { cause }),
  });
}
