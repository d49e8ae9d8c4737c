// Branded scalars: a unit or an identity that must not be mixed up.

declare const brand: unique symbol;
export type Branded<T, B extends string> = T & { readonly [brand]: B };

/** Monotonic milliseconds, fractions allowed: for durations and deadlines. Comparable within one machine. */
export type MonotonicMs = Branded<number, 'MonotonicMs'>;
/** Milliseconds since 1970: for people and records only. */
export type EpochMs = Branded<number, 'EpochMs'>;

export const KIB = 1024;
export const MIB = 1024 * KIB;
export const GIB = 1024 * MIB;
