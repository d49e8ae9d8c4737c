export type {
  ControlPlane,
  ObjectSource,
  OutputEvent,
  PutObjectRequest,
  StartedSession,
  StartRequest,
  SyncOutcome,
} from './control-plane.ts';
export type { GatewayLog, GatewayLogEntry } from './exchange.ts';
export { createGateway, type Gateway, type GatewayOptions } from './gateway.ts';
