export type { HostState } from './host-life.ts';
export {
  type HostConnection,
  Supervisor,
  type SupervisorOptions,
  type SupervisorPorts,
} from './supervisor.ts';
