// The policies that are compared over a trace, each over the range of its own setting.

import {
  ByWorth,
  COLD_START_WORTH_MS,
  COLD_START_WORTH_MS_AT_ONE_AN_HOUR,
  EVICTION_ORDERS,
  fixed,
  hybrid,
  Population,
  untilEvicted,
} from '../../pool/index.ts';
import type { TracePolicy } from './trace-run.ts';

export interface PolicyFamily {
  readonly name: string;
  readonly settings: readonly { readonly name: string; readonly policy: () => TracePolicy }[];
}

const MINUTE_MS = 60_000;
const common = { start: 'drain-aware', reserve: false } as const;

/** How much more or less than the default a cold start is worth. */
export const OUR_SETTINGS = [0.03, 0.1, 0.3, 1, 3, 10];

export const OURS: PolicyFamily = {
  name: 'by-worth',
  settings: OUR_SETTINGS.map((share) => ({
    name: `${share} × the default worth`,
    policy: () => {
      const population = new Population();
      return {
        ...common,
        name: 'by-worth',
        warm: () =>
          new ByWorth({
            worthMs: share * COLD_START_WORTH_MS,
            worthMsAtOneAnHour: share * COLD_START_WORTH_MS_AT_ONE_AN_HOUR,
            population,
            sinceMs: 0,
          }),
      };
    },
  })),
};

const CAPACITIES_MB = [500, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 8_000];

export const RIVALS: readonly PolicyFamily[] = [
  {
    name: 'fixed',
    settings: [0.25, 0.5, 1, 2, 5, 10, 20, 60].map((minutes) => ({
      name: `${minutes} min`,
      policy: () => ({ ...common, name: 'fixed', warm: () => fixed(minutes * MINUTE_MS) }),
    })),
  },
  {
    name: 'histogram',
    settings: [2, 5, 10, 20, 60, 120, 240].flatMap((rangeMinutes) =>
      [0.75, 0.9, 0.99].map((tailShare) => ({
        name: `${rangeMinutes} min, tail ${tailShare}`,
        policy: () => ({ ...common, name: 'histogram', warm: () => hybrid({ rangeMinutes, tailShare }) }),
      })),
    ),
  },
  {
    name: 'greedy-dual',
    settings: CAPACITIES_MB.map((memoryMb) => ({
      name: `${memoryMb} MB`,
      policy: () => ({
        ...common,
        name: 'greedy-dual',
        warm: untilEvicted,
        capacity: { memoryMb, order: EVICTION_ORDERS['greedy-dual'] },
      }),
    })),
  },
  {
    name: 'cidre-like',
    settings: CAPACITIES_MB.map((memoryMb) => ({
      name: `${memoryMb} MB`,
      policy: () => ({
        ...common,
        start: 'cidre-like' as const,
        name: 'cidre-like',
        warm: untilEvicted,
        capacity: { memoryMb, order: EVICTION_ORDERS['cidre-like'] },
      }),
    })),
  },
];
