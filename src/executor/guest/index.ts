export type { HostToInstance, InstanceBoot, InstanceToHost } from '../shared/index.ts';
export { isApp, NO_LOCATIONS } from './brand.ts';
export { captureConsole } from './console.ts';
export { LANE_BYTES_MAX } from './limits.ts';
export { createLog } from './log.ts';
export { Runner, type RunnerPorts } from './runner.ts';
