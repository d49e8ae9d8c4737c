// `npm run demo`: a tour in half a minute. Starts a server on a free port with a temporary data folder, runs the
// examples on it, checks every result, and shows what the platform did. Exit code 1 when a result is wrong.

import { isDeepStrictEqual } from 'node:util';
import { connect } from 'antrail/client';
import { driveAds } from './ad-events/drive.ts';
import { adReportLines } from './ad-events/report.ts';
import { type Sample, samplesOf, sumOf } from './metrics.ts';
import type { Fact } from './resize/app.ts';
import { parsePpm, syntheticPpm } from './resize/image.ts';
import { type ExampleServer, openServer } from './server.ts';
import { bytes, count, ms, table } from './text.ts';
import type { WordCounts } from './word-count/app.ts';
import { chaptersOfMobyDick, countInOneThread, textOfMobyDick } from './word-count/moby-dick.ts';

const DEMO_MS_MAX = 100_000;
const ADS = { eventsPerSecond: 10_000, seconds: 4 };

const wrong: string[] = [];

function title(text: string): void {
  console.log(`\n${text}\n${'─'.repeat(text.length)}`);
}

function say(...lines: readonly string[]): void {
  for (const line of lines) console.log(`  ${line}`);
}

/** Says it, and remembers when it is wrong. */
function check(isRight: boolean, what: string): void {
  say(`${isRight ? 'ok   ' : 'WRONG'} ${what}`);
  if (!isRight) wrong.push(what);
}

async function timed<T>(act: () => Promise<T>): Promise<[result: T, tookMs: number]> {
  const startedMs = performance.now();
  const result = await act();
  return [result, performance.now() - startedMs];
}

async function showHello({ url }: ExampleServer): Promise<void> {
  title('hello: a function sends an object, the bucket’s trigger runs the next');
  const client = connect<typeof import('./hello/app.ts').default>({ app: 'hello', url });
  const [answer, firstMs] = await timed(() => client.invoke<string>('greet', { name: 'ant' }));
  const [, secondMs] = await timed(() => client.invoke('greet', { name: 'ant' }));
  check(answer === 'HELLO, ANT!', `greet → shout answers ${JSON.stringify(answer)}`);
  say(`first call ${ms(firstMs)}, second ${ms(secondMs)}`);
}

async function showWordCount({ url }: ExampleServer): Promise<void> {
  title('word-count: MapReduce over Moby-Dick');
  const client = connect<typeof import('./word-count/app.ts').default>({ app: 'word-count', url });
  const text = textOfMobyDick();
  const expected = countInOneThread(text);
  const [handle, tookMs] = await timed(async () => {
    const started = await client.start<WordCounts>('split', Buffer.from(text));
    await started.result();
    return started;
  });
  const counted = await handle.result();
  check(
    isDeepStrictEqual(counted, expected),
    `${count(counted.total)} words, ${count(counted.distinct)} different: as counted in one thread`,
  );
  say(
    `most frequent: ${counted.counts
      .slice(0, 6)
      .map(([word, n]) => `${word} ${count(n)}`)
      .join(' · ')}`,
  );
  const { counts } = await handle.info();
  say(
    `split → 12 map → 6 reduce → collect in ${ms(tookMs)}: ${counts.invocations} invocations, ` +
      `${counts.objects} objects, ${bytes(counts.bytes)}`,
  );
  const chapters = chaptersOfMobyDick().map((chapter) => chapter.text);
  const halves = [0, 1].map((rest) => chapters.filter((_, i) => i % 2 === rest).join('\n'));
  const both = await Promise.all(halves.map((half) => client.invoke<WordCounts>('split', Buffer.from(half))));
  check(
    both.every((one, i) => isDeepStrictEqual(one, countInOneThread(halves[i] ?? ''))),
    'two sessions at once, even and odd chapters: not mixed',
  );
}

async function showResize({ url }: ExampleServer): Promise<void> {
  title('resize: 12 megapixels through three functions, in place');
  const client = connect<typeof import('./resize/app.ts').default>({ app: 'resize', url });
  const photo = syntheticPpm(4_000, 3_000, 1);
  const handle = await client.start('normalise', photo);
  const values: unknown[] = [];
  for await (const { value } of handle.outputs()) values.push(value);
  const [file = new Uint8Array(0), facts = []] = values as [Uint8Array?, (readonly Fact[])?];
  const { width, height } = parsePpm(file);
  check(width === 200 && height === 150, `${bytes(photo.length)} became a thumbnail of ${width} × ${height}`);
  const inPlace = facts.every(({ got }, i) => i === 0 || isDeepStrictEqual(got, facts[i - 1]?.made));
  check(facts.length === 3 && inPlace, 'each function read the pixels where the one before had written them:');
  for (const { stage, got, made } of facts) {
    say(
      `      ${stage.padEnd(9)} read ${bytes(got.bytes)} at ${got.offset}, wrote ${bytes(made.bytes)} at ${made.offset}`,
    );
  }
}

