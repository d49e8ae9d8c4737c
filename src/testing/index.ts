export type { Violation } from './evidence.ts';
export { PLANTS, type Plant } from './plants.ts';
export { SeedRunner } from './seed-runner.ts';
export { type SimulationOptions, type SimulationResult, simulate } from './simulate.ts';
