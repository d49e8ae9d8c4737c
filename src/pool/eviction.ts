// Whose idle instance goes when its room is needed.

export interface EvictionView {
  /** Uses of the function since it has had any instance. */
  readonly uses: number;
  readonly startMs: number;
  readonly memoryMb: number;
  /** Instances of the function, all states. */
  readonly instances: number;
  /** Value of the latest eviction when this one was last used: what is old goes before what is new. */
  readonly clock: number;
}

/** The instance with the lowest value goes. */
export type EvictionOrder = (view: EvictionView) => number;
export type EvictionOrderName = 'greedy-dual' | 'cidre-like';

export const EVICTION_ORDERS: Readonly<Record<EvictionOrderName, EvictionOrder>> = {
  /** FaasCache (ASPLOS 2021): frequency times cost over size, on a clock. */
  'greedy-dual': ({ clock, uses, startMs, memoryMb }) => clock + (uses * startMs) / memoryMb,
  /** After CIDRE (ASPLOS 2025): the uses are shared among the function's instances. */
  'cidre-like': ({ clock, uses, startMs, memoryMb, instances }) =>
    clock + (uses * startMs) / (memoryMb * Math.max(1, instances)),
};
