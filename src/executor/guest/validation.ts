// Where validators of users are run: at the door of an entry, at `ctx.send`, and when the server asks.

import { type ErrorData, PlatformError, toErrorData } from '../../base/index.ts';
import { CALL_BUCKET_INDEX, INPUT_BUCKET_INDEX } from '../../bucket/index.ts';
import { CONTENT_JSON } from '../../protocol/index.ts';
import type { AppDefinition } from '../../sdk/index.ts';
import type { HostToInstance } from '../shared/index.ts';
import type { Attempt } from './attempt.ts';
import { isValidator, validate } from './validate.ts';

/**
 * Checks the input of an invocation that came from outside or by `ctx.call`; `json()` gives the validator's output then.
 * @returns a promise when the validator is asynchronous.
 * @throws E_INPUT_INVALID.
 */
export function validateInput(app: AppDefinition, attempt: Attempt): void | Promise<void> {
  const input = attempt.inputs[0];
  const validator = app.functions[attempt.row.name]?.options.input;
  const external =
    input === undefined || input.wire.bucket === INPUT_BUCKET_INDEX || input.wire.bucket === CALL_BUCKET_INDEX;
  if (!external || !isValidator(validator)) return;
  const value = input === undefined ? undefined : input.contentType === CONTENT_JSON ? input.json() : input.bytes;
  const checked = validate(validator, value, `the input of ${attempt.row.name}`);
  if (isThenable(checked)) return Promise.resolve(checked).then((settled) => input?.setValidated(settled));
  input?.setValidated(checked);
}

/** @throws E_INPUT_INVALID; E_APP_INVALID when the schema is asynchronous. */
export function validateSend(app: AppDefinition, bucket: string, value: unknown): void {
  const validator = app.buckets[bucket]?.schema;
  if (!isValidator(validator)) return;
  if (isThenable(validate(validator, value, `the object for bucket ${bucket}`))) {
    throw new PlatformError('E_APP_INVALID', `the schema of bucket ${bucket} is asynchronous: use a synchronous one`);
  }
}

/** @returns what is wrong with bytes that somebody wants to give to a function or bucket; undefined: nothing. */
export async function validateFor(
  app: AppDefinition,
  message: HostToInstance & { type: 'validate' },
): Promise<ErrorData | undefined> {
  const { function: name, bucket = '', contentType, bytes } = message;
  const validator = name === undefined ? app.buckets[bucket]?.schema : app.functions[name]?.options.input;
  if (!isValidator(validator)) return undefined;
  try {
    const text = () => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
    const value = bytes.length === 0 ? undefined : contentType === CONTENT_JSON ? JSON.parse(text()) : bytes;
    await validate(validator, value, name === undefined ? `the object for bucket ${bucket}` : `the input of ${name}`);
    return undefined;
  } catch (error) {
    return toErrorData(error, 'E_FUNCTION_FAILED');
  }
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return value !== null && typeof value === 'object' && typeof (value as { then?: unknown }).then === 'function';
}
