// What an unrouted request is told.

import { type ErrorData, nearMiss } from '../base/index.ts';
import { methodsOf, type Route } from './route.ts';

export interface NotFound {
  readonly error: ErrorData;
  readonly status: 404 | 405;
  /** Methods of the path if only the method is wrong. */
  readonly allow?: string;
}

/** @param url as in the request line. */
export function notFound(method: string, url: string, routes: readonly Route[]): NotFound {
  const path = url.split('?', 1)[0] ?? url;
  const shown = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  const segments = path.split('/');
  const here = routes.filter((route) => filledIn(route.path, segments) === path);
  if (here.length > 0) {
    const allow = here.flatMap(methodsOf).join(', ');
    const message = `${shown} takes ${allow}, not ${method}.`;
    return { status: 405, allow, error: { code: 'E_REQUEST_INVALID', message, details: { allow } } };
  }
  const nearest = nearestRoute(method, path, segments, routes);
  const hint = nearest === undefined ? 'GET /v1/openapi.json lists what there is.' : `Nearest is ${nearest}.`;
  const message = `There is nothing at ${method} ${shown}. ${hint}`;
  return {
    status: 404,
    error: {
      code: 'E_REQUEST_INVALID',
      message,
      ...(nearest === undefined ? {} : { details: { didYouMean: nearest } }),
    },
  };
}

/** As `METHOD /path/{name}`: the fewest letters away, with the request's own names in place of the route's. */
function nearestRoute(
  method: string,
  path: string,
  segments: readonly string[],
  routes: readonly Route[],
): string | undefined {
  // The route with the right method comes first, and wins a tie.
  const ordered = routes.toSorted((a, b) => Number(b.method === method) - Number(a.method === method));
  const byCandidate = new Map<string, Route>();
  for (const route of ordered) {
    const candidate = filledIn(route.path, segments);
    if (!byCandidate.has(candidate)) byCandidate.set(candidate, route);
  }
  const near = nearMiss(path, byCandidate.keys());
  const route = near === undefined ? undefined : byCandidate.get(near);
  return route === undefined ? undefined : `${route.method} ${route.path}`;
}

/** The route's path with the request's segments where the route has parameters. */
function filledIn(routePath: string, segments: readonly string[]): string {
  return routePath
    .split('/')
    .map((segment, i) => (segment.startsWith('{') ? segments[i] || segment : segment))
    .join('/');
}
