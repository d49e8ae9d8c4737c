// Goal: an app's file becomes a bundle that runs anywhere, and whatever is wrong with it is told with file and line.
// Method: real files in temporary folders, real esbuild, real processes.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { PlatformError } from '../base/index.ts';
import { decodeBundle, versionOf } from '../cluster/index.ts';
import type { AppProblem } from '../protocol/index.ts';
import { checkTrigger, functionsOf } from '../trigger/index.ts';
import { bundleApp } from './index.ts';

const folders: string[] = [];
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))));

/** A folder with these files; at the end it is gone. */
async function folderOf(files: Record<string, string>, prefix = 'antrail test-'): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), prefix));
  folders.push(folder);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

async function problemOf(text: string, files: Record<string, string> = {}, timeoutMs?: number): Promise<AppProblem> {
  const folder = await folderOf({ 'app.ts': text, ...files });
  const error = await refusalOf(join(folder, 'app.ts'), timeoutMs);
  const [problem] = error.details.problems as AppProblem[];
  assert.ok(problem !== undefined);
  assert.equal(error.details.file, problem.file);
  assert.equal(error.details.line, problem.line);
  return problem;
}

async function refusalOf(file: string, timeoutMs?: number): Promise<PlatformError> {
  try {
    await bundleApp(file, timeoutMs === undefined ? {} : { timeoutMs });
  } catch (error) {
    assert.equal((error as PlatformError).code, 'E_APP_INVALID', String(error));
    return error as PlatformError;
  }
  assert.fail('it was accepted');
}

const HELLO = `import { app, bucket, byName, fn } from 'antrail';
import { greet } from './lib/greet.ts';

const hello = fn((_ctx, [name]) => greet(name.json()));
export default app('hello', {
  entry: 'hello',
  functions: { hello },
  buckets: {
    names: bucket({ on: { each: byName({ match: /^x/, run: 'hello' }) } }),
  },
  routes: [{ source: { file: 'mine', line: 1 } }],
});
`;
const GREET = "export function greet(name: string): string {\n  return 'hello ' + name;\n}\n";
const FILES = { 'app.ts': HELLO, 'lib/greet.ts': GREET };

