// A large answer to a client that may not read it: what the socket has not taken stays in memory, so it is not waited for
// for ever.

import type { ServerResponse } from 'node:http';
import { ANSWER_SLICE_BYTES } from './limits.ts';
import type { Watch, Watched } from './watch.ts';

/** Ends the answer with these bytes, and the connection if none of them are taken for `stallMs`. */
export class SlowAnswer implements Watched {
  readonly #res: ServerResponse;
  readonly #bytes: Buffer;
  readonly #watch: Watch;
  readonly #stallMs: number;
  #at = 0;
  #ticksIdle = 0;

  constructor(res: ServerResponse, bytes: Buffer, watch: Watch, stallMs: number) {
    this.#res = res;
    this.#bytes = bytes;
    this.#watch = watch;
    this.#stallMs = stallMs;
    watch.add(this);
    res.on('drain', () => this.#write());
    res.once('close', () => watch.delete(this));
    this.#write();
  }

  tick(): void {
    if (++this.#ticksIdle > this.#watch.ticksOf(this.#stallMs)) this.#res.destroy();
  }

  /** In slices: only when one has been taken is it known that the client reads. */
  #write(): void {
    this.#ticksIdle = 0;
    while (this.#at < this.#bytes.length) {
      const slice = this.#bytes.subarray(this.#at, this.#at + ANSWER_SLICE_BYTES);
      this.#at += slice.length;
      if (this.#at >= this.#bytes.length) {
        this.#res.end(slice);
        return;
      }
      if (!this.#res.write(slice)) return;
    }
  }
}
