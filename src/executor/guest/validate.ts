// Standard Schema validators of users: `input` of functions, `schema` of buckets.

import { PlatformError } from '../../base/index.ts';

interface StandardResult {
  readonly value?: unknown;
  readonly issues?: readonly { readonly message: string; readonly path?: readonly unknown[] }[];
}

interface StandardValidator {
  readonly '~standard': {
    readonly vendor: string;
    validate(value: unknown): StandardResult | Promise<StandardResult>;
  };
}

const ISSUES_MAX = 50;

export function isValidator(candidate: unknown): candidate is StandardValidator {
  if (candidate === null || (typeof candidate !== 'object' && typeof candidate !== 'function')) return false;
  const standard = (candidate as { '~standard'?: { validate?: unknown } })['~standard'];
  return typeof standard?.validate === 'function';
}

/**
 * @returns the validator's output (it may transform), or a promise of it.
 * @throws E_INPUT_INVALID with the validator's words in `details.issues`.
 */
export function validate(validator: StandardValidator, value: unknown, what: string): unknown {
  const result = validator['~standard'].validate(value);
  return result instanceof Promise ? result.then((settled) => read(settled, what)) : read(result, what);
}

function read(result: StandardResult, what: string): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.slice(0, ISSUES_MAX).map((issue) => ({
    message: issue.message,
    path: (issue.path ?? []).map((part) =>
      typeof part === 'object' && part !== null && 'key' in part
        ? String((part as { key: unknown }).key)
        : String(part),
    ),
  }));
  const first = issues[0];
  const where = first === undefined || first.path.length === 0 ? '' : ` at ${first.path.join('.')}`;
  throw new PlatformError('E_INPUT_INVALID', `${what} is not valid${where}: ${first?.message ?? 'refused'}`, {
    details: { issues },
  });
}
