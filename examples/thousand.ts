// `npm run thousand`: a thousand sessions of each example, and what they leave: resident memory of server and app host at
// every tenth, sessions left open, bytes left in the object stores. Exit code 1 when something is left or a result is wrong.

import { connect, connectServer } from 'antrail/client';
import { AdStream } from './ad-events/generate.ts';
import { syntheticPpm } from './resize/image.ts';
import { memoryOf, serve } from './served.ts';
import { bytes, table } from './text.ts';
import type { WordCounts } from './word-count/app.ts';
import { textOfMobyDick } from './word-count/moby-dick.ts';

const SESSIONS = Number(process.argv[2] ?? 1_000);
const TENTHS = 10;
/** By then what is kept of ended sessions has its full size. */
const LEVEL_TENTH = 6;
/** Resident memory of the last tenth over that one. */
const GROWTH_MAX = 1.15;
const TEXT_CHARS = 100_000;
const AT_ONCE = 4;

interface Run {
  readonly name: string;
  readonly file: string;
  readonly once: (url: string, n: number) => Promise<void>;
}

const text = textOfMobyDick().slice(0, TEXT_CHARS);
const photo = syntheticPpm(400, 300, 1);
const ads = [...new AdStream(1).batches({ eventsPerSecond: 1_000, batchesPerSecond: 10, seconds: 1 })];

const RUNS: readonly Run[] = [
  {
    name: 'hello',
    file: 'examples/hello/app.ts',
    once: async (url) => {
      const client = connect<typeof import('./hello/app.ts').default>({ app: 'hello', url });
      if ((await client.invoke<string>('greet', { name: 'ant' })) !== 'HELLO, ANT!') throw new Error('wrong greeting');
    },
  },
  {
    name: 'word-count',
    file: 'examples/word-count/app.ts',
    once: async (url) => {
      const client = connect<typeof import('./word-count/app.ts').default>({ app: 'word-count', url });
      const counted = await client.invoke<WordCounts>('split', Buffer.from(text));
      if (!(counted.total > 0)) throw new Error('no words counted');
    },
  },
  {
    name: 'ad-events',
    file: 'examples/ad-events/app.ts',
    once: async (url, n) => {
      const client = connect<typeof import('./ad-events/app.ts').default>({ app: 'ad-events', url });
      await client.invoke('preprocess', ads[n % ads.length]?.events ?? []);
    },
  },
  {
    name: 'resize',
    file: 'examples/resize/app.ts',
    once: async (url) => {
      const client = connect<typeof import('./resize/app.ts').default>({ app: 'resize', url });
      const small = await client.invoke<Uint8Array>('normalise', photo);
      if (!(small.length > 0)) throw new Error('no thumbnail');
    },
  },
];

async function measure(run: Run): Promise<{ row: string[]; problems: string[] }> {
  const served = await serve();
  const { url, client, server } = served;
  try {
    const appName = await served.deploy(run.file);
    const host = await served.host();
    const resident: { server: number; host: number }[] = [];
    let begun = 0;
    for (let tenth = 1; tenth <= TENTHS; tenth++) {
      const until = Math.round((SESSIONS * tenth) / TENTHS);
      await Promise.all(
        Array.from({ length: AT_ONCE }, async () => {
          while (begun < until) await run.once(url, begun++);
        }),
      );
      resident.push({
        server: (await memoryOf(server)).residentBytes,
        host: (await memoryOf(host)).residentBytes,
      });
    }
    await untilQuiet(url);
    const { sessions } = await client.sessions({ app: appName, state: 'running', limit: 10 });
    const { apps } = await client.objects(appName);
    const left = apps.reduce((sum, app) => sum + app.objects, 0);
    const [level, last] = [resident[LEVEL_TENTH - 1], resident.at(-1)];
    const growth = (which: 'server' | 'host') => (last?.[which] ?? 0) / (level?.[which] ?? 1);
    const problems: string[] = [];
    if (sessions.length > 0) problems.push(`${run.name}: ${sessions.length} sessions are left open`);
    if (left > 0) problems.push(`${run.name}: ${left} objects are left`);
    for (const which of ['server', 'host'] as const) {
      if (growth(which) > GROWTH_MAX) problems.push(`${run.name}: the ${which} grew by ${growth(which).toFixed(2)}`);
    }
    return {
      row: [
        run.name,
        String(SESSIONS),
        bytes(level?.server ?? 0),
        bytes(last?.server ?? 0),
        growth('server').toFixed(3),
        bytes(level?.host ?? 0),
        bytes(last?.host ?? 0),
        growth('host').toFixed(3),
        String(sessions.length),
        String(left),
      ],
      problems,
    };
  } finally {
    await served.close();
  }
}

/** Windows of ad-events close a second after the last event. */
async function untilQuiet(url: string): Promise<void> {
  const client = connectServer({ url });
  for (let i = 0; i < 100; i++) {
    const { sessions } = await client.sessions({ state: 'running', limit: 1 });
    const { apps } = await client.objects();
    if (sessions.length === 0 && apps.every((app) => app.objects === 0)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const rows: string[][] = [];
const problems: string[] = [];
for (const run of RUNS) {
  const measured = await measure(run);
  rows.push(measured.row);
  problems.push(...measured.problems);
}
const head = [
  'example',
  'sessions',
  'server 6th',
  'server last',
  'ratio',
  'host 6th',
  'host last',
  'ratio',
  'open',
  'objects',
];
console.log(table([head, ...rows]).join('\n'));
for (const problem of problems) console.log(`WRONG ${problem}`);
process.exitCode = problems.length === 0 ? 0 : 1;
