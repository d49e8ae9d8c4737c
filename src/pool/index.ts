export { Estimate } from './estimate.ts';
export { EVICTION_ORDERS, type EvictionOrder, type EvictionOrderName, type EvictionView } from './eviction.ts';
export { type HybridOptions, hybrid } from './histogram-policy.ts';
export { COLD_START_WORTH_MS, COLD_START_WORTH_MS_AT_ONE_AN_HOUR } from './limits.ts';
export { Pool, type PoolEffect, type Pooled, type PooledState, type PoolOptions } from './pool.ts';
export {
  START_POLICIES,
  type StartDecision,
  type StartPolicy,
  type StartPolicyName,
  type StartView,
} from './start-policy.ts';
export {
  ByWorth,
  type ByWorthOptions,
  fixed,
  Population,
  untilEvicted,
  type WarmPolicy,
  type Wish,
} from './warm-policy.ts';
