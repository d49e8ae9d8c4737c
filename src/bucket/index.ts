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
export { PAGE_BYTES, SHARED_PAGE_OBJECT_BYTES_MAX } from './limits.ts';
export { createSlabMemory, Slab, type SlabMemory, type SlabRef } from './slab.ts';
export {
  isSlabRef,
  nameOf,
  objectBytesMax,
  readObject,
  type StoredContent,
  type StoredObject,
  sizeOf,
  writeObject,
} from './stored-object.ts';
