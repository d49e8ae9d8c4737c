export { connectChannel, listenForChannels } from './channel.ts';
export { NodeDataFolder } from './data-folder.ts';
export { LmdbStore } from './lmdb-store.ts';
export { nodeProcessHost } from './process-host.ts';
export { nodeClock, nodeDigest, nodeRandom, nodeTimers } from './time.ts';
