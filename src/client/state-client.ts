// `client.state`: an app's keys from outside, linearizable.

import { PlatformError } from '../base/index.ts';
import { decodeBody, encodeBody, pathOf, type Transport } from './transport.ts';

export interface StateEntry {
  readonly key: string;
  readonly protocol: string;
  readonly version: string;
}

export class StateClient {
  readonly #transport: Transport;
  readonly #app: string;

  constructor(transport: Transport, app: string) {
    this.#transport = transport;
    this.#app = app;
  }

  /** The value; undefined when there is no such key. */
  async get<T = any>(key: string): Promise<T | undefined> {
    try {
      return (await decodeBody(await this.#transport.request('GET', this.#path(key)))) as T;
    } catch (thrown) {
      if (thrown instanceof PlatformError && thrown.code === 'E_KEY_UNKNOWN') return undefined;
      throw thrown;
    }
  }

  put(key: string, value: unknown): Promise<void> {
    return this.#transport.done('PUT', this.#path(key), { body: encodeBody(value, 'value') });
  }

  /** Repeatable: a key that is not there counts as deleted. */
  async delete(key: string): Promise<void> {
    try {
      await this.#transport.done('DELETE', this.#path(key));
    } catch (thrown) {
      if (!(thrown instanceof PlatformError && thrown.code === 'E_KEY_UNKNOWN')) throw thrown;
    }
  }

  /** Entries whose key begins with `prefix`, page by page. */
  async *list(prefix = ''): AsyncGenerator<StateEntry, void, undefined> {
    let cursor: string | undefined;
    do {
      const page: { entries: StateEntry[]; cursor?: string } = await this.#transport.json(
        'GET',
        pathOf('apps', this.#app, 'state'),
        { query: { prefix: prefix === '' ? undefined : prefix, cursor } },
      );
      yield* page.entries;
      cursor = page.cursor;
    } while (cursor !== undefined);
  }

  /** Why the key has the protocol that it has. */
  why(key: string): Promise<unknown> {
    return this.#transport.json('GET', `${this.#path(key)}/why`);
  }

  #path(key: string): string {
    return pathOf('apps', this.#app, 'state', key);
  }
}
