// Dead letters: what failed for good and nobody was told, with what it takes to try it again.
//
// Owns: the letters on disk, which of them a session retries, how many an app may have.
// Does not own: starting retries (LetterDoor), the sessions that failed (Coordinator).
//
// DL1. A letter is on disk with all that a retry needs, so that it outlives its session, its version and the server.
// DL2. At most one live session retries a letter.
// DL3. An app has at most DEAD_LETTERS_MAX letters with inputs of DEAD_LETTER_BYTES_MAX together: the oldest go first, are
//      counted, and never while they are retried.

import { type EpochMs, type ErrorData, PlatformError } from '../../base/index.ts';
import {
  type AttemptTrace,
  type DeadLetter,
  type DeadLetterHead,
  type DeadLetterInput,
  type FinalFailure,
  isJsonType,
  type ObjectHeader,
} from '../../protocol/index.ts';
import {
  DEAD_LETTER_ATTEMPTS_MAX,
  DEAD_LETTER_BYTES_MAX,
  DEAD_LETTER_INPUT_BYTES_MAX,
  DEAD_LETTERS_MAX,
  RECORD_RESULT_BYTES_MAX,
} from './limits.ts';
import type { RecordChange, RecordStore, StoredRecord } from './record-store.ts';
import type { FailedInvocation, Session, SessionEntry } from './session.ts';
import { keys } from './session-codec.ts';

/** A letter with all of its inputs. */
export interface Letter {
  readonly header: LetterHeader;
  readonly entries: readonly SessionEntry[];
}

/** What a bucket-scoped trigger could not do. */
export interface TriggerLetter {
  readonly id: string;
  readonly app: string;
  readonly version: string;
  /** Whose object it was; '' when it is about no object. */
  readonly session: string;
  /** `<bucket>/<trigger>` */
  readonly path: string;
  readonly error: ErrorData;
  readonly atMs: number;
}

interface LetterHeader {
  readonly id: string;
  readonly app: string;
  readonly version: string;
  readonly function: string;
  readonly session: string;
  readonly invocation: string;
  readonly firing: string | null;
  readonly error: ErrorData;
  readonly atMs: number;
  readonly attempts: readonly AttemptTrace[];
  readonly attemptCount: number;
  readonly retries: number;
  readonly entries: readonly { readonly function: string; readonly inputs: readonly ObjectHeader[] }[];
  readonly inputsKept: boolean;
}

interface Indexed {
  readonly bytes: number;
  /** The live session that retries it (DL2). */
  retrySession: string | undefined;
}

interface AppLetters {
  /** Oldest first. */
  readonly letters: Map<string, Indexed>;
  bytes: number;
  dropped: number;
}

export class DeadLetters {
  readonly #records: RecordStore;
  readonly #apps = new Map<string, AppLetters>();
  readonly #appOf = new Map<string, string>();
  /** The last write, until it is durable: records show only what is. */
  #written: Promise<unknown> = Promise.resolve();

  constructor(records: RecordStore) {
    this.#records = records;
  }

  /** Learns what is on disk. Once, at start, before sessions are accepted. */
  restore(): void {
    const found: { id: string; app: string; atMs: number; bytes: number }[] = [];
    for (const [, { header }] of this.#records.forwards<LetterHeader>('l/')) {
      found.push({ id: header.id, app: header.app, atMs: header.atMs, bytes: bytesOf(header) });
    }
    for (const { id, app, bytes } of found.sort((a, b) => a.atMs - b.atMs)) this.#index(app, id, bytes);
    for (const [key, { header }] of this.#records.forwards<{ dropped: number }>('lc/')) {
      this.#of(key.slice('lc/'.length)).dropped = header.dropped;
    }
  }

  countOf(app: string): number {
    return this.#apps.get(app)?.letters.size ?? 0;
  }

  /** Oldest ones that made room for newer ones, since the app was first deployed. */
  droppedOf(app: string): number {
    return this.#apps.get(app)?.dropped ?? 0;
  }

