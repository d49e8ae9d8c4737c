// What clients ask of dead letters: looking, retrying, dropping.
//
// Owns: the session that tries a letter again.
// Does not own: the letters (DeadLetters), what comes of that session (Coordinator).

import { PlatformError } from '../../base/index.ts';
import { type DeadLetter, type DeadLetterHead, INPUT_BUCKET } from '../../protocol/index.ts';
import type { Coordinator } from './coordinator.ts';
import type { Letter } from './dead-letters.ts';
import { assertFunction, openApp } from './door-checks.ts';
import type { SessionEntry, SessionSpec } from './session.ts';
import { NO_TAGS, type SessionStarts } from './session-starts.ts';

export class LetterDoor {
  readonly #coordinator: Coordinator;
  readonly #starts: SessionStarts;

  constructor(coordinator: Coordinator, starts: SessionStarts) {
    this.#coordinator = coordinator;
    this.#starts = starts;
  }

  /** Newest first. @throws E_APP_UNKNOWN. */
  async list(
    app: string | undefined,
    limit: number,
  ): Promise<{ deadLetters: readonly DeadLetterHead[]; dropped: number }> {
    if (app !== undefined) openApp(this.#coordinator, app, true);
    const { letters, ports } = this.#coordinator;
    let dropped = 0;
    for (const name of app === undefined ? ports.apps.names() : [app]) dropped += letters.droppedOf(name);
    return { deadLetters: await letters.list(app, limit), dropped };
  }

  get(id: string): Promise<DeadLetter> {
    return this.#coordinator.letters.get(id);
  }

  drop(id: string): Promise<void> {
    return this.#coordinator.letters.drop(id);
  }

  /**
   * Tries the invocation again in a durable session of its own, on the current version; it names the failed session as its
   * cause. While such a session lives, further calls give the same one (DL2).
   * @throws E_DEAD_LETTER_UNKNOWN, E_FUNCTION_UNKNOWN, E_QUEUE_FULL; E_OBJECT_GONE when its inputs were not kept.
   */
  async retry(id: string): Promise<{ session: string }> {
    const { letters, table, writes, archive } = this.#coordinator;
    const letter = await letters.read(id);
    const { header } = letter;
    if (header.invocation === '' && header.firing !== null) {
      const detail = `Dead letter '${id}' is about no invocation but trigger ${header.firing}: mend its class, deploy it, and send the object again.`;
      throw new PlatformError('E_OBJECT_GONE', detail);
    }
    const old = header.inputsKept || header.invocation !== '' ? undefined : await archive.load(header.session);
    // From here until the retry is accepted nothing is awaited.
    letters.assertThere(id);
    const live = letters.retryOf(id);
    if (live !== undefined && table.get(live) !== undefined) {
      await writes.written(live);
      return { session: live };
    }
    const origin = { causes: [header.session], letter: id };
    if (old !== undefined) return this.#starts.again(old, origin);
    return this.#starts.startKept(this.#starts.admit(this.#specOf(letter, origin)));
  }

  #specOf({ header, entries }: Letter, origin: Pick<SessionSpec, 'causes' | 'letter'>): SessionSpec {
    const app = openApp(this.#coordinator, header.app);
    if (!header.inputsKept) {
      const detail = `The inputs of dead letter '${header.id}' were too large to be kept: retry its session instead.`;
      throw new PlatformError('E_OBJECT_GONE', detail);
    }
    for (const entry of entries) assertFunction(header.app, app.manifest, entry.function);
    return {
      app: header.app,
      version: app.version,
      entries: entries.map((entry) => asInput(entry, header.session)),
      durable: true,
      detached: true,
      priority: 0,
      tags: NO_TAGS,
      ...origin,
    };
  }
}

/** Inputs from outside become those of the new session; what another function sent keeps its session. */
function asInput({ function: name, inputs }: SessionEntry, session: string): SessionEntry {
  const isOwn = (header: { readonly bucket: string; readonly session: string }) =>
    header.bucket === INPUT_BUCKET && header.session === session;
  return {
    function: name,
    inputs: inputs.map(({ header, bytes }) => ({ header: isOwn(header) ? { ...header, session: '' } : header, bytes })),
  };
}
