export { PAGE_BYTES, SHARED_PAGE_OBJECT_BYTES_MAX } from './limits.ts';
export { createSlabMemory, Slab, type SlabMemory, type SlabRef } from './slab.ts';
