import { assert, GIB, KIB, MIB } from '../base/index.ts';

/** Unit of the object store's memory: small enough to waste little, large enough that 100 MB is 1,600 of them. */
export const PAGE_BYTES = 64 * KIB;
/** Objects up to this share pages with others of the same owner; larger ones get whole pages. */
export const SHARED_PAGE_OBJECT_BYTES_MAX = 16 * KIB;
/** One growable SharedArrayBuffer; V8 on Node 20 allows no more. */
export const SEGMENT_BYTES_MAX = 4 * GIB;
/** Memory is asked of the system in steps of this, at the least. */
export const SEGMENT_GROW_BYTES = 4 * 1024 * KIB;
/** Segments per app host: bounds the store at 64 GiB. */
export const SEGMENTS_MAX = 16;
/** Spilling begins when so much of the budget is in use, and goes on down to the second. */
export const SPILL_HIGH_SHARE = 15 / 16;
export const SPILL_LOW_SHARE = 7 / 8;
/** Bytes that are being written to the spill file at once: enough to keep a disk busy. */
export const SPILL_UNDER_WAY_BYTES = 32 * MIB;
/** A disk that refused a write is asked again after this. */
export const SPILL_RETRY_MS = 1_000;
/** How long a thread that finds the budget used up waits for room before it goes above it: a disk writes 100 MB meanwhile. */
export const BUDGET_WAIT_MS = 1_000;
/** How long it waits when nothing is left above the budget either, while there is still something to spill. */
export const CAPACITY_WAIT_MS = 10_000;
/** It looks again this often, also when nobody tells it of room. */
export const ROOM_LOOK_MS = 20;
/** Bytes of one write or read of the spill file, each with a checksum of its own: summing it takes 0.4 ms. */
export const SPILL_PART_BYTES = MIB;

assert(SHARED_PAGE_OBJECT_BYTES_MAX * 2 <= PAGE_BYTES, 'a shared page holds at least two objects');
assert(SEGMENT_BYTES_MAX % PAGE_BYTES === 0, 'a segment is whole pages');
assert(ROOM_LOOK_MS < BUDGET_WAIT_MS && BUDGET_WAIT_MS < CAPACITY_WAIT_MS, 'who waits looks while it waits');
assert(SPILL_LOW_SHARE < SPILL_HIGH_SHARE && SPILL_HIGH_SHARE < 1, 'spilling begins before the budget is used up');
