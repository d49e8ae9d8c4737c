// What the client knows of an app's types. The one file that meets the SDK; only types, erased when compiled.

import type { OutOf as OutOfFn } from '../sdk/index.ts';

export type { AnyApp, BucketsOf, FunctionsOf, InOf, NameOf } from '../sdk/index.ts';

/** What a call gives; any where the app's types are not known. */
export type OutOf<F> = 0 extends 1 & F ? any : OutOfFn<F>;
