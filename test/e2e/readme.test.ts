// Goal: what README.md tells a newcomer to do works as it is written. Method: its own fenced blocks are the app, the
// commands and the client; only the port is another one. Lines are awaited, never time.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { Dev, run } from '../fixtures/dev.ts';
import { CLI } from '../fixtures/served.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const DEFAULT_URL = 'http://127.0.0.1:7070';

interface Block {
  readonly language: string;
  readonly text: string;
}

describe('README.md', () => {
  let folder = '';
  let readme = '';
  let dev: Dev;
  const block = (language: string, containing: RegExp): string => {
    const found = blocksOf(readme).find((one) => one.language === language && containing.test(one.text));
    return found?.text ?? assert.fail(`README.md has no ${language} block with ${containing}`);
  };
  const says = (pattern: RegExp): string =>
    pattern.exec(readme)?.[1] ?? assert.fail(`README.md has nothing like ${pattern}`);
  const antrail = (command: string, ...more: string[]) =>
    run(process.execPath, [CLI, ...wordsOf(command).slice(1), ...more], folder, { ANTRAIL_URL: dev.url });

  before(async () => {
    readme = await readFile(join(ROOT, 'README.md'), 'utf8');
    folder = await mkdtemp(join(tmpdir(), 'antrail-readme-'));
    await writeFile(join(folder, 'app.ts'), block('ts', /export default app\(/));
    const [program, ...words] = wordsOf(block('sh', /^antrail dev /));
    assert.equal(program, 'antrail');
    dev = await Dev.start(CLI, words, folder);
  });

  after(async () => {
    await dev?.close();
    await rm(folder, { recursive: true, force: true });
  });

  test('the app of the first snippet answers what is promised, by the command and over HTTP', async () => {
    const promised = says(/prints `("[^`]*")`/);
    assert.deepEqual(await antrail(block('sh', /^antrail invoke /)), { code: 0, out: `${promised}\n`, err: '' });

    const curl = wordsOf(block('sh', /^curl /));
    const url = curl.at(-1) ?? '';
    assert.ok(url.startsWith(`${DEFAULT_URL}/`), url);
    const [name = '', value = ''] = optionOf(curl, '-H').split(/: */);
    const request = { method: 'POST', headers: { [name]: value }, body: optionOf(curl, '-d') };
    const response = await fetch(url.replace(DEFAULT_URL, dev.url), request);
    assert.equal(response.status, 200);
    assert.equal(await response.text(), promised);
  });

  test('the client snippet compiles against the package’s types, and runs', async () => {
    await mkdir(join(folder, 'node_modules'));
    await symlink(ROOT, join(folder, 'node_modules/antrail'), 'dir'); // as `npm link antrail` does
    const source = block('ts', /antrail\/client/);
    await writeFile(join(folder, 'client.ts'), source);
    await writeFile(join(folder, 'package.json'), says(/("type": "module")/).replace(/^.*$/, '{$&}'));
    const options = says(/`("allowImportingTsExtensions": true)`/);
    for (const module of ['"module": "nodenext"', '"module": "esnext", "moduleResolution": "bundler"']) {
      const config = `{"compilerOptions": {"strict": true, "target": "es2023", "noEmit": true, ${options}, ${module}}}`;
      await writeFile(join(folder, 'tsconfig.json'), config);
      assert.deepEqual(await run(process.execPath, [TSC, '-p', '.'], folder), { code: 0, out: '', err: '' });
      await writeFile(join(folder, 'client.ts'), source.replace("'greet'", "'gret'"));
      const wrong = await run(process.execPath, [TSC, '-p', '.'], folder);
      assert.match(wrong.out, /client\.ts\(4,\d+\): error TS\d+: Argument of type '"gret"'/);
      await writeFile(join(folder, 'client.ts'), source);
    }

    const { code } = await transform(source.replace("{ app: 'hello' }", `{ app: 'hello', url: '${dev.url}' }`), {
      loader: 'ts',
    });
    await writeFile(join(folder, 'client.js'), code);
    const ran = await run(process.execPath, ['client.js'], folder);
    assert.deepEqual(ran, { code: 0, out: `${JSON.parse(says(/prints `("[^`]*")`/))}\n`, err: '' });
  });

  test('a save is deployed, and the next call has it', async () => {
    const from = says(/Replace `([^`]+)` by/);
    const to = says(/Replace `[^`]+` by `([^`]+)`/);
    const source = await readFile(join(folder, 'app.ts'), 'utf8');
    assert.ok(source.includes(from));
    await writeFile(join(folder, 'app.ts'), source.replace(from, to));
    await dev.said(new RegExp(`^${says(/terminal says `([^`…]+?) *…?`/)} `, 'm'));
    const promised = says(/next\s+`invoke` says `("[^`]*")`/);
    assert.deepEqual(await antrail(block('sh', /^antrail invoke /)), { code: 0, out: `${promised}\n`, err: '' });
    assert.doesNotMatch(dev.text, /warn|error/i, 'a save is nothing to worry about');
  });

  test('the commands that look inside show the session', async () => {
    const commands = block('sh', /^antrail sessions/)
      .trim()
      .split('\n')
      .map((line) => line.replace(/\s+#.*$/, ''));
    assert.deepEqual(
      commands.map((line) => line.split(' ')[1]),
      ['sessions', 'trace', 'logs', '--help'],
    );
    const [sessions = '', trace = '', logs = '', help = ''] = commands;
    const listed = await antrail(sessions);
    assert.match(listed.out, /^session .*\n\S+ +hello +greet +completed /);
    const session = /\n(\S+)/.exec(listed.out)?.[1] ?? '';
    const traced = await antrail(trace.replace('<session>', session));
    assert.match(traced.out, /\ngreet .*\n└─ shout +greetings\/each\//);
    assert.match((await antrail(help)).out, /^Usage: antrail /);
    assert.ok(logs.endsWith(' -f'), 'following ends with Ctrl-C only: here without it');
    assert.equal((await antrail(logs.replace(/ -f$/, ''))).code, 0);
  });

  test('the scripts that it names exist', async () => {
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'));
    const named = [...readme.matchAll(/^npm (?:run )?(\w+)/gm)].map(([, name = '']) => name);
    assert.ok(named.includes('build') && named.includes('demo'));
    for (const name of named) assert.ok(name === 'link' || name in scripts, name);
  });
});

function blocksOf(markdown: string): Block[] {
  return [...markdown.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    language,
    text,
  }));
}

/** The words of a command line; single quotes as a shell takes them. */
function wordsOf(line: string): string[] {
  return [...line.trim().matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
}

function optionOf(words: readonly string[], name: string): string {
  const at = words.indexOf(name);
  return (at === -1 ? undefined : words[at + 1]) ?? assert.fail(`no ${name} in ${words.join(' ')}`);
}
