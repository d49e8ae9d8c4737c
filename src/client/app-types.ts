// What the client knows of an app's types. The one file that meets the SDK; only types, erased when compiled.

/** A function as the SDK types it: what its handler takes and gives. */
export interface Fn<I = any, O = any> {
  readonly '~types'?: { readonly input: I; readonly output: O } | undefined;
}

export interface App<
  N extends string = string,
  F extends Record<string, Fn> = Record<string, Fn>,
  B extends Record<string, unknown> = Record<string, unknown>,
> {
  readonly name: N;
  readonly functions: F;
  readonly buckets: B;
}

export type AnyApp = App<any, any, any>;
export type NameOf<A extends AnyApp> = A extends App<infer N, any, any> ? N : string;
export type FunctionsOf<A extends AnyApp> = A extends App<any, infer F, any> ? F : Record<string, Fn>;
export type BucketsOf<A extends AnyApp> = A extends App<any, any, infer B> ? B : Record<string, unknown>;
export type InOf<F> = F extends Fn<infer I, any> ? I : any;
/** What a call gives; any for a function that returns nothing, since its session's first output answers then. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler's return type is asked about.
export type OutOf<F> = F extends Fn<any, infer O> ? ([O] extends [void] ? any : O) : any;
