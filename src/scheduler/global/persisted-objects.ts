// Persisted objects of all apps: the newest of each (app, bucket, name), on disk.
//
// Owns: how many bytes each app has persisted, its quota, and how long they are kept.
// Does not own: files and transactions (RecordStore), which session may persist a name again (HostObjects).

import { type EpochMs, PlatformError } from '../../base/index.ts';
import type { ObjectSource, Payload, PersistedInfo } from '../../protocol/index.ts';
import { PERSISTED_BYTES_MAX, SWEEP_BATCH } from './limits.ts';
import type { RecordChange, RecordStore } from './record-store.ts';
import type { StoredObject } from './session.ts';
import { keys } from './session-codec.ts';

interface PersistedHeader {
  readonly contentType: string;
  readonly size: number;
  readonly session: string;
  readonly group?: string;
  readonly atMs: number;
}

export interface PersistedOptions {
  /** Of one app. */
  readonly bytesMax: number;
  /** After this they are removed; 0: never. */
  readonly retentionMs: number;
}

export const PERSISTED_FOR_EVER: PersistedOptions = { bytesMax: PERSISTED_BYTES_MAX, retentionMs: 0 };

export class PersistedObjects {
  readonly #records: RecordStore;
  readonly #options: PersistedOptions;
  readonly #epochMs: () => number;
  readonly #bytes = new Map<string, number>();
  /** Sizes on their way to the disk, for the accounts of puts that overlap. */
  readonly #writing = new Map<string, number>();

  constructor(records: RecordStore, epochMs: () => number, options: PersistedOptions = PERSISTED_FOR_EVER) {
    this.#records = records;
    this.#epochMs = epochMs;
    this.#options = options;
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

  /**
   * Resolves when durable. The later call wins.
   * @throws E_QUOTA_EXCEEDED when the app has too many bytes; nothing has changed then.
   */
  put(app: string, object: StoredObject, epochMs: EpochMs): Promise<void> {
    const { bucket, name, contentType, session, group } = object.header;
    const key = keys.persisted(app, bucket, name);
    const size = object.bytes.length;
    const header: PersistedHeader = { contentType, size, session, group, atMs: epochMs };
    const before = this.#sizeOf(key);
    const { bytesMax } = this.#options;
    if (this.bytesOf(app) + size - before > bytesMax) {
      throw new PlatformError(
        'E_QUOTA_EXCEEDED',
        `App '${app}' has ${this.bytesOf(app)} bytes of persisted objects; with ${size} more it would have more than ` +
          `persistedBytesMax, ${bytesMax}. Delete some (antrail objects delete), or raise it in the server configuration.`,
        { details: { limitBytes: bytesMax } },
      );
    }
    const change: RecordChange = { put: key, header, blobs: [object.bytes] };
    return this.#write(app, key, change, size, before);
  }

  /** Resolves when it is gone for good. @throws E_OBJECT_UNKNOWN. */
  delete(app: string, bucket: string, name: string): Promise<void> {
    const key = keys.persisted(app, bucket, name);
    this.#headerOf(app, bucket, name);
    return this.#write(app, key, { delete: key }, 0, this.#sizeOf(key));
  }

  /** Whole. @throws E_OBJECT_UNKNOWN, E_OBJECT_GONE. */
  async get(app: string, bucket: string, name: string): Promise<{ payload: Payload; group: string; session: string }> {
    const { contentType, session, group = '' } = this.#headerOf(app, bucket, name);
    const bytes = (await this.#records.read(keys.persisted(app, bucket, name)))?.blobs[0];
    if (bytes === undefined)
      throw new PlatformError('E_OBJECT_GONE', `Object '${name}' was replaced while it was read.`);
    return { payload: { contentType, bytes }, group, session };
  }

  /** In parts; it stays readable until it is closed, also when it is replaced. @throws E_OBJECT_UNKNOWN. */
  open(app: string, bucket: string, name: string): ObjectSource {
    const { contentType, session, atMs } = this.#headerOf(app, bucket, name);
    const open = this.#records.open(keys.persisted(app, bucket, name), 0);
    if (open === undefined) throw unknown(app, bucket, name);
    return { ...open, contentType, version: `${session}.${atMs.toString(36)}` };
  }

  /** By name, those behind `after`. */
  list(app: string, bucket: string, prefix: string, after: string | undefined, limit: number): PersistedInfo[] {
    const found: PersistedInfo[] = [];
    const start = keys.persisted(app, bucket, '');
    for (const [key, { header }] of this.#records.forwards<PersistedHeader>(start)) {
      const name = key.slice(start.length);
      if (
        !name.startsWith(prefix) ||
        (after !== undefined && Buffer.compare(Buffer.from(name), Buffer.from(after)) <= 0) ||
        this.#isExpired(header)
      )
        continue;
      const { size, contentType, session, atMs } = header;
      found.push({ name, size, contentType, session, at: new Date(atMs).toISOString() });
      if (found.length >= limit) break;
    }
    return found;
  }

  /** Removes what is past its retention. @returns how many. */
  async sweep(): Promise<number> {
    if (this.#options.retentionMs === 0) return 0;
    const writes: Promise<void>[] = [];
    for (const [key, { header }] of this.#records.forwards<PersistedHeader>('v/')) {
      if (!this.#isExpired(header) || this.#writing.has(key)) continue;
      writes.push(this.#write(key.split('/')[1] ?? '', key, { delete: key }, 0, header.size));
      if (writes.length >= SWEEP_BATCH) break;
    }
    await Promise.all(writes);
    return writes.length;
  }

  async removeApp(app: string): Promise<void> {
    const changes = this.#records.keys(`v/${app}/`).map((key) => ({ delete: key }));
    if (changes.length > 0) await this.#records.write(changes);
    this.#bytes.delete(app);
  }

  #write(app: string, key: string, change: RecordChange, size: number, before: number): Promise<void> {
    this.#writing.set(key, size);
    this.#count(app, size - before);
    return this.#records.write([change]).then(
      () => {
        if (this.#writing.get(key) === size) this.#writing.delete(key);
      },
      (error) => {
        if (this.#writing.get(key) === size) this.#writing.delete(key);
        this.#recount(app);
        throw error;
      },
    );
  }

  #sizeOf(key: string): number {
    return this.#writing.get(key) ?? this.#records.peek<PersistedHeader>(key)?.header.size ?? 0;
  }

  #headerOf(app: string, bucket: string, name: string): PersistedHeader {
    const header = this.#records.peek<PersistedHeader>(keys.persisted(app, bucket, name))?.header;
    if (header === undefined || this.#isExpired(header)) throw unknown(app, bucket, name);
    return header;
  }

  #isExpired({ atMs }: PersistedHeader): boolean {
    const { retentionMs } = this.#options;
    return retentionMs > 0 && atMs + retentionMs <= this.#epochMs();
  }

  /** What is on disk, and what is on its way. */
  #recount(app: string): void {
    let bytes = 0;
    for (const [key, { header }] of this.#records.forwards<PersistedHeader>(`v/${app}/`)) {
      if (!this.#writing.has(key)) bytes += header.size;
    }
    for (const [key, size] of this.#writing) if (key.startsWith(`v/${app}/`)) bytes += size;
    this.#bytes.set(app, bytes);
  }

  #count(app: string, bytes: number): void {
    this.#bytes.set(app, (this.#bytes.get(app) ?? 0) + bytes);
  }
}

function unknown(app: string, bucket: string, name: string): PlatformError {
  return new PlatformError('E_OBJECT_UNKNOWN', `Bucket '${bucket}' of app '${app}' has no persisted object '${name}'.`);
}
