export { type Core, type CoreOptions, type CorePorts, startCore } from './core.ts';
export { type RunningServer, startServer } from './server.ts';
export type { ServerLogEntry, ServerOptions, Settings } from './settings.ts';
