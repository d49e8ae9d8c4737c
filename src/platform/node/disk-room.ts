// Room on the disk of the data folder. Writes are refused before the disk is full: LMDB that runs into its end may destroy the
// memory of the process, and the ends of sessions that were accepted still find room.

import { statfsSync } from 'node:fs';
import { PlatformError } from '../../base/index.ts';
import { DISK_FULL_RETRY_MS, DISK_RESERVE_BYTES, DISK_RESERVE_SMALL_BYTES, SMALL_WRITE_BYTES_MAX } from './limits.ts';

/** Bytes that are free for this process on the disk of a folder. */
export type FreeBytes = (folder: string) => number;

/** @param underWay bytes of writes that have passed here and are not on the disk yet. @throws E_QUOTA_EXCEEDED. */
export function assertRoom(folder: string, bytes: number, underWay = 0, freeBytes: FreeBytes = freeBytesOf): void {
  const reserve = bytes <= SMALL_WRITE_BYTES_MAX ? DISK_RESERVE_SMALL_BYTES : DISK_RESERVE_BYTES;
  const free = freeBytes(folder);
  if (free - bytes - underWay >= reserve) return;
  throw new PlatformError(
    'E_QUOTA_EXCEEDED',
    `The data folder cannot be written to: its disk has ${free} bytes free, of which ${reserve} stay free. Make room on it.`,
    { details: { folder, freeBytes: free }, retryAfterMs: DISK_FULL_RETRY_MS },
  );
}

function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
