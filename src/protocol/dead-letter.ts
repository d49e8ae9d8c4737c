// Dead letters: invocations that got no further attempt, kept until somebody retries or drops them.

import type { ErrorCode, ErrorData } from '../base/index.ts';
import type { AttemptTrace } from './session.ts';
import type { ObjectHeader } from './values.ts';

/** An invocation that got no further attempt, as its host tells it. */
export interface FinalFailure {
  /** '' when the session failed as a whole: deadline, lost host. */
  readonly invocation: string;
  readonly function: string;
  readonly error: ErrorData;
  /** Which entry of the session it was; its inputs are the session's. */
  readonly entry?: number;
  /** `<bucket>/<trigger>/<index>`; absent for an entry. */
  readonly firing?: string;
  /** The newest of them, oldest first. */
  readonly attempts?: readonly AttemptTrace[];
  /** All attempts. */
  readonly attemptCount?: number;
  /** The function has `retries`, or had more than one attempt: somebody meant it to succeed. */
  readonly retried?: boolean;
  /** Its inputs; without them they are an entry's, or too large to be sent. */
  readonly inputs?: readonly ObjectHeader[];
}

/** One line of `GET /v1/dead-letters`. */
export interface DeadLetterHead {
  /** `<session>.<invocation>`, or the session's id when it failed as a whole. */
  readonly id: string;
  readonly app: string;
  /** In which it failed; a retry runs in the current one. */
  readonly version: string;
  readonly function: string;
  readonly session: string;
  /** '' when the session failed as a whole. */
  readonly invocation: string;
  /** `<bucket>/<trigger>/<index>`; null for an entry, or when the session failed as a whole. */
  readonly firing: string | null;
  readonly error: { readonly code: ErrorCode; readonly message: string; readonly name?: string };
  /** When it failed for the last time, ISO 8601. */
  readonly at: string;
  /** Retries included. */
  readonly attemptCount: number;
  /** How often a retry of it failed. */
  readonly retries: number;
  /** The session that retries it now. */
  readonly retrySession?: string;
}

export interface DeadLetterInput {
  /** `<app>/<bucket>/<session>/<name>`. */
  readonly id: string;
  readonly bucket: string;
  readonly name: string;
  readonly group: string;
  readonly contentType: string;
  readonly size: number;
  /** The value itself if it is JSON, else `base64`; neither above RECORD_RESULT_BYTES_MAX. */
  readonly json?: unknown;
  readonly base64?: string;
}

/** Answer of `GET /v1/dead-letters/{id}`. */
export interface DeadLetter extends Omit<DeadLetterHead, 'error'> {
  readonly error: ErrorData;
  /** The newest, oldest first. */
  readonly attempts: readonly AttemptTrace[];
  readonly inputs: readonly DeadLetterInput[];
  /** False: they were too large to be kept, and it cannot be retried. */
  readonly inputsKept: boolean;
}
