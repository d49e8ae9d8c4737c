export type { HostToInstance, InstanceBoot, InstanceToHost } from '../shared/index.ts';
export { NO_LOCATIONS } from './brand.ts';
export { captureConsole } from './console.ts';
export { type InstancePorts, runInstance } from './instance.ts';
export { Runner, type RunnerPorts } from './runner.ts';
