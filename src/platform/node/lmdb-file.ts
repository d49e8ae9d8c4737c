// Looks at the file of a database before LMDB does. LMDB maps it and trusts it: a page that is not there ends the process by
// a signal, without a word.
//
// Layout (data format 2 of LMDB): pages of one size; the first two are metas, written in turn. Only what is needed to follow
// the tree is read, and only when the file is shorter than it could be: pages that were never needed need not be there.

import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PlatformError } from '../../base/index.ts';

const MAGIC = 0xbeefc0de;
const PAGE_HEADER_BYTES = 24;
const META = { magic: 24, version: 28, pageBytes: 48, freeRoot: 88, mainRoot: 136, lastPage: 144, transaction: 152 };
const META_BYTES = 160;
const PAGE_BYTES_MAX = 65_536;
const FLAG_BRANCH = 1;
const FLAG_LEAF = 2;
/** A leaf's value is on pages of its own. */
const NODE_BIG = 1;
/** No page. */
const NONE = 0xffff_ffff_ffff_ffffn;
/** Written by a server only after its database. */
const LATER_FOLDERS = ['objects', 'apps'];

/** @throws E_CHECKSUM when it is no database, not all of one, or not there although other files of the folder rest on it. */
export function checkLmdbFile(path: string): void {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    assertNothingRestsOn(path);
    return;
  }
  try {
    const { size } = fstatSync(fd);
    if (size === 0) assertNothingRestsOn(path);
    else assertWhole(path, fd, size);
  } finally {
    closeSync(fd);
  }
}

function assertNothingRestsOn(path: string): void {
  for (const folder of LATER_FOLDERS) {
    if (namesIn(join(dirname(path), folder)).length === 0) continue;
    throw damaged(path, `is missing or empty, but there is ${folder}/ of an earlier server`);
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function assertWhole(path: string, fd: number, size: number): void {
  const meta = newestMeta(fd);
  if (meta === undefined) throw damaged(path, 'is not a database');
  const { pageBytes } = meta;
  const pages = Math.floor(size / pageBytes);
  if (BigInt(pages) > meta.lastPage) return;
  const page = Buffer.alloc(pageBytes);
  const left = [meta.freeRoot, meta.mainRoot].filter((root) => root !== NONE);
  // Each page is met once in a whole tree, and once more as the end of a long value.
  let looksLeft = pages * 2;
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    if (looksLeft-- === 0) throw damaged(path, 'has pages that lead in circles');
    if (at >= BigInt(pages)) throw damaged(path, `ends after ${size} bytes, and page ${at} would come later`);
    readSync(fd, page, 0, pageBytes, Number(at) * pageBytes);
    left.push(...pagesBelow(page));
  }
}

interface Meta {
  readonly pageBytes: number;
  readonly freeRoot: bigint;
  readonly mainRoot: bigint;
  readonly lastPage: bigint;
  readonly transaction: bigint;
}

function newestMeta(fd: number): Meta | undefined {
  const first = metaAt(fd, 0);
  const second = first === undefined ? undefined : metaAt(fd, first.pageBytes);
  // LMDB refuses it too.
  if (first === undefined || second === undefined) return undefined;
  return second.transaction > first.transaction ? second : first;
}

function metaAt(fd: number, position: number): Meta | undefined {
  const page = Buffer.alloc(META_BYTES);
  if (readSync(fd, page, 0, META_BYTES, position) < META_BYTES) return undefined;
  const pageBytes = page.readUInt32LE(META.pageBytes);
  const isMeta = page.readUInt32LE(META.magic) === MAGIC && page.readUInt32LE(META.version) === 2;
  if (!isMeta || pageBytes < 512 || pageBytes > PAGE_BYTES_MAX || (pageBytes & (pageBytes - 1)) !== 0) return undefined;
  return {
    pageBytes,
    freeRoot: page.readBigUInt64LE(META.freeRoot),
    mainRoot: page.readBigUInt64LE(META.mainRoot),
    lastPage: page.readBigUInt64LE(META.lastPage),
    transaction: page.readBigUInt64LE(META.transaction),
  };
}

/** The pages that this one points to; of a long value the last, since they are in a row. */
function pagesBelow(page: Buffer): bigint[] {
  const flags = page.readUInt16LE(18);
  if ((flags & (FLAG_BRANCH | FLAG_LEAF)) === 0) return [];
  const below: bigint[] = [];
  const lower = Math.min(page.readUInt16LE(20), page.length);
  for (let slot = PAGE_HEADER_BYTES; slot + 2 <= lower; slot += 2) {
    const node = page.readUInt16LE(slot);
    if (node < PAGE_HEADER_BYTES || node + 8 > page.length) continue;
    const low = page.readUInt32LE(node);
    const nodeFlags = page.readUInt16LE(node + 4);
    if ((flags & FLAG_BRANCH) !== 0) {
      below.push(BigInt(low) | (BigInt(nodeFlags) << 32n));
    } else if ((nodeFlags & NODE_BIG) !== 0) {
      const place = node + 8 + page.readUInt16LE(node + 6);
      if (place + 8 > page.length) continue;
      const count = Math.ceil((low + PAGE_HEADER_BYTES) / page.length);
      below.push(page.readBigUInt64LE(place) + BigInt(count - 1));
    }
  }
  return below;
}

function damaged(path: string, how: string): PlatformError {
  return new PlatformError(
    'E_CHECKSUM',
    `${path} ${how}. Restore the data folder from a backup, or give another one with \`--data DIR\`.`,
    { details: { file: path } },
  );
}
