// What can be seen from outside the system: requests and answers, executions as handlers see them, deaths.
//
// Checkers look at nothing else but this and the disk, so that they share no mistake with what they check.

import type { ErrorData } from '../base/index.ts';

/** What a simulated function sends: says who made it, so that nothing needs to be believed. */
export interface Sent {
  /** `<session> <bucket> <name>`. */
  readonly key: string;
  readonly bucket: string;
  readonly name: string;
  readonly group: string;
  readonly output: boolean;
  readonly persist: boolean;
  readonly value: unknown;
  readonly atMs: number;
  /** The call returned: it is told. False: the thread died in it, or it was refused. */
  told: boolean;
}

export interface SeenInput {
  readonly key: string;
  readonly session: string;
  readonly bucket: string;
  readonly name: string;
  readonly group: string;
  readonly value: unknown;
}

/** A join or a close. */
export interface Noted {
  readonly bucket: string;
  readonly join: { readonly names?: readonly string[]; readonly count?: number } | undefined;
  told: boolean;
}

/** One attempt as its handler sees it. */
export interface Execution {
  readonly session: string;
  readonly invocation: string;
  readonly attempt: number;
  readonly function: string;
  /** Which process. */
  readonly incarnation: number;
  readonly thread: string;
  readonly beganMs: number;
  /** What its function may take. */
  readonly timeoutMs: number;
  readonly inputs: readonly SeenInput[];
  readonly sends: Sent[];
  readonly notes: Noted[];
  end: { readonly atMs: number; readonly value?: unknown; readonly error?: ErrorData } | undefined;
}

export type Answer = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: ErrorData };

/** One request of a client, and what it was told. */
export interface Call {
  readonly what: string;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly askedMs: number;
  /** Which start of the server was asked. */
  readonly boot: number;
  answer: Answer | undefined;
  answeredMs: number;
}

export interface Death {
  readonly who: 'server' | 'host' | 'thread';
  readonly name: string;
  readonly atMs: number;
}

export class History {
  readonly executions: Execution[] = [];
  readonly calls: Call[] = [];
  readonly deaths: Death[] = [];
  /** Wall clocks were set, connections were cut. */
  readonly disturbances: string[] = [];
}

export function keyOf(session: string, bucket: string, name: string): string {
  return `${session} ${bucket} ${name}`;
}
