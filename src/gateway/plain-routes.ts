// The way around Fastify for what is asked most: its router and its request and reply objects cost as much as all the rest
// of a small call. Only a path that reads the same to everybody is taken here; every other one, valid or not, is Fastify's.

import type { Route } from './route.ts';

export interface Found {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/** Characters that no percent-encoding and no normalising changes. */
const SEGMENT = '([\\w.$-]+)';

/** @returns finds the `hot` route of a request whose names are plain; undefined: ask Fastify. */
export function plainRoutes(
  routes: readonly Route[],
): (method: string | undefined, url: string | undefined) => Found | undefined {
  const hot = routes
    .filter((route) => route.hot === true)
    .map((route) => ({
      route,
      names: Array.from(route.path.matchAll(/\{(\w+)\}/g), (match) => match[1] as string),
      pattern: new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, SEGMENT)}(?:\\?|$)`),
    }));
  return (method, url = '') => {
    for (const { route, names, pattern } of hot) {
      if (method !== route.method) continue;
      const match = pattern.exec(url);
      if (match === null) continue;
      const params: Record<string, string> = {};
      for (let i = 0; i < names.length; i++) params[names[i] as string] = match[i + 1] as string;
      return { route, params };
    }
    return undefined;
  };
}
