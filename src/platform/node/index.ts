export { connectChannel, listenForChannels } from './channel.ts';
export { NodeDataFolder } from './data-folder.ts';
export { LmdbStore } from './lmdb-store.ts';
export { nodeProcessHost } from './process-host.ts';
export { openScratchFile } from './scratch-file.ts';
export { startThread, type Thread, type ThreadOptions } from './thread.ts';
export { threadClock, threadClockOrigin } from './thread-clock.ts';
export { nodeClock, nodeDigest, nodeRandom, nodeTimers } from './time.ts';
