// What a row of the route table is. Fastify's routes, OpenAPI and the hint of a 404 are all made from the rows.

import type { ErrorCode } from '../base/index.ts';
import type { Exchange } from './exchange.ts';
import type { QueryOf, QuerySpec } from './query.ts';

export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/** What a request body or an answer is: an octet stream or JSON value of the user's, or one of ours by schema name. */
export type BodyShape = 'value' | 'text' | 'html' | 'events' | 'lines' | 'empty' | { readonly schema: string };

export interface Row<Q extends QuerySpec> {
  readonly method: Method;
  /** As OpenAPI writes it: `/v1/apps/{app}`. */
  readonly path: string;
  /** Unique, camelCase: what a generated client calls it. */
  readonly id: string;
  readonly summary: string;
  /** Asked so often that the router's own cost counts: see plainRoutes. */
  readonly hot?: true;
  readonly about?: string;
  readonly query?: Q;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: BodyShape;
  readonly bodyOptional?: boolean;
  readonly answers: Readonly<Record<number, { readonly about: string; readonly body: BodyShape }>>;
  /** Beside those that any request can get. */
  readonly codes?: readonly ErrorCode[];
  readonly answer: (exchange: Exchange, query: QueryOf<Q>) => Promise<void>;
}

export type Route = Row<QuerySpec>;

/** Keeps a row's query types, then forgets them. */
export function route<const Q extends QuerySpec>(row: Row<Q>): Route {
  return row as unknown as Route;
}

/** Routes of GET answer HEAD too, but streams: theirs could only say what its absence says. */
export function methodsOf({ method, answers }: Route): (Method | 'HEAD')[] {
  const isStream = Object.values(answers).some(({ body }) => body === 'events' || body === 'lines');
  return method === 'GET' && !isStream ? [method, 'HEAD'] : [method];
}