describe('a bundle', () => {
  test('is one module that runs without the app’s folder and without node_modules', async () => {
    const folder = await folderOf(FILES);
    const { bundle, appName, version, inputs, warnings } = await bundleApp(join(folder, 'app.ts'));
    assert.equal(appName, 'hello');
    assert.equal(version, versionOf(bundle));
    assert.deepEqual(warnings, []);
    assert.deepEqual(
      inputs.map((path) => relative(folder, path)),
      ['app.ts', 'lib/greet.ts'],
    );
    assert.deepEqual(Object.keys(bundle.files), ['main.mjs', 'main.mjs.map']);
    assert.equal(bundle.main, 'main.mjs');
    assert.equal(decodeBundle(JSON.parse(JSON.stringify(bundle)), { checkTrigger, functionsOf }).problems, undefined);

    const elsewhere = await folderOf({ 'main.mjs': bundle.files['main.mjs'] as string });
    const { default: app } = await import(pathToFileURL(join(elsewhere, 'main.mjs')).href);
    assert.equal(app.functions.hello.handler({}, [{ json: () => 'you' }]), 'hello you');
  });

  test('has a manifest with places as the author knows them', async () => {
    const folder = await folderOf(FILES);
    const { bundle } = await bundleApp(join(folder, 'app.ts'));
    assert.deepEqual(bundle.manifest, {
      entry: 'hello',
      functions: { hello: { kind: 'fn', source: { file: 'app.ts', line: 4 } } },
      buckets: {
        names: {
          on: {
            each: {
              kind: 'byName',
              match: { regexp: '^x', flags: '' },
              run: 'hello',
              source: { file: 'app.ts', line: 9 },
            },
          },
          source: { file: 'app.ts', line: 9 },
        },
      },
      routes: [{ source: { file: 'mine', line: 1 } }],
      source: { file: 'app.ts', line: 5 },
    });
  });

  test('has the same bytes wherever the sources lie', async () => {
    const here = await folderOf(FILES, 'antrail-a-');
    const there = await folderOf(Object.fromEntries(Object.entries(FILES).map(([k, v]) => [`deep/er/${k}`, v])), 'b-');
    const one = await bundleApp(join(here, 'app.ts'));
    const two = await bundleApp(join(there, 'deep/er/app.ts'));
    assert.deepEqual(one.bundle, two.bundle);
    assert.equal(one.version, two.version);
    const linked = await folderOf({}, 'c-');
    await symlink(here, join(linked, 'link'));
    assert.deepEqual((await bundleApp(join(linked, 'link', 'app.ts'))).bundle, one.bundle);
    const text = JSON.stringify(one.bundle);
    assert.ok(!text.includes(here) && !text.includes(process.cwd()), 'no path of this machine is in it');
  });

  test('has a source map of the author’s files', async () => {
    const folder = await folderOf(FILES);
    const { bundle } = await bundleApp(join(folder, 'app.ts'));
    const map = JSON.parse(bundle.files['main.mjs.map'] as string);
    assert.ok(map.sources.includes('app.ts') && map.sources.includes('lib/greet.ts'));
    assert.equal(map.sourcesContent[map.sources.indexOf('lib/greet.ts')], GREET);
    assert.match(bundle.files['main.mjs'] as string, /\/\/# sourceMappingURL=main\.mjs\.map\s*$/);
  });

  test('holds CommonJS packages that require, beside an app that declares the same names', async () => {
    const folder = await folderOf({
      'node_modules/old/package.json': '{"name":"old","main":"index.js"}',
      'node_modules/old/index.js':
        "const path = require('path');\nexports.name = path.basename(__filename) + typeof __dirname;\n",
      'app.ts': `import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { app, fn } from 'antrail';
import old from 'old';
const require = createRequire(import.meta.url);
const __filename = fileURLToPath(import.meta.url);
const __dirname = dirname(__filename);
if (old.name !== 'main.mjsstring') throw new Error(old.name);
if (require('node:path').join(__dirname, 'main.mjs') !== __filename) throw new Error(__filename);
export default app('old', { entry: 'f', functions: { f: fn(function named() {}) } });
`,
    });
    const { inputs } = await bundleApp(join(folder, 'app.ts'));
    assert.deepEqual(inputs.length, 1, 'packages are no inputs');
  });

  test('sees no environment but the given one, and may leave timers running', async () => {
    const folder = await folderOf({
      'app.ts': `import { app, fn } from 'antrail';
setInterval(() => {}, 1000);
console.log('loading');
if (Object.keys(process.env).join() !== 'REGION') throw new Error(Object.keys(process.env).join());
export default app('env', { entry: 'f', functions: { f: fn(() => {}) } });
`,
    });
    const { appName } = await bundleApp(join(folder, 'app.ts'), { env: { REGION: 'eu' } });
    assert.equal(appName, 'env');
  });
});

describe('refused with file and line', () => {
  const head = "import { app, bucket, fn, immediate } from 'antrail';\nconst f = fn(() => {});\n";

  test('a file that is not there', async () => {
    const error = await refusalOf(join(tmpdir(), 'no-such-folder', 'app.ts'));
    assert.match(error.message, /There is no file .*no-such-folder/);
  });

  test('a syntax error, in the app or in what it imports', async () => {
    const own = await problemOf('const x = ;\n');
    assert.deepEqual([own.file, own.line], ['app.ts', 1]);
    assert.match(own.message, /^Unexpected ";" in: const x = ;$/);
    const lib = await problemOf("import './lib/x.ts';\n", { 'lib/x.ts': '\n\nlet let = 1;\n' });
    assert.deepEqual([lib.file, lib.line], ['lib/x.ts', 3]);
  });

  test('an import that leads nowhere', async () => {
    const file = await problemOf("\nimport './missing.ts';\n");
    assert.match(file.message, /Could not resolve "\.\/missing\.ts"/);
    assert.deepEqual([file.file, file.line], ['app.ts', 2]);
    const door = await problemOf("import 'antrail/clients';\n");
    assert.match(door.message, /There is no "antrail\/clients"; import one of antrail, antrail\/client/);
    const name = await problemOf("import { bukket } from 'antrail';\nexport default bukket;\n");
    assert.match(name.message, /No matching export .* for import "bukket"/);
    assert.deepEqual([name.file, name.line], ['app.ts', 1]);
  });

  test('a throw while it is loaded, at the author’s line', async () => {
    const own = await problemOf(`${head}\nthrow new RangeError('too much');\n`);
    assert.deepEqual(own, { message: 'RangeError: too much', file: 'app.ts', line: 4 });
    const lib = await problemOf("import './lib/my x.ts';\n", {
      'lib/my x.ts': '// a comment\nfunction deep(): never {\n  throw new Error("deep");\n}\ndeep();\n',
    });
    assert.deepEqual(lib, { message: 'Error: deep', file: 'lib/my x.ts', line: 3 });
    const text = await problemOf("throw 'just text';\n");
    assert.deepEqual(text, { message: 'thrown: just text', file: 'app.ts' });
    const later = await problemOf(
      "setTimeout(() => {\n  throw new Error('later');\n});\nawait new Promise((r) => setTimeout(r, 1000));\n",
    );
    assert.deepEqual(later, { message: 'Error: later', file: 'app.ts', line: 2 });
  });

  test('a throw in a package, at the line that called it', async () => {
    const problem = await problemOf("import { f } from 'strict';\n\nf(5);\n", {
      'node_modules/strict/package.json': '{"name":"strict","type":"module","exports":"./index.js"}',
      'node_modules/strict/index.js': "export function f(x) { throw new TypeError('no ' + x); }\n",
    });
    assert.deepEqual(problem, { message: 'TypeError: no 5', file: 'app.ts', line: 3 });
  });

  test('misuse of a builder', async () => {
    const problem = await problemOf(`${head}\nexport default app('Bad Name', { entry: 'f', functions: { f } });\n`);
    assert.match(problem.message, /^TypeError: app: the name must be lower-case letters/);
    assert.deepEqual([problem.file, problem.line], ['app.ts', 4]);
  });

  test('an option that is no data', async () => {
    const problem = await problemOf(`${head}export default app('x', { entry: 'f', functions: { f }, cron: { f } });\n`);
    assert.match(problem.message, /app "x"\.cron\.f.* must be plain data/);
    assert.equal(problem.file, 'app.ts');
  });

  test('a function that does not exist', async () => {
    const problem = await problemOf(`${head}
export default app('x', {
  entry: 'f',
  functions: { f },
  buckets: {
    b: bucket({
      on: { t: immediate({ run: 'ff' as 'f' }) },
    }),
  },
});
`);
    assert.match(problem.message, /Trigger "t" of bucket "b": run: there is no function "ff"\. Did you mean "f"\?/);
    assert.deepEqual([problem.file, problem.line], ['app.ts', 9]);
  });

  test('options that a trigger does not take', async () => {
    const problem = await problemOf(`${head.replace('immediate', 'byBatchSize')}
export default app('x', { entry: 'f', functions: { f }, buckets: { b: bucket({ on: { t: byBatchSize({ size: 0, run: 'f' }) } }) } });
`);
    assert.match(problem.message, /Trigger "t" of bucket "b": byBatchSize: size must be a whole number from 1/);
    assert.equal(problem.line, 4);
  });

  test('no app', async () => {
    const none = await problemOf('export const x = 1;\n');
    assert.match(none.message, /There is no default export; write: export default app\(/);
    assert.equal(none.file, 'app.ts');
    assert.match((await problemOf('export default { functions: {} };\n')).message, /not an app but of type object/);
  });

  test('a top level that does not end', async () => {
    assert.match(
      (await problemOf('await new Promise(() => {});\nexport default 1;\n')).message,
      /a top-level await waits for something/,
    );
    const endless = await problemOf('for (;;) {}\n', {}, 1_500);
    assert.match(endless.message, /does not end within 1\.5 s; look for an endless loop/);
    assert.match(
      (await problemOf("console.error('bye'); process.exit(3);\n")).message,
      /ends its process while it is loaded \(3\).*It printed: bye/,
    );
    assert.match(
      (await problemOf("for (;;) await new Promise((r) => process.stdout.write('x'.repeat(9000), r));\n")).message,
      /prints more than 1048576 bytes/,
    );
  });
});

test('an abort ends the evaluation', async () => {
  const folder = await folderOf({ 'app.ts': 'for (;;) {}\n' });
  const controller = new AbortController();
  const bundling = bundleApp(join(folder, 'app.ts'), { signal: controller.signal });
  setTimeout(() => controller.abort(), 300);
  await assert.rejects(bundling, { name: 'AbortError' });
});
