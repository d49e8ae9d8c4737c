import { hexOf } from '../../base/index.ts';
import type { LogEntry } from '../../protocol/index.ts';
import type { Attempt } from './attempt.ts';
import { LOG_BATCH_MAX, LOG_LINE_CHARS_MAX } from './limits.ts';

type Entry = Omit<LogEntry, 'app' | 'version'>;

/** Log lines of this instance, collected and sent in batches. */
export class InstanceLog {
  readonly #instance: string;
  readonly #epochMs: () => number;
  readonly #post: (entries: readonly Entry[]) => void;
  #entries: Entry[] = [];

  constructor(instance: string, epochMs: () => number, post: (entries: readonly Entry[]) => void) {
    this.#instance = instance;
    this.#epochMs = epochMs;
    this.#post = post;
  }

  add(
    level: LogEntry['level'],
    message: string,
    fields: Readonly<Record<string, unknown>> | undefined,
    speaker: Attempt | undefined,
  ): void {
    this.#entries.push({
      at: new Date(this.#epochMs()).toISOString(),
      level,
      message: String(message).slice(0, LOG_LINE_CHARS_MAX),
      instance: this.#instance,
      ...(speaker === undefined
        ? {}
        : { session: speaker.ticket.session, invocation: hexOf(speaker.ticket.id), function: speaker.row.name }),
      ...(fields === undefined ? {} : { fields: plain(fields) }),
    });
    if (this.#entries.length >= LOG_BATCH_MAX) this.flush();
  }

  flush(): void {
    if (this.#entries.length === 0) return;
    const entries = this.#entries;
    this.#entries = [];
    this.#post(entries);
  }
}

function plain(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  try {
    return JSON.parse(JSON.stringify(fields)) as Record<string, unknown>;
  } catch {
    return { unserialisable: true };
  }
}
