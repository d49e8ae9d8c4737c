/**
 * An object as a handler sees it: immutable bytes with a name. The executor implements it.
 *
 * `V` is what `json()` gives; it is the author's claim, checked at run time only where a validator is declared.
 */
export interface EpheObject<V = any> {
  /** Unique among all objects: app, bucket, session and name. */
  readonly id: string;
  readonly bucket: string;
  readonly name: string;
  readonly session: string;
  /** '' if it belongs to none. */
  readonly group: string;
  /** In bytes. */
  readonly size: number;
  readonly contentType: string;
  /**
   * The bytes themselves, over shared memory, never a copy. Its creator writes to them until it sends the object; from
   * then on nobody does.
   */
  readonly bytes: Uint8Array;
  json<T = V>(): T;
  text(): string;
  /** The bytes in ordinary memory, for an API that refuses shared memory. */
  copy(): Uint8Array<ArrayBuffer>;
}

/**
 * What a handler gets: the objects of its firing, in the order of their names for bySet and dynamicJoin, of their arrival
 * otherwise. Typed as one or more, for most handlers want the first; a start without a body and a `byTime` with
 * `fireEmpty` give none.
 */
export type Inputs<V = any> = readonly [EpheObject<V>, ...EpheObject[]];
