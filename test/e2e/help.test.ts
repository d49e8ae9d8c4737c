// Goal: each example that `antrail <command> --help` prints can be typed. Method: the examples are read from the help
// itself and run, by the command line in this process, against one real server: the apps that they name are the hello
// app of the README under other names, the files are there, and a session and a dead letter of this
// server stand for theirs.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SUITES } from '#src/bench/index.js';
import { main, type Terminal } from '#src/cli/index.js';
import { PATIENCE_MS, Served } from '../fixtures/served.ts';

const README = fileURLToPath(new URL('../../../README.md', import.meta.url));
/** The session of the examples. */
const SESSION = 'd1-2s-k3x9a';
/** Their dead letter. */
const LETTER = `${SESSION}.8f14e45fceea167a`;
/** Commands that run a server: an example gets a port and a folder of its own, and ends when it listens. */
const SERVERS = ['dev', 'serve'];
/** Commands that wait: ended when they have printed something. */
const FOLLOWING = /^antrail logs .*-f\b/;

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

describe('the examples of the help', () => {
  let served: Served;
  let folder = '';
  let hello = '';
  let session = '';
  const here = process.cwd();

  before(async () => {
    const [, snippet = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(await readFile(README, 'utf8')) ?? [];
    hello = snippet.replace("ctx.send('greetings'", "console.log('greeting');\n  $&");
    served = await Served.start();
    folder = await mkdtemp(join(tmpdir(), 'antrail-help-'));
    for (const file of ['src/app.ts', 'orders/app.ts']) await write(file, hello);
    await write('app.ts', hello.replace("entry: 'greet'", "entry: 'greet',\n  env: { STAGE: '', LEVEL: '' }"));
    await write('mail/app.ts', named('mail', 'greet'));
    await write('events.json', '{"name": "ant"}');
    await write('photo.jpg', '{"name": "ant"}');
    process.chdir(folder);
  });

  after(async () => {
    process.chdir(here);
    await served?.close();
    await rm(folder, { recursive: true, force: true });
  });

  async function write(file: string, text: string): Promise<void> {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }

  /** The hello app under another name, with another name for its entry; any input will do. */
  function named(app: string, entry: string): string {
    return hello
      .replace("app('hello'", `app('${app}'`)
      .replace("entry: 'greet'", `entry: '${entry}'`)
      .replace('functions: { greet,', `functions: { ${entry}: greet,`)
      .replace('input?.json().name', 'input?.group');
  }

  async function run(line: string): Promise<Ran> {
    const [program, ...words] = shellWords(line);
    assert.equal(program, 'antrail', line);
    const serves = SERVERS.includes(words[0] ?? '') && !words.includes('--help');
    const stop = new AbortController();
    const said = { out: '', err: '' };
    const say = (stream: 'out' | 'err') => async (content: string | Uint8Array) => {
      said[stream] += typeof content === 'string' ? content : Buffer.from(content).toString();
      if (serves ? isServing(words, said.out) : FOLLOWING.test(line)) stop.abort();
    };
    const terminal: Terminal = {
      env: { ANTRAIL_URL: served.url },
      isTerminal: false,
      color: false,
      columns: 100,
      interrupted: AbortSignal.any([stop.signal, AbortSignal.timeout(PATIENCE_MS)]),
      out: say('out'),
      err: say('err'),
      input: () => readFile('events.json'),
    };
    const own = serves ? ['--port', '0', '--data', join(folder, `data-${words.join('-').replaceAll('/', '-')}`)] : [];
    const code = await main([...words, ...own], terminal);
    return { code, ...said };
  }

  async function examplesOf(command: string): Promise<string[]> {
    const { code, out, err } = await run(`antrail ${command} --help`);
    assert.equal(code, 0, `antrail ${command} --help\n${err}`);
    const [, list = ''] = /\nExamples:\n([\s\S]*)$/.exec(out) ?? [];
    return [...list.matchAll(/^ {2}\$ (.*?)(?: {2,}.*)?$/gm)].map(([, line = '']) => line);
  }

  test('each can be typed, and does not fail', { timeout: 120_000 }, async () => {
    const { out: overview } = await run('antrail --help');
    const commands = [...overview.matchAll(/^ {2}([a-z][a-z-]*) (?:\[|<)/gm)].map(([, name = '']) => name);
    const examples = new Map<string, string[]>();
    for (const name of commands.filter((one) => one !== 'help')) examples.set(name, await examplesOf(name));
    assert.ok(examples.size > 15);

    const lines = [...examples.values()].flat();
    const apps = new Map<string, string>(lines.flatMap((line) => appsIn(line)));
    for (const [app, entry] of apps) await served.deploy(named(app, entry));
    session = await served.start(`${[...apps].flat().slice(0, 2).join('/')}`, {});
    await served.ended(session);
    await served.deploy(`import { app, fn } from 'antrail';
export default app('fails', { entry: 'f', functions: { f: fn(() => { throw new Error('no'); }) } });`);
    await served.ended(await served.start('fails/f'));
    const letter = (await served.get('/v1/dead-letters')).json.deadLetters[0].id;

    for (const [name, list] of examples) {
      assert.ok(list.length > 0, `antrail ${name} --help has no example`);
      for (const example of list) {
        if (name === 'bench') {
          // A suite takes too long here; that it exists is what can be wrong.
          assert.ok((example.split(' ')[2] ?? '') in SUITES, example);
          continue;
        }
        const { code, err } = await run(example.replace(LETTER, letter).replace(SESSION, session));
        assert.equal(code, 0, `${example}\n${err}`);
      }
    }
  });

  test('a session that runs is cancelled, and one that has ended is told apart', async () => {
    await served.deploy(`import { app, fn } from 'antrail';
export default app('waits', { entry: 'f', functions: { f: fn((ctx) => new Promise((done) => ctx.signal.addEventListener('abort', done))) } });`);
    const running = await served.start('waits/f');
    assert.deepEqual(await run(`antrail cancel ${running}`), { code: 0, out: `cancelled ${running}\n`, err: '' });
    const { out } = await run(`antrail cancel ${session}`);
    assert.equal(out, `${session} had ended already: completed\n`);
  });
});

/** Of `dev`: once it has said how to call each of its apps. */
function isServing(words: readonly string[], out: string): boolean {
  const apps = words.filter((word) => word.endsWith('.ts')).length;
  return out.includes('antrail listening on') && out.split('curl -X POST').length - 1 >= apps;
}

/** Apps that a line needs, with the function that it calls. */
function appsIn(line: string): [string, string][] {
  const [, app, entry] = /\b(?:invoke|app|logs|remove|--app) ([a-z][a-z-]*)(?:\/([a-z]+))?(?= |$)/.exec(line) ?? [];
  return app === undefined ? [] : [[app, entry ?? 'greet']];
}

/** What the shell hands to `antrail`: quotes, no variables; pipes and redirections are the shell's. */
function shellWords(line: string): string[] {
  const [command = ''] = (line.split(' | ').at(-1) ?? '').split(/ > /);
  return [...command.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'),
  );
}
