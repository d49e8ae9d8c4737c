export { Host } from './host.ts';
export { ANSWER_MS_MAX, FRAME_BYTES_MAX } from './limits.ts';
export type { HostPorts, HostThread, HostThreadOptions } from './ports.ts';
export { type HostProcessPorts, runHost } from './process.ts';
