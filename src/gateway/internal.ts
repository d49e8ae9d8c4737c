// For tests only.

export { type Answer, send, sendRaw } from './http-client.ts';

export {
  type Call,
  jsonPayload,
  type ScriptedControlPlane,
  SESSION,
  scriptedControlPlane,
} from './scripted-control-plane.ts';
