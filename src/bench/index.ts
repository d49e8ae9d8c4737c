import { FAULTS_TARGETS, faults } from './faults/suite.ts';
import { IDLE_TARGETS, idle } from './idle/suite.ts';
import { INTERACTION_TARGETS, interaction } from './interaction/suite.ts';
import { OVERLOAD_TARGETS, overload } from './overload/suite.ts';
import type { Suite, Target } from './report.ts';
import { SCHEDULING_TARGETS, scheduling } from './scheduling/suite.ts';
import { SOAK_TARGETS, soak } from './soak/suite.ts';

export { type HostInfo, isReached, type Metric, type Report, type Suite, type Target, targetText } from './report.ts';

/** By name, as `antrail bench <suite>` has it. */
export const SUITES: Readonly<Record<string, Suite>> = { interaction, overload, faults, idle, soak, scheduling };

/** What metrics should reach, by suite and name; those without are for looking at. */
export const TARGETS: Readonly<Record<string, Readonly<Record<string, Target>>>> = {
  interaction: INTERACTION_TARGETS,
  overload: OVERLOAD_TARGETS,
  faults: FAULTS_TARGETS,
  idle: IDLE_TARGETS,
  soak: SOAK_TARGETS,
  scheduling: SCHEDULING_TARGETS,
};
