/** What `/` shows: links, and how to begin. */
export const HOME_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>antrail</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 42rem; margin: 4rem auto; padding: 0 1rem; }
  code, pre { font: 14px/1.5 ui-monospace, monospace; }
  pre { background: #8881; padding: 0.75rem; overflow-x: auto; }
  @media (prefers-color-scheme: dark) { body { background: #111; color: #ddd; } a { color: #8bf; } }
</style>
<h1>antrail</h1>
<p>Functions that are driven by data. This server is running.</p>
<pre>antrail deploy app.ts
antrail invoke my-app '{"hello": "world"}'</pre>
<ul>
  <li><a href="/v1/apps">apps</a>, <a href="/v1/sessions">sessions</a>, <a href="/v1/dead-letters">dead letters</a></li>
  <li><a href="/v1/instances">instances</a>, <a href="/v1/objects">objects</a>, <a href="/v1/nodes">nodes</a>, <a href="/v1/limits">limits</a></li>
  <li><a href="/metrics">metrics</a>, <a href="/readyz">readiness</a>, <a href="/v1/openapi.json">OpenAPI</a></li>
</ul>
</html>
`;
