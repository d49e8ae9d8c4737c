// Persisted objects of all apps: the newest of each (app, bucket, name), on disk.

import { type EpochMs, PlatformError } from '../../base/index.ts';
import type { ObjectRange } from '../../protocol/index.ts';
import type { RecordChange, RecordStore } from './record-store.ts';
import type { StoredObject } from './session.ts';
import { keys } from './session-codec.ts';

interface PersistedHeader {
  readonly contentType: string;
  readonly size: number;
  readonly session: string;
  readonly atMs: number;
}

export class PersistedObjects {
  readonly #records: RecordStore;
  readonly #bytes = new Map<string, number>();
  /** Sizes on their way to the disk, for the accounts of puts that overlap. */
  readonly #writing = new Map<string, number>();

  constructor(records: RecordStore) {
    this.#records = records;
  }

  /** Sums up what is on disk. Once, at start. */
  restore(): void {
    for (const [key, { header }] of this.#records.forwards<PersistedHeader>('v/')) {
      this.#count(key.split('/')[1] ?? '', header.size);
    }
  }

  bytesOf(app: string): number {
    return this.#bytes.get(app) ?? 0;
  }

  /** Resolves when durable. The later call wins. */
  put(app: string, object: StoredObject, epochMs: EpochMs): Promise<void> {
    const { bucket, name, contentType, session } = object.header;
    const key = keys.persisted(app, bucket, name);
    const header: PersistedHeader = { contentType, size: object.bytes.length, session, atMs: epochMs };
    const change: RecordChange = { put: key, header, blobs: [object.bytes] };
    const before = this.#writing.get(key) ?? this.#records.peek<PersistedHeader>(key)?.header.size ?? 0;
    this.#writing.set(key, header.size);
    this.#count(app, header.size - before);
    return this.#records.write([change]).finally(() => {
      if (this.#writing.get(key) === header.size) this.#writing.delete(key);
    });
  }

  /** @param range `end` is the last byte, included. */
  async get(app: string, bucket: string, name: string, range?: { start: number; end?: number }): Promise<ObjectRange> {
    const key = keys.persisted(app, bucket, name);
    const header = this.#records.peek<PersistedHeader>(key)?.header;
    if (header === undefined) {
      throw new PlatformError(
        'E_OBJECT_UNKNOWN',
        `Bucket '${bucket}' of app '${app}' has no persisted object '${name}'.`,
      );
    }
    const { contentType, size } = header;
    const start = Math.min(range?.start ?? 0, size);
    const end = Math.min(range?.end === undefined ? size : range.end + 1, size);
    const bytes =
      range === undefined
        ? (await this.#records.read(key))?.blobs[0]
        : await this.#records.readPart(key, 0, { start, end: Math.max(start, end) });
    if (bytes === undefined)
      throw new PlatformError('E_OBJECT_GONE', `Object '${name}' was replaced while it was read.`);
    return { payload: { contentType, bytes }, size: range === undefined ? bytes.length : size };
  }

  async removeApp(app: string): Promise<void> {
    const changes = this.#records.keys(`v/${app}/`).map((key) => ({ delete: key }));
    if (changes.length > 0) await this.#records.write(changes);
    this.#bytes.delete(app);
  }

  #count(app: string, bytes: number): void {
    this.#bytes.set(app, (this.#bytes.get(app) ?? 0) + bytes);
  }
}
