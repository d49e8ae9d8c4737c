export {
  type AppTables,
  type BucketRow,
  buildTables,
  CALL_BUCKET_INDEX,
  type FunctionRow,
  INPUT_BUCKET_INDEX,
  MEMORY_MB_DEFAULT,
  OUTPUT_BUCKET_INDEX,
  type RerunRow,
  TIMEOUT_MS_DEFAULT,
  type TriggerRow,
  type TriggersByBucket,
} from './app-tables.ts';
export { ByteReader, ByteWriter, textBytesMax } from './bytes.ts';
export { entryId, firingId, objectFiringId } from './firing-id.ts';
export { PAGE_BYTES, SHARED_PAGE_OBJECT_BYTES_MAX, SPILL_HIGH_SHARE, SPILL_PART_BYTES } from './limits.ts';
export { createSlabMemory, type RoomWait, Slab, type SlabMemory, type SlabRef, type SpillTrouble } from './slab.ts';
export { type BlockUse, type SpillEffect, SpillMachine, type SpillView } from './spill-machine.ts';
export {
  isSlabRef,
  isSpilled,
  isStored,
  nameOf,
  objectBytesMax,
  readObject,
  type Spilled,
  type StoredContent,
  type StoredObject,
  sizeOf,
  writeObject,
} from './stored-object.ts';
