import { assert, GIB, KIB } from '../base/index.ts';

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

assert(SHARED_PAGE_OBJECT_BYTES_MAX * 2 <= PAGE_BYTES, 'a shared page holds at least two objects');
assert(SEGMENT_BYTES_MAX % PAGE_BYTES === 0, 'a segment is whole pages');
