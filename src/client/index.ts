// The door `antrail/client`: calls apps from Node and from browsers. Imports no node: module.

export { type ErrorCode, PlatformError } from '../base/index.ts';
export type { SessionRecord, SessionState, SessionTrace } from '../protocol/index.ts';
export {
  type Client,
  type ConnectOptions,
  connect,
  type EntryOf,
  type GetOptions,
  type PutOptions,
  type PutResult,
  type StartOptions,
} from './client.ts';
export { answerTextOf } from './problem.ts';
export { connectServer, type LogsQuery, ServerClient, type SessionsQuery } from './server-client.ts';
export type { OutputsOptions, SessionHandle, SessionOutput } from './session-handle.ts';
export type { StateClient, StateEntry } from './state-client.ts';
export { type ConnectionOptions, pathOf as apiPath, type RequestOptions, type StreamedBytes } from './transport.ts';
