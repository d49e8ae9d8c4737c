// `npm start`: a server with all examples on it, until Ctrl-C. `npm start -- --port N` takes another port, 0 a free one;
// `--data DIR` another folder than .antrail/.

import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { openServer, ROOT } from './server.ts';

const PORT_MAX = 65_535;
const DEFAULT_PORT = 7_070;
/** Ctrl-C reaches this process twice, from the terminal and from npm's script: a later one ends it at once. */
const SECOND_SIGNAL_MS = 1_000;

const EXAMPLES = [
  'hello',
  'word-count',
  'ad-events',
  'resize',
  'risk-query',
  'conditional',
  'dynamic-map',
  'finra-audit',
  'media-review',
  'redundant-inference',
  'sort',
  'video',
  'custom-trigger',
] as const;

interface Options {
  readonly port: number;
  readonly dataDir: string;
}

/** @returns undefined when they are wrong. */
function optionsOf(args: readonly string[]): Options | undefined {
  try {
    const { values } = parseArgs({ args: [...args], options: { port: { type: 'string' }, data: { type: 'string' } } });
    const { port = String(DEFAULT_PORT), data } = values;
    if (!/^\d{1,5}$/.test(port) || Number(port) > PORT_MAX) return undefined;
    return { port: Number(port), dataDir: data === undefined ? join(ROOT, '.antrail') : resolve(data) };
  } catch {
    return undefined;
  }
}

function interrupted(): Promise<void> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        firstMs ??= performance.now();
        if (performance.now() - firstMs > SECOND_SIGNAL_MS) process.exit(130);
        resolve();
      });
    }
  });
}

function howTo(url: string, { dataDir }: Options): string {
  const server = url === `http://127.0.0.1:${DEFAULT_PORT}` ? '' : ` ANTRAIL_URL=${url}`;
  return `antrail listening on ${url}, with ${EXAMPLES.join(', ')}

  alias antrail="${server === '' ? '' : `${server.trim()} `}node dist/bin/antrail.js"

  antrail invoke hello '{"name": "ant"}'
  antrail invoke word-count '"the quick brown fox and the lazy dog"'
  antrail invoke word-count @README.md
  antrail invoke resize @photo.ppm > thumbnail.ppm         a binary PPM; most image tools write them
  antrail invoke risk-query '["user:7", "loc:Harbour"]'
  antrail invoke dynamic-map '[3, 1, 2]'
  antrail invoke finra-audit '{"seed": 1, "trades": 10000, "rules": 40}'
  antrail invoke sort '{"seed": 1, "records": 100000, "mappers": 8, "partitions": 8}'
  node dist-test/examples/ad-events/feed.js --url ${url}    10,000 events/s for 5 s, checked

  curl -d '{"name": "ant"}' -H 'content-type: application/json' ${url}/v1/apps/hello/functions/greet

  antrail apps        antrail sessions        antrail trace <session>        curl ${url}/metrics

Sources are in examples/. Ctrl-C ends the server; its data stays in ${dataDir}.
`;
}

async function main(): Promise<number> {
  const options = optionsOf(process.argv.slice(2));
  if (options === undefined) {
    console.error(
      `usage: npm start [-- [--port N] [--data DIR]]\n  N from 0 (a free one) to ${PORT_MAX}, default ${DEFAULT_PORT}`,
    );
    return 2;
  }
  const stop = interrupted();
  let server: Awaited<ReturnType<typeof openServer>>;
  try {
    server = await openServer(options);
  } catch (error) {
    console.error((error as Error).message);
    return 1;
  }
  try {
    console.error(`deploying ${EXAMPLES.length} apps`);
    await Promise.all(EXAMPLES.map((name) => server.deploy(`examples/${name}/app.ts`)));
    console.log(howTo(server.url, options));
    await stop;
    return 0;
  } finally {
    await server.close();
  }
}

process.exitCode = await main();
