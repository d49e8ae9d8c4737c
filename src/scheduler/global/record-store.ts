// Records on disk: a header and payloads under one key. Payloads above INLINE_VALUE_BYTES_MAX are files beside the
// database, written before the transaction that names them and removed after the one that forgets them. Several records
// may name one file (a session and its retry have the same input): it goes with the last of them.

import { crc32 } from 'node:zlib';
import { assert, PlatformError } from '../../base/index.ts';
import { type DataFolder, type KeyValueChange, type KeyValueStore, prefixRange } from '../../platform/index.ts';
import { encodeFrame, type Frame, FrameDecoder, OBJECT_PART_BYTES, type ObjectSource } from '../../protocol/index.ts';
import { INLINE_VALUE_BYTES_MAX } from './limits.ts';

export type RecordChange =
  | { readonly put: string; readonly header: unknown; readonly blobs?: readonly Uint8Array[] }
  | { readonly delete: string };

export interface StoredRecord<H> {
  readonly header: H;
  /** Undefined where the payload is in a file and was not asked for. */
  readonly blobs: readonly (Uint8Array | undefined)[];
}

interface Envelope {
  readonly h: unknown;
  /** File of each payload, null for one inside. */
  readonly f?: readonly (string | null)[];
  /** Size of each, 0 for one inside. */
  readonly n?: readonly number[];
  /** Checksums of each, one for each part of it; [] for one inside. */
  readonly c?: readonly (readonly number[])[];
}

interface PayloadFile {
  readonly name: string;
  /** Undefined: written before there were any. */
  readonly sums: readonly number[] | undefined;
}

export type OpenPayload = Pick<ObjectSource, 'size' | 'read' | 'close'>;

const FOLDER = 'objects';

export class RecordStore {
  readonly #store: KeyValueStore;
  readonly #folder: DataFolder;
  readonly #filePrefix: string;
  #fileCount = 0;
  /** Which file holds these bytes: a payload that moves from one record to another keeps its file. */
  readonly #fileOf = new WeakMap<Uint8Array, PayloadFile>();
  /** While files are written, later changes wait, so that changes of one key keep their order. */
  #behind: Promise<void> | undefined;
  readonly #underWay = new Set<Promise<void>>();
  #closed = false;
  /** Files of the records that have any, as of the last write, durable or not. */
  readonly #filesOf = new Map<string, readonly string[]>();
  /** By how many records each file is named. */
  readonly #uses = new Map<string, number>();

  /** @param epoch differs at each start, so that names of files never meet. */
  constructor(store: KeyValueStore, folder: DataFolder, epoch: number) {
    this.#store = store;
    this.#folder = folder;
    this.#filePrefix = epoch.toString(36);
  }

