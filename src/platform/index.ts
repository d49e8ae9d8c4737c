export { MemoryKeyValueStore } from './memory-key-value-store.ts';
export {
  type CancelTimer,
  type Channel,
  type ChannelListener,
  type Clock,
  type DataFolder,
  type Digest,
  type KeyValueChange,
  type KeyValueRange,
  type KeyValueStore,
  type ProcessExit,
  type ProcessHost,
  prefixRange,
  type Random,
  type SpawnedProcess,
  type SpawnOptions,
  type Timers,
} from './ports.ts';
