export { type RunningServer, startServer } from './server.ts';
export type { ServerLogEntry, ServerOptions } from './settings.ts';