  /** All or nothing; resolves when durable. Calls take effect in call order. */
  write(changes: readonly RecordChange[]): Promise<void> {
    assert(!this.#closed, 'a closed record store is not written');
    const large = changes.some(
      (change) => 'put' in change && change.blobs?.some((blob) => blob.length > INLINE_VALUE_BYTES_MAX),
    );
    if (!large && this.#behind === undefined) return this.#track(this.#commit(changes));
    const before = this.#behind ?? Promise.resolve();
    const done = before.then(async () => {
      await this.#writeFiles(changes);
      await this.#commit(changes);
    });
    const behind: Promise<void> = done
      .catch(() => {})
      .then(() => {
        if (this.#behind === behind) this.#behind = undefined;
      });
    this.#behind = behind;
    return this.#track(done);
  }

  /** Without payloads that are files. */
  peek<H>(key: string): StoredRecord<H> | undefined {
    const bytes = this.#store.get(key);
    return bytes === undefined ? undefined : inside<H>(decode(bytes));
  }

  /** @throws E_CHECKSUM when a file that it names is not what was written. */
  async read<H>(key: string): Promise<(StoredRecord<H> & { readonly blobs: readonly Uint8Array[] }) | undefined> {
    const bytes = this.#store.get(key);
    if (bytes === undefined) return undefined;
    const frame = decode(bytes);
    const { h, f, n, c } = frame.header as Envelope;
    if (f === undefined) return { header: h as H, blobs: frame.blobs };
    const blobs: Uint8Array[] = [];
    let next = 0;
    for (const [index, file] of f.entries()) {
      if (file === null) {
        blobs.push(frame.blobs[next++] ?? new Uint8Array(0));
        continue;
      }
      const content = await this.#folder.read(`${FOLDER}/${file}`);
      const sums = c?.[index];
      if (content === undefined || content.length !== n?.[index] || !isIntact(content, sums)) {
        const now = this.#store.get(key);
        if (now !== undefined && Buffer.compare(now, bytes) === 0) throw damaged(file);
        return this.read(key); // replaced meanwhile
      }
      this.#fileOf.set(content, { name: file, sums });
      blobs.push(content);
    }
    return { header: h as H, blobs };
  }

  /** Reads one payload in parts; it stays, whatever becomes of the record, until it is closed. */
  open(key: string, index: number): OpenPayload | undefined {
    const bytes = this.#store.get(key);
    if (bytes === undefined) return undefined;
    const frame = decode(bytes);
    const { f, n, c } = frame.header as Envelope;
    const file = f?.[index];
    if (typeof file === 'string') return this.#openFile({ name: file, sums: c?.[index] }, n?.[index] ?? 0);
    const blob = inside(frame).blobs[index];
    if (blob === undefined) return undefined;
    return {
      size: blob.length,
      read: async (start, end) => blob.subarray(start, Math.min(end, start + OBJECT_PART_BYTES)),
      close: () => {},
    };
  }

  #openFile({ name: file, sums }: PayloadFile, size: number): OpenPayload {
    this.#uses.set(file, (this.#uses.get(file) ?? 0) + 1);
    let isOpen = true;
    return {
      size,
      read: async (start, end) => {
        const part = { start, end: Math.min(end, start + OBJECT_PART_BYTES) };
        const bytes = await this.#folder.read(`${FOLDER}/${file}`, part);
        // A part that is not read as it was summed up, of a range, is not checked.
        const isPart = start % OBJECT_PART_BYTES === 0 && part.end === Math.min(size, start + OBJECT_PART_BYTES);
        const ofPart = isPart ? sums?.slice(start / OBJECT_PART_BYTES) : undefined;
        if (bytes === undefined || bytes.length < part.end - part.start || !isIntact(bytes, ofPart)) {
          throw damaged(file);
        }
        return bytes;
      },
      close: () => {
        if (!isOpen) return;
        isOpen = false;
        this.#uses.set(file, (this.#uses.get(file) ?? 1) - 1);
        if (this.#uses.get(file) === 0) this.#track(this.#removeLater(file)).catch(() => {});
      },
    };
  }

  /** Its record was replaced while it was read; the write that did so may still be under way. */
  async #removeLater(file: string): Promise<void> {
    await Promise.allSettled(this.#underWay);
    await this.#removeUnused(file);
  }

  async #removeUnused(file: string): Promise<void> {
    if (this.#uses.get(file) !== 0) return;
    this.#uses.delete(file);
    await this.#folder.remove(`${FOLDER}/${file}`);
  }

  keys(prefix: string): string[] {
    return Array.from(this.#store.range(prefixRange(prefix)), ([key]) => key);
  }

  /** Keys below `before`, last first, each without payloads that are files. */
  *backwards<H>(prefix: string, before?: string): Iterable<readonly [string, StoredRecord<H>]> {
    const { from, to } = prefixRange(prefix);
    for (const [key, bytes] of this.#store.range({ from, to: before ?? to, reverse: true })) {
      yield [key, inside<H>(decode(bytes))];
    }
  }

  *forwards<H>(prefix: string, limit?: number): Iterable<readonly [string, StoredRecord<H>]> {
    const range = { ...prefixRange(prefix), ...(limit === undefined ? {} : { limit }) };
    for (const [key, bytes] of this.#store.range(range)) yield [key, inside<H>(decode(bytes))];
  }

  /**
   * Once, at start, before anything is written: learns which records have files, and removes files that none names, left
   * by a crash between file and transaction.
   */
  async removeOrphans(prefixes: readonly string[]): Promise<void> {
    const files = new Set(await this.#folder.list(FOLDER));
    if (files.size === 0) return;
    for (const prefix of prefixes) {
      for (const [key, bytes] of this.#store.range(prefixRange(prefix))) {
        const named = filesOf(bytes);
        this.#rename(key, named);
        for (const file of named) files.delete(file);
      }
    }
    for (const file of files) await this.#folder.remove(`${FOLDER}/${file}`);
  }

  /** Resolves when what was written before is durable. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#underWay);
  }

  #track(work: Promise<void>): Promise<void> {
    this.#underWay.add(work);
    const forget = () => this.#underWay.delete(work);
    work.then(forget, forget);
    return work;
  }

  async #writeFiles(changes: readonly RecordChange[]): Promise<void> {
    for (const change of changes) {
      if (!('put' in change)) continue;
      for (const blob of change.blobs ?? []) {
        if (blob.length <= INLINE_VALUE_BYTES_MAX || this.#isInFile(blob)) continue;
        const name = `${this.#filePrefix}-${(this.#fileCount++).toString(36)}`;
        await this.#folder.write(`${FOLDER}/${name}`, blob);
        this.#fileOf.set(blob, { name, sums: sumsOf(blob) });
      }
    }
  }

  async #commit(changes: readonly RecordChange[]): Promise<void> {
    const writes: KeyValueChange[] = [];
    const forgotten: string[] = [];
    for (const change of changes) {
      if (!('put' in change)) {
        forgotten.push(...this.#rename(change.delete, NO_FILES));
        writes.push({ delete: change.delete });
        continue;
      }
      const blobs = change.blobs ?? [];
      const inline: Uint8Array[] = [];
      let files: (string | null)[] | undefined;
      const sizes = new Array<number>(blobs.length).fill(0);
      const sums = new Array<readonly number[]>(blobs.length).fill([]);
      for (const [index, blob] of blobs.entries()) {
        const file = blob.length > INLINE_VALUE_BYTES_MAX ? this.#fileOf.get(blob) : undefined;
        if (file === undefined) {
          inline.push(blob);
        } else {
          files ??= new Array<string | null>(blobs.length).fill(null);
          files[index] = file.name;
          sizes[index] = blob.length;
          sums[index] = file.sums ?? [];
        }
      }
      forgotten.push(...this.#rename(change.put, files?.filter((file) => file !== null) ?? NO_FILES));
      const named = files === undefined ? {} : { f: files, n: sizes, c: sums };
      const envelope: Envelope = { h: change.header, ...named };
      writes.push({ put: change.put, value: Buffer.concat(encodeFrame(envelope, inline)) });
    }
    await this.#store.transaction(writes);
    for (const file of forgotten) {
      // Another record may have named it meanwhile, another write has forgotten it too, or it is being read.
      await this.#removeUnused(file);
    }
  }

  /** A file that no record names any more is gone, or about to go. */
  #isInFile(blob: Uint8Array): boolean {
    const file = this.#fileOf.get(blob)?.name;
    return file !== undefined && (this.#uses.get(file) ?? 0) > 0;
  }

  /** The record of this key names these files from now on. @returns those that it named before. */
  #rename(key: string, files: readonly string[]): readonly string[] {
    const before = this.#filesOf.get(key) ?? NO_FILES;
    if (files.length > 0) this.#filesOf.set(key, files);
    else if (before.length > 0) this.#filesOf.delete(key);
    for (const file of files) this.#uses.set(file, (this.#uses.get(file) ?? 0) + 1);
    for (const file of before) this.#uses.set(file, (this.#uses.get(file) ?? 1) - 1);
    return before;
  }
}

const NO_FILES: readonly string[] = [];

/** One for each part that is read at once. */
function sumsOf(bytes: Uint8Array): number[] {
  const sums: number[] = [];
  for (let at = 0; at < bytes.length; at += OBJECT_PART_BYTES) {
    sums.push(crc32(bytes.subarray(at, at + OBJECT_PART_BYTES)));
  }
  return sums;
}

/** @param sums of its parts, and maybe of later ones; none: nothing is known. */
function isIntact(bytes: Uint8Array, sums: readonly number[] = []): boolean {
  return sums.length === 0 || sumsOf(bytes).every((sum, part) => sum === sums[part]);
}

function damaged(file: string): PlatformError {
  return new PlatformError(
    'E_CHECKSUM',
    `The file ${FOLDER}/${file} of the data folder is missing, or not what was written.`,
  );
}

function decode(bytes: Uint8Array): Frame {
  let frame: Frame | undefined;
  new FrameDecoder({ blobBytesMax: Number.MAX_SAFE_INTEGER }).push(bytes, (one) => {
    frame = one;
  });
  assert(frame !== undefined, 'a stored record is one whole frame');
  return frame;
}

function filesOf(bytes: Uint8Array): string[] {
  return ((decode(bytes).header as Envelope).f ?? []).filter((file) => file !== null);
}

function inside<H>(frame: Frame): StoredRecord<H> {
  const { h, f } = frame.header as Envelope;
  if (f === undefined) return { header: h as H, blobs: frame.blobs };
  let next = 0;
  return { header: h as H, blobs: f.map((file) => (file === null ? frame.blobs[next++] : undefined)) };
}
