// An object as user code sees it: views of shared memory, text made only when asked for.

import { PlatformError } from '../../base/index.ts';
import {
  isSlabRef,
  isSpilled,
  nameOf,
  type Slab,
  type SlabRef,
  type StoredObject,
  sizeOf,
} from '../../bucket/index.ts';
import type { EpheObject } from '../../sdk/index.ts';

export interface ObjectHome {
  readonly app: string;
  readonly slab: Slab;
  readonly bucketName: (index: number) => string;
}

export class GuestObject implements EpheObject {
  readonly wire: StoredObject;
  readonly #home: ObjectHome;
  readonly #session: string;
  #bytes: Uint8Array | undefined;
  #name: string | undefined;
  /** What a validator made of the value; `json()` gives it instead of the bytes. */
  #validated: { readonly value: unknown } | undefined;

  constructor(wire: StoredObject, session: string, home: ObjectHome) {
    this.wire = wire;
    this.#session = session;
    this.#home = home;
  }

  get id(): string {
    return `${this.#home.app}/${this.bucket}/${this.session}/${this.name}`;
  }

  get bucket(): string {
    return this.#home.bucketName(this.wire.bucket);
  }

  get name(): string {
    this.#name ??= nameOf(this.wire);
    return this.#name;
  }

  get session(): string {
    return this.wire.session ?? this.#session;
  }

  get group(): string {
    return this.wire.group;
  }

  get size(): number {
    return sizeOf(this.wire);
  }

  get contentType(): string {
    return this.wire.contentType;
  }

  get bytes(): Uint8Array {
    if (this.#bytes === undefined) {
      const { content } = this.wire;
      if (typeof content === 'string') this.#bytes = new TextEncoder().encode(content);
      else if (isSlabRef(content)) this.#bytes = this.#home.slab.view(content);
      else if (isSpilled(content)) throw new Error('an object is in memory while a handler has it');
      else this.#bytes = new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
    }
    return this.#bytes;
  }

  text(): string {
    const { content } = this.wire;
    if (typeof content === 'string') return content;
    const bytes = this.bytes;
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
  }

  json<T>(): T {
    if (this.#validated !== undefined) return this.#validated.value as T;
    const text = this.text();
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new PlatformError(
        'E_JSON_INVALID',
        `object ${this.bucket}/${this.name} is not JSON (content type ${this.contentType}, ${this.size} bytes): ` +
          'use .bytes or .text()',
        { cause },
      );
    }
  }

  copy(): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(this.bytes);
  }

  setValidated(value: unknown): void {
    this.#validated = { value };
  }

  get [Symbol.toStringTag](): string {
    return 'EpheObject';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return `EpheObject { ${this.bucket}/${this.name}, ${this.size} bytes, ${this.contentType} }`;
  }
}

/** An object that its creator still writes to. */
export interface CreatedObject {
  readonly object: GuestObject;
  readonly ref: SlabRef;
  sent: boolean;
}