async function showAdEvents({ url }: ExampleServer): Promise<void> {
  title(`ad-events: a stream of ${count(ADS.eventsPerSecond)} events/s in windows of one second`);
  const report = await driveAds({ url, seed: 2026, rates: [ADS] });
  const [fed = '', verdict = '', ...windows] = adReportLines(report);
  say(fed);
  check(report.differences.length === 0, verdict);
  say(...windows);
}

async function showFigures({ client }: ExampleServer): Promise<void> {
  title('What moved');
  const samples = samplesOf(await client.metrics());
  const hop = (app: string, name: string, quantile: string) =>
    ms(1_000 * sumOf(samples, 'antrail_hop_seconds', { app, function: name, quantile }));
  const hops = samples.filter(({ name, labels }) => name === 'antrail_hop_seconds' && labels.quantile === '0.5');
  say(
    'from a send to the start of the function that it triggers, waiting for a free instance included:',
    ...table([
      ['  function', 'p50', 'p99'],
      ...hops.map(({ labels: { app = '', function: name = '' } }) => [
        `  ${app}/${name}`,
        hop(app, name, '0.5'),
        hop(app, name, '0.99'),
      ]),
    ]),
    '',
    ...table([
      ['app', 'invocations', 'bytes handed over', 'objects without a copy', 'without any hop'],
      ...appsOf(samples).map((app) => [
        app,
        count(sumOf(samples, 'antrail_attempts_started_total', { app })),
        bytes(sumOf(samples, 'antrail_object_bytes_moved_total', { app })),
        count(sumOf(samples, 'antrail_object_hand_offs_zero_copy_total', { app })),
        count(sumOf(samples, 'antrail_attempts_started_total', { app, start: 'inline' })),
      ]),
    ]),
    'Objects above 16 KiB lie in shared memory and are handed over by reference; smaller ones ride in the message.',
  );
}

function appsOf(samples: readonly Sample[]): string[] {
  const apps = samples
    .filter(({ name }) => name === 'antrail_object_memory_bytes')
    .map(({ labels }) => labels.app ?? '');
  return [...new Set(apps)].sort();
}

function showNext(): void {
  title('Where to look next');
  say(
    'npm start                                             the same server on port 7070, to play with',
    'node dist/bin/antrail.js --help                       the command line: dev, deploy, invoke, trace, …',
    'node dist/bin/antrail.js dev examples/hello/app.ts    deploys again on every save',
    'examples/README.md                                    what each example shows',
    'docs/concepts.md, ARCHITECTURE.md                     how it works',
  );
}

async function main(): Promise<void> {
  // Nobody should have to wait for a demonstration that hangs.
  setTimeout(() => {
    console.error(`\nThe demo did not end within ${DEMO_MS_MAX / 1_000} s.`);
    process.exit(1);
  }, DEMO_MS_MAX).unref();

  const [server, startMs] = await timed(() => openServer());
  try {
    console.log(`antrail serves ${server.url} (up in ${ms(startMs)}; its data folder is removed at the end)`);
    for (const name of ['hello', 'word-count', 'resize', 'ad-events']) {
      const [app, tookMs] = await timed(() => server.deploy(`examples/${name}/app.ts`));
      console.log(`deployed ${app} from examples/${name}/app.ts in ${ms(tookMs)}`);
    }
    await showHello(server);
    await showWordCount(server);
    await showResize(server);
    await showAdEvents(server);
    await showFigures(server);
    showNext();
  } finally {
    await server.close();
  }
}

try {
  await main();
  if (wrong.length === 0) console.log('\nAll results are right.');
  else {
    console.error(`\n${wrong.length} result${wrong.length === 1 ? ' is' : 's are'} WRONG:\n  ${wrong.join('\n  ')}`);
    process.exitCode = 1;
  }
} catch (error) {
  console.error(`\nThe demo failed: ${(error as Error).stack ?? error}`);
  process.exitCode = 1;
}
