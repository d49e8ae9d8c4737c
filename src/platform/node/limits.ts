import { assert } from '../../base/index.ts';

const MIB = 1024 * 1024;

/** A write at most this large may use more of the reserve: the end of a session that was accepted, a removal. */
export const SMALL_WRITE_BYTES_MAX = 64 * 1024;
/** Of the disk of the data folder, kept free by all other writes: a database that meets a full disk may destroy its memory. */
export const DISK_RESERVE_BYTES = 64 * MIB;
/** Kept free by small writes too: the pages that one transaction of LMDB copies, many times over. */
export const DISK_RESERVE_SMALL_BYTES = 16 * MIB;
/** Until the client of a refused write may come again: somebody must make room. */
export const DISK_FULL_RETRY_MS = 10_000;

assert(DISK_RESERVE_SMALL_BYTES > 100 * SMALL_WRITE_BYTES_MAX, 'small writes do not meet the end of the disk');
assert(DISK_RESERVE_BYTES > 2 * DISK_RESERVE_SMALL_BYTES, 'large writes leave room for many small ones');
