// `ctx` of a handler. Thin: it checks arguments and hands over to the runner.

import { fromErrorData, hexOf, nearMiss, PlatformError } from '../../base/index.ts';
import type { BucketRow } from '../../bucket/index.ts';
import { OUTPUT_BUCKET } from '../../protocol/index.ts';
import type { EpheObject, Log } from '../../sdk/index.ts';

import type { Attempt } from './attempt.ts';
import { GuestObject } from './guest-object.ts';
import { createLog } from './log.ts';
import type { Runner } from './runner.ts';

export interface SendOptions {
  readonly name?: string;
  readonly group?: string;
  readonly output?: boolean;
  readonly persist?: boolean;
}

const SEND_OPTIONS = ['name', 'group', 'output', 'persist'];
/** UTF-16 units of an object's name or group. */
const OBJECT_NAME_CHARS_MAX = 512;

export class Context {
  readonly #runner: Runner;
  readonly #attempt: Attempt;
  #log: Log | undefined;

  constructor(runner: Runner, attempt: Attempt) {
    this.#runner = runner;
    this.#attempt = attempt;
  }

  get session(): string {
    return this.#attempt.ticket.session;
  }

  get invocation(): string {
    return hexOf(this.#attempt.ticket.id);
  }

  /** 1 for the first. */
  get attempt(): number {
    return this.#attempt.ticket.attempt;
  }

  /** Milliseconds since 1970; Infinity if there is none. */
  get deadline(): number {
    const at = this.#attempt.ticket.deadlineMs;
    return at === 0 ? Number.POSITIVE_INFINITY : this.#runner.epochOf(at);
  }

  get state(): never {
    throw new PlatformError(
      'E_REQUEST_INVALID',
      'ctx.state is not part of this release: keep results with ctx.send(bucket, value, { name, persist: true })',
    );
  }

  get env(): Readonly<Record<string, string>> {
    return this.#runner.boot.env;
  }

  get secrets(): Readonly<Record<string, string>> {
    return this.#runner.boot.secrets;
  }

  get signal(): AbortSignal {
    const attempt = this.#attempt;
    if (attempt.controller === undefined) {
      attempt.controller = new AbortController();
      if (attempt.aborted !== undefined) attempt.controller.abort(fromErrorData(attempt.aborted));
    }
    return attempt.controller.signal;
  }

  get log(): Log {
    this.#log ??= createLog(this.#runner, this.#attempt);
    return this.#log;
  }

  createObject(
    bucketName: string,
    ...rest: readonly [content: unknown] | readonly [name: unknown, content: unknown]
  ): EpheObject {
    const [nameOrContent, content] = rest;
    const named = rest.length >= 2;
    if (named && nameOrContent !== undefined) checkName(nameOrContent, 'name');
    const name = named ? (nameOrContent as string | undefined) : undefined;
    return this.#runner.createObject(this.#attempt, this.#bucket(bucketName), name, named ? content : nameOrContent);
  }

  sendObject(object: EpheObject, options: Omit<SendOptions, 'name'> = {}): void {
    if (!(object instanceof GuestObject)) {
      throw new TypeError(
        'ctx.sendObject takes what ctx.createObject returned; for a value use ctx.send(bucket, value)',
      );
    }
    checkOptions(options);
    this.#runner.sendCreated(this.#attempt, object, options);
  }

  send(bucketName: string, value: unknown, options?: SendOptions): void {
    if (options !== undefined) checkOptions(options);
    this.#runner.send(this.#attempt, this.#bucket(bucketName), value, options ?? NO_OPTIONS);
  }

  output(value: unknown, options?: SendOptions): void {
    if (options !== undefined) checkOptions(options);
    this.#runner.send(this.#attempt, this.#bucket(OUTPUT_BUCKET), value, { ...options, output: true });
  }

  call(functionName: string, value?: unknown): void {
    const row = this.#runner.tables.functionByName.get(functionName);
    if (row === undefined) {
      throw unknown('E_FUNCTION_UNKNOWN', 'function', functionName, this.#runner.tables.functionByName.keys());
    }
    this.#runner.call(this.#attempt, row, value);
  }

  getObject(bucketName: string, name: string): Promise<EpheObject> {
    checkName(name, 'name');
    return this.#runner.getObject(this.#attempt, this.#bucket(bucketName), name);
  }

  join(bucketName: string, expected: readonly string[] | number): void {
    const bucket = this.#bucket(bucketName);
    if (typeof expected === 'number') {
      if (!Number.isSafeInteger(expected) || expected < 0) {
        throw new TypeError(`ctx.join(bucket, count): count is a whole number of 0 or more, got ${expected}`);
      }
      this.#runner.note(this.#attempt, { kind: 'join', bucket: bucket.index, count: expected });
      return;
    }
    if (!Array.isArray(expected))
      throw new TypeError('ctx.join(bucket, names | count): give a list of names or a count');
    for (const name of expected) checkName(name, 'name');
    this.#runner.join(this.#attempt, bucket.index, expected);
  }

  closeGroup(bucketName: string): void {
    this.#runner.note(this.#attempt, { kind: 'close', bucket: this.#bucket(bucketName).index });
  }

  #bucket(name: string): BucketRow {
    const row = this.#runner.tables.bucketByName.get(name);
    if (row === undefined) {
      throw unknown('E_BUCKET_UNKNOWN', 'bucket', name, this.#runner.tables.bucketByName.keys());
    }
    return row;
  }
}

const NO_OPTIONS: SendOptions = {};

function unknown(
  code: 'E_BUCKET_UNKNOWN' | 'E_FUNCTION_UNKNOWN',
  what: string,
  name: unknown,
  known: Iterable<string>,
): PlatformError {
  const didYouMean = typeof name === 'string' ? nearMiss(name, known) : undefined;
  return new PlatformError(
    code,
    `the app declares no ${what} '${String(name)}'${didYouMean === undefined ? '' : `; did you mean '${didYouMean}'?`}`,
    { details: didYouMean === undefined ? {} : { didYouMean } },
  );
}

function checkOptions(options: SendOptions): void {
  for (const key in options) {
    if (!SEND_OPTIONS.includes(key)) {
      const near = nearMiss(key, SEND_OPTIONS);
      throw new TypeError(
        `unknown option '${key}' of ctx.send${near === undefined ? '' : `; did you mean '${near}'?`} ` +
          `(there are ${SEND_OPTIONS.join(', ')})`,
      );
    }
  }
  if (options.name !== undefined) checkName(options.name, 'name');
  if (options.group !== undefined) checkName(options.group, 'group', true);
}

function checkName(name: unknown, what: string, emptyAllowed = false): void {
  if (typeof name !== 'string' || (name === '' && !emptyAllowed) || name.length > OBJECT_NAME_CHARS_MAX) {
    throw new TypeError(`an object's ${what} is a string of 1 to ${OBJECT_NAME_CHARS_MAX} characters`);
  }
}
