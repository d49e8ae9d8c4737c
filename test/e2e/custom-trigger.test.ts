// Goal: what docs/custom-triggers.md says is so, from the first snippet to the refusals at deploy. Method: its own fenced
// blocks, compiled against the package's types, deployed and called; wrong apps by the command line and over HTTP.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { bundleApp } from '#src/deploy/index.js';
import { run } from '../fixtures/dev.ts';
import { CLI, Served } from '../fixtures/served.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

let folder = '';
let server: Served;
let blocks: string[] = [];
before(async () => {
  server = await Served.start();
  folder = await mkdtemp(join(tmpdir(), 'antrail-custom-'));
  await mkdir(join(folder, 'node_modules'));
  await symlink(ROOT, join(folder, 'node_modules/antrail'), 'dir');
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  const page = await readFile(join(ROOT, 'docs/custom-triggers.md'), 'utf8');
  blocks = [...page.matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, text = '']) => text);
  assert.equal(blocks.length, 2);
  const [app = '', check = ''] = blocks;
  await writeFile(join(folder, 'app.ts'), app);
  await writeFile(join(folder, 'app.test.ts'), check);
});
after(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

describe('docs/custom-triggers.md', () => {
  test('the snippets compile under strict options', async () => {
    const flags =
      '--noEmit --strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --skipLibCheck --module nodenext';
    const more = `--target es2023 --allowImportingTsExtensions --types node --typeRoots ${join(ROOT, 'node_modules/@types')}`;
    const checked = await run(
      process.execPath,
      [TSC, ...`${flags} ${more}`.split(' '), 'app.ts', 'app.test.ts'],
      folder,
    );
    assert.deepEqual(checked, { code: 0, out: '', err: '' });
  });

  test('the app fires as it says', async () => {
    await server.deploy(blocks[0] ?? '');
    const session = await server.start('sums/put', [4, 5, 6, 20, 1]);
    const record = await server.ended(session);
    const outputs = (await server.outputs(session)).map(({ data }) => data.json);
    assert.deepEqual(outputs, [[{ n: 4 }, { n: 5 }, { n: 6 }], [{ n: 20 }]]);
    assert.deepEqual([record.state, record.unfired.length, record.unfired[0].held], ['completed', 1, 1]);
  });

  test('its test passes, and fails when the class is wrong', async () => {
    const [app = '', check = ''] = blocks;
    const strip = async (text: string) =>
      (await transform(text, { loader: 'ts' })).code.replaceAll('./app.ts', './app.js');
    await writeFile(join(folder, 'app.test.js'), await strip(check));
    await writeFile(join(folder, 'app.js'), await strip(app));
    const passed = await run(process.execPath, ['app.test.js'], folder, { NODE_TEST_CONTEXT: '' });
    assert.equal(passed.code, 0, passed.out);
    await writeFile(join(folder, 'app.js'), await strip(app.replace('this.sum = saved.sum;', '')));
    const failed = await run(process.execPath, ['app.test.js'], folder, { NODE_TEST_CONTEXT: '' });
    assert.equal(failed.code, 1);
    assert.match(failed.out, /checkTrigger\(Sum\): it decides differently when it is/);
    assert.match(failed.out, /replay: checkTrigger\(Sum, \{ …, seeds: \[\d+\] \}\)/);
  });
});

describe('refused at deploy, with file and line', () => {
  for (const [what, from, to, message, line] of [
    [
      'a class without restore',
      /restore\(saved[\s\S]*?\n {2}\}\n/,
      '',
      /must be a class with the method restore/,
      'last',
    ],
    [
      'state that is not JSON',
      '{ sum: this.sum }',
      '{ sum: new Map() }',
      /snapshot\(\).sum must be plain data/,
      undefined,
    ],
    [
      'a constructor that throws',
      'this.above = options.above;',
      "throw new Error('no sum');",
      /Error: no sum/,
      'first',
    ],
  ] as const) {
    test(what, async () => {
      const file = join(folder, 'wrong.ts');
      const text = (blocks[0] ?? '').replace(from, to);
      await writeFile(file, text);
      const { code, err } = await run(process.execPath, [CLI, 'deploy', 'wrong.ts'], folder, {
        ANTRAIL_URL: server.url,
      });
      assert.equal(code, 1);
      assert.match(err, message);
      if (line === undefined) return;
      const lines = text.split('\n');
      const at =
        line === 'last'
          ? lines.findIndex((one) => one.includes('custom(Sum'))
          : lines.findIndex((one) => one.includes('no sum'));
      assert.match(err, new RegExp(`wrong\\.ts:${at + 1}`));
    });
  }

  test('a bundle whose manifest names a class that it has not', async () => {
    const { bundle } = await bundleApp(join(folder, 'app.ts'));
    const wrong = JSON.parse(JSON.stringify(bundle));
    wrong.manifest.buckets.numbers.on.sum.class = 'Smu';
    const { status, json } = await server.ask('PUT', '/v1/apps/sums', wrong);
    assert.deepEqual([status, json.code, json.file], [422, 'E_APP_INVALID', 'app.ts']);
    const line = (blocks[0] ?? '').split('\n').findIndex((one) => one.includes('custom(Sum')) + 1;
    assert.equal(json.line, line);
    assert.match(json.detail, /Trigger 'sum' of bucket 'numbers': class Smu is not in the bundle/);
  });
});

test('a trigger of run time names a class of the bundle', async () => {
  await server.deploy(blocks[0] ?? '');
  const path = '/v1/apps/sums/buckets/numbers/triggers/more';
  const spec = { kind: 'custom', class: 'Sum', run: 'total', options: { above: 100 } };
  const refused = await server.ask('PUT', path, { ...spec, class: 'Smu' });
  assert.equal(refused.status, 422);
  assert.match(refused.json.detail, /the bundle has no trigger class "Smu"; it has Sum\. Did you mean "Sum"\?/);
  assert.equal((await server.ask('PUT', path, spec)).status, 201);
  const session = await server.start('sums/put', [60, 50]);
  await server.ended(session);
  const outputs = (await server.outputs(session)).map(({ data }) => data.json);
  assert.deepEqual(outputs.map((one: unknown[]) => one.length).sort(), [1, 1, 2]);
});