  /** What the end of a session changes in the letters; written with that end. */
  changesOf(session: Session, failures: readonly FailedInvocation[], dropped: number): RecordChange[] {
    const { end, spec } = session;
    if (end === undefined) return [];
    const changes: RecordChange[] = [];
    const fresh: { header: LetterHeader; blobs: readonly Uint8Array[] }[] = [];
    const before = spec.letter === undefined ? undefined : this.#retryEnded(spec.letter, session, failures);
    if (before !== undefined) {
      if (before.next === undefined) changes.push(this.#remove(spec.app, before.id));
      else fresh.push(before.next);
    }
    for (const failure of failures) {
      if (failure === before?.failure || !isLetter(failure, session, failures[0])) continue;
      fresh.push(letterOf(session, failure));
    }
    // It failed, and none of its invocations did: a deadline, or its host was lost too often.
    if (end.state === 'failed' && end.error !== undefined && failures.length === 0 && spec.detached) {
      if (before === undefined) fresh.push(letterOf(session, { invocation: '', function: '', error: end.error }));
    }
    for (const { header, blobs } of fresh) {
      this.#unindex(header.app, header.id);
      this.#index(header.app, header.id, bytesOf(header));
      changes.push({ put: keys.letter(header.app, header.id), header, blobs });
    }
    changes.push(...this.#makeRoom(spec.app, dropped));
    return changes;
  }

  /** A trigger gave up an object, or (`object` undefined) stands still: nothing that an invocation could repeat. */
  changesOfTrigger(letter: TriggerLetter): RecordChange[] {
    const { id, app, version, session, path, error, atMs } = letter;
    const header: LetterHeader = {
      id,
      app,
      version,
      function: '',
      session,
      invocation: '',
      firing: path,
      error,
      atMs,
      attempts: [],
      attemptCount: 0,
      retries: 0,
      entries: [],
      inputsKept: false,
    };
    this.#unindex(app, id);
    this.#index(app, id, 0);
    return [{ put: keys.letter(app, id), header }, ...this.#makeRoom(app, 0)];
  }

  /** The write that takes these changes to the disk; who looks at letters waits for it. */
  follow(written: Promise<unknown>): void {
    this.#written = written.catch(() => undefined);
  }

  /** A live session tries it again (DL2). */
  retriedBy(id: string, session: string): void {
    const indexed = this.#find(id);
    if (indexed !== undefined) indexed.retrySession = session;
  }

  retryOf(id: string): string | undefined {
    return this.#find(id)?.retrySession;
  }

  /** Newest first. */
  async list(app: string | undefined, limit: number): Promise<DeadLetterHead[]> {
    await this.#written;
    const heads: (DeadLetterHead & { readonly atMs: number })[] = [];
    for (const name of app === undefined ? this.#apps.keys() : [app]) {
      const ids = [...(this.#apps.get(name)?.letters.keys() ?? [])].slice(-limit);
      for (const id of ids) {
        const header = this.#records.peek<LetterHeader>(keys.letter(name, id))?.header;
        if (header !== undefined) heads.push({ ...headOf(header, this.retryOf(id)), atMs: header.atMs });
      }
    }
    heads.sort((a, b) => b.atMs - a.atMs);
    return heads.slice(0, limit).map(({ atMs: _, ...head }) => head);
  }

  /** @throws E_DEAD_LETTER_UNKNOWN. */
  async get(id: string): Promise<DeadLetter> {
    const { header, entries } = await this.read(id);
    const retrySession = this.retryOf(id);
    return {
      ...headOf(header, retrySession),
      error: header.error,
      attempts: header.attempts,
      inputs: entries.flatMap(({ inputs }) => inputs.map((one) => shown(header, one.header, one.bytes))),
      inputsKept: header.inputsKept,
    };
  }

  /** @throws E_DEAD_LETTER_UNKNOWN. */
  async read(id: string): Promise<Letter> {
    await this.#written;
    const app = this.#appOf.get(id);
    const record = app === undefined ? undefined : await this.#records.read<LetterHeader>(keys.letter(app, id));
    this.assertThere(id);
    if (record === undefined) throw unknownLetter(id);
    return { header: record.header, entries: entriesOf(record) };
  }

  /** @throws E_DEAD_LETTER_UNKNOWN. */
  assertThere(id: string): void {
    if (!this.#appOf.has(id)) throw unknownLetter(id);
  }

  /** Resolves when it is gone for good. A session that retries it goes on. @throws E_DEAD_LETTER_UNKNOWN. */
  async drop(id: string): Promise<void> {
    const app = this.#appOf.get(id);
    if (app === undefined) throw unknownLetter(id);
    const written = this.#records.write([this.#remove(app, id)]);
    this.follow(written);
    await written;
  }

  /** The app is gone. Resolves when its letters are. */
  async removeApp(app: string): Promise<void> {
    const { letters } = this.#of(app);
    const changes: RecordChange[] = [{ delete: keys.letterCount(app) }];
    for (const id of [...letters.keys()]) changes.push(this.#remove(app, id));
    this.#apps.delete(app);
    await this.#records.write(changes);
  }

  /**
   * A retry has ended. It is about the letter's own invocation: what that one set off has letters of its own.
   * @returns what becomes of the letter; undefined: it was dropped, or its retry was cancelled.
   */
  #retryEnded(id: string, session: Session, failures: readonly FailedInvocation[]): RetryEnd | undefined {
    const indexed = this.#find(id);
    const app = session.spec.app;
    if (indexed === undefined) return undefined;
    if (indexed.retrySession === session.id) indexed.retrySession = undefined;
    const { end, spec, endedAtMs } = session;
    const header = this.#records.peek<LetterHeader>(keys.letter(app, id))?.header;
    if (end === undefined || end.state === 'cancelled' || header === undefined) return undefined;
    const failure = failures.find((one) => one.entry !== undefined);
    const error = failure?.error ?? (failures.length === 0 && end.state === 'failed' ? end.error : undefined);
    if (error === undefined) return { id, failure, next: undefined };
    const attempts = [...header.attempts, ...(failure?.attempts ?? [])].slice(-DEAD_LETTER_ATTEMPTS_MAX);
    const next = {
      header: {
        ...header,
        version: spec.version,
        error,
        atMs: endedAtMs ?? header.atMs,
        attempts,
        attemptCount: header.attemptCount + (failure?.attemptCount ?? end.counts.attempts),
        retries: header.retries + 1,
      },
      blobs: header.inputsKept ? spec.entries.flatMap(({ inputs }) => inputs.map(({ bytes }) => bytes)) : [],
    };
    return { id, failure, next };
  }

  /** (DL3) */
  #makeRoom(app: string, dropped: number): RecordChange[] {
    const changes: RecordChange[] = [];
    const of = this.#of(app);
    of.dropped += dropped;
    let count = dropped;
    for (const [id, { retrySession }] of of.letters) {
      if (of.letters.size <= DEAD_LETTERS_MAX && of.bytes <= DEAD_LETTER_BYTES_MAX) break;
      if (retrySession !== undefined) continue;
      changes.push(this.#remove(app, id));
      of.dropped++;
      count++;
    }
    if (count > 0) changes.push({ put: keys.letterCount(app), header: { dropped: of.dropped } });
    return changes;
  }

  #remove(app: string, id: string): RecordChange {
    this.#unindex(app, id);
    return { delete: keys.letter(app, id) };
  }

  #index(app: string, id: string, bytes: number): void {
    const of = this.#of(app);
    of.letters.set(id, { bytes, retrySession: undefined });
    of.bytes += bytes;
    this.#appOf.set(id, app);
  }

  #unindex(app: string, id: string): void {
    const of = this.#of(app);
    of.bytes -= of.letters.get(id)?.bytes ?? 0;
    of.letters.delete(id);
    this.#appOf.delete(id);
  }

  #find(id: string): Indexed | undefined {
    const app = this.#appOf.get(id);
    return app === undefined ? undefined : this.#apps.get(app)?.letters.get(id);
  }

  #of(app: string): AppLetters {
    let of = this.#apps.get(app);
    if (of === undefined) {
      of = { letters: new Map(), bytes: 0, dropped: 0 };
      this.#apps.set(app, of);
    }
    return of;
  }
}

interface RetryEnd {
  readonly id: string;
  /** The letter's invocation failed again, as this. */
  readonly failure: FailedInvocation | undefined;
  /** Undefined: the retry completed. */
  readonly next: { readonly header: LetterHeader; readonly blobs: readonly Uint8Array[] } | undefined;
}

/**
 * Every final failure is a letter but one: an entry that a waiting caller had called, whose only attempt failed. The
 * caller has the error, and nobody had said that it should be tried again.
 */
function isLetter(failure: FinalFailure, { spec, end }: Session, first: FinalFailure | undefined): boolean {
  if (spec.detached || end?.state === 'completed' || failure !== first) return true;
  return failure.entry === undefined || failure.retried === true;
}

function letterOf(session: Session, failure: FailedInvocation): { header: LetterHeader; blobs: readonly Uint8Array[] } {
  const { spec } = session;
  const entries = failure.invocation === '' ? spec.entries : entryOf(session, failure);
  const bytes = entries?.reduce((sum, { inputs }) => sum + inputs.reduce((all, one) => all + one.bytes.length, 0), 0);
  // What came from outside is not among the inputs: such a session can only be retried as a whole.
  const kept =
    bytes !== undefined &&
    bytes <= DEAD_LETTER_INPUT_BYTES_MAX &&
    !(failure.invocation === '' && (session.outside !== undefined || entries?.length === 0));
  const header: LetterHeader = {
    id: failure.invocation === '' ? session.id : `${session.id}.${failure.invocation}`,
    app: spec.app,
    version: spec.version,
    function: failure.function || nameOf(session),
    session: session.id,
    invocation: failure.invocation,
    firing: failure.firing ?? null,
    error: failure.error,
    atMs: session.endedAtMs ?? (0 as EpochMs),
    attempts: failure.attempts ?? [],
    attemptCount: failure.attemptCount ?? session.end?.counts.attempts ?? 0,
    retries: 0,
    entries: kept
      ? (entries ?? []).map((entry) => ({ function: entry.function, inputs: entry.inputs.map((one) => one.header) }))
      : [],
    inputsKept: kept,
  };
  const blobs = kept ? (entries ?? []).flatMap(({ inputs }) => inputs.map((one) => one.bytes)) : [];
  return { header, blobs };
}

/** The invocation as the entry of another session; undefined when its inputs did not come with the failure. */
function entryOf({ spec }: Session, failure: FailedInvocation): readonly SessionEntry[] | undefined {
  const inputs = failure.entry === undefined ? failure.inputObjects : spec.entries[failure.entry]?.inputs;
  return inputs === undefined ? undefined : [{ function: failure.function, inputs }];
}

function entriesOf({ header, blobs }: StoredRecord<LetterHeader>): SessionEntry[] {
  let next = 0;
  return header.entries.map((entry) => ({
    function: entry.function,
    inputs: entry.inputs.map((one) => ({ header: one, bytes: blobs[next++] ?? new Uint8Array(0) })),
  }));
}

function bytesOf({ entries }: LetterHeader): number {
  return entries.reduce((sum, { inputs }) => sum + inputs.reduce((all, one) => all + one.size, 0), 0);
}

function headOf(header: LetterHeader, retrySession: string | undefined): DeadLetterHead {
  const { code, message, name } = header.error;
  return {
    id: header.id,
    app: header.app,
    version: header.version,
    function: header.function,
    session: header.session,
    invocation: header.invocation,
    firing: header.firing,
    error: { code, message, ...(name === undefined ? {} : { name }) },
    at: new Date(header.atMs).toISOString(),
    attemptCount: header.attemptCount,
    retries: header.retries,
    ...(retrySession === undefined ? {} : { retrySession }),
  };
}

function shown({ app }: LetterHeader, header: ObjectHeader, bytes: Uint8Array): DeadLetterInput {
  const { bucket, name, group, session, contentType, size } = header;
  const input = { id: `${app}/${bucket}/${session}/${name}`, bucket, name, group, contentType, size };
  if (bytes.length > RECORD_RESULT_BYTES_MAX) return input;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isJsonType(contentType)) {
    try {
      return { ...input, json: JSON.parse(buffer.toString()) };
    } catch {
      // It claims to be JSON and is not: shown as the bytes that it is.
    }
  }
  return { ...input, base64: buffer.toString('base64') };
}

function nameOf({ spec }: Session): string {
  return spec.entries[0]?.function ?? '';
}

function unknownLetter(id: string): PlatformError {
  return new PlatformError(
    'E_DEAD_LETTER_UNKNOWN',
    `There is no dead letter '${id}': its retry succeeded, it was dropped, or it made room for newer ones.`,
  );
}
