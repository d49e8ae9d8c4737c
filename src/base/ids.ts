import type { Branded } from './units.ts';

/** `<class><boot epoch, base 36>-<counter, base 36>-<random>`; see sessionIdOf. At most SESSION_ID_CHARS_MAX ASCII letters. */
export type SessionId = Branded<string, 'SessionId'>;

export const SESSION_ID_CHARS_MAX = 40;
/** Names of apps, functions, buckets and triggers. */
export const NAME_PATTERN = /^[A-Za-z$_][A-Za-z0-9$_.-]{0,127}$/;
export const APP_NAME_PATTERN = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** `d`: its start was durable before it was acknowledged. `e`: gone with the server. */
export type DurabilityClass = 'd' | 'e';

/**
 * Session ids carry boot epoch and durability class, so that after a crash a lost one is told from one that never was.
 * @param random 0 to 2^32 - 1: makes ids hard to guess by accident, not by intent.
 */
export function sessionIdOf(
  durability: DurabilityClass,
  bootEpoch: number,
  counter: number,
  random: number,
): SessionId {
  return `${durability}${bootEpoch.toString(36)}-${counter.toString(36)}-${random.toString(36)}` as SessionId;
}

export function parseSessionId(
  id: string,
): { durability: DurabilityClass; bootEpoch: number; counter: number } | undefined {
  const match = /^([de])([0-9a-z]{1,8})-([0-9a-z]{1,11})-[0-9a-z]{1,7}$/.exec(id);
  if (match === null) return undefined;
  return {
    durability: match[1] as DurabilityClass,
    bootEpoch: Number.parseInt(match[2] ?? '', 36),
    counter: Number.parseInt(match[3] ?? '', 36),
  };
}

/** 64 bits of a hash as two unsigned halves. Deterministic ids are made of it; no secret depends on it. */
export interface Hash64 {
  hi: number;
  lo: number;
}

/** Two-lane FNV-like mix over UTF-16 units (after bryc's cyrb53, public domain), both lanes kept. */
export function hashText(text: string, seedHi = 0, seedLo = 0): Hash64 {
  let h1 = 0xdeadbeef ^ seedHi;
  let h2 = 0x41c6ce57 ^ seedLo;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    h1 = Math.imul(h1 ^ unit, 2654435761);
    h2 = Math.imul(h2 ^ unit, 1597334677);
  }
  return finish(h1, h2);
}

/** The same over four integers: what the hot path uses to name a successor. */
export function hashInts(hi: number, lo: number, c: number, d: number): Hash64 {
  let h1 = 0xdeadbeef ^ hi;
  let h2 = 0x41c6ce57 ^ lo;
  h1 = Math.imul(h1 ^ lo, 2654435761);
  h2 = Math.imul(h2 ^ hi, 1597334677);
  h1 = Math.imul(h1 ^ c, 2654435761);
  h2 = Math.imul(h2 ^ c, 1597334677);
  h1 = Math.imul(h1 ^ d, 2654435761);
  h2 = Math.imul(h2 ^ d, 1597334677);
  return finish(h1, h2);
}

function finish(a: number, b: number): Hash64 {
  let h1 = a;
  let h2 = b;
  h1 = Math.imul(h1 ^ (h1 >>> 16), 2246822507) ^ Math.imul(h2 ^ (h2 >>> 13), 3266489909);
  h2 = Math.imul(h2 ^ (h2 >>> 16), 2246822507) ^ Math.imul(h1 ^ (h1 >>> 13), 3266489909);
  return { hi: h2 >>> 0, lo: h1 >>> 0 };
}

export function hexOf(hash: Hash64): string {
  return hash.hi.toString(16).padStart(8, '0') + hash.lo.toString(16).padStart(8, '0');
}
