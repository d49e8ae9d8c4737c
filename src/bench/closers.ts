/** What a suite has opened, closed in reverse order. */
export class Closers {
  readonly #closers: (() => Promise<void>)[] = [];

  add(close: () => Promise<void>): void {
    this.#closers.push(close);
  }

  /** Closes all of it, whatever fails; then throws the first failure. Idempotent. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      await close().catch((failure: unknown) => failures.push(failure));
    }
    if (failures.length > 0) throw failures[0];
  }
}
