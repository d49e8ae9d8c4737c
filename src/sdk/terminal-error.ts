/** Thrown by a handler or a step: what failed will fail again, so it is not retried. */
export class TerminalError extends Error {
  // Compared by name across threads and across copies of this package.
  override readonly name = 'TerminalError';
}
