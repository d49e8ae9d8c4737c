/** Bugs, not errors: what must hold holds, in production too. Never caught. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** One condition each; the message says what must hold. */
export function assert(condition: unknown, mustHold: string): asserts condition {
  if (!condition) throw new AssertionError(`must hold: ${mustHold}`);
}

/** For exhaustive switches over closed unions. */
export function unreachable(value: never, where: string): never {
  throw new AssertionError(`must hold: every case of ${where} is handled (got ${JSON.stringify(value)})`);
}
