export { Host } from './host.ts';
export type { HostPorts, HostThread, HostThreadOptions } from './ports.ts';
