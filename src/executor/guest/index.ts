export { Runner, type RunnerPorts } from './runner.ts';
