// Goal: what `npm pack` makes is all that an author needs. Method: the tarball in an empty project, beside nothing but
// the dependencies that it names; its command line runs an app, and a typed client of it compiles and is answered.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transform } from 'esbuild';
import { Dev, run } from '../fixtures/dev.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');

const APP = `import { app, bucket, fn, immediate } from 'antrail';
const greet = fn<{ name: string }>((ctx, [input]) => ctx.send('greetings', input.json().name));
const shout = fn<string>((ctx, [greeting]) => ctx.output(greeting.json().toUpperCase()));
export default app('hello', {
  entry: 'greet',
  functions: { greet, shout },
  buckets: { greetings: bucket({ on: { each: immediate({ run: 'shout' }) } }) },
});
`;
const client = (url: string) => `import { connect } from 'antrail/client';
const hello = connect<typeof import('./app.ts').default>({ app: 'hello', url: '${url}' });
console.log(await hello.invoke('greet', { name: 'ant' }));
`;

describe('the package', () => {
  let folder = '';
  let installed = '';

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'antrail-pack-'));
    installed = join(folder, 'node_modules/antrail');
    const packed = await run('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], ROOT);
    assert.equal(packed.code, 0, packed.err);
    await mkdir(installed, { recursive: true });
    const tarball = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
    const unpacked = await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components', '1'], folder);
    assert.equal(unpacked.code, 0, unpacked.err);
    const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8'));
    for (const name of Object.keys(dependencies)) {
      const place = join(folder, 'node_modules', name);
      await mkdir(dirname(place), { recursive: true });
      await symlink(join(ROOT, 'node_modules', name), place, 'dir');
    }
    await writeFile(join(folder, 'package.json'), '{"private": true, "type": "module"}');
    await writeFile(join(folder, 'app.ts'), APP);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  test('holds what runs and what is read, and no test', async () => {
    const files = await readdir(installed, { recursive: true });
    for (const file of ['README.md', 'LICENSE', 'dist/bin/antrail.js', 'dist/bin/instance.js', 'docs/errors.md']) {
      assert.ok(files.includes(file), file);
    }
    const odd = files.filter((file) => /\.test\.|tsbuildinfo|^src\b|^test\b|^dist-test\b/.test(file));
    assert.deepEqual(odd, []);
  });

  for (const module of ['"module": "nodenext"', '"module": "esnext", "moduleResolution": "bundler"']) {
    test(`its types are found and strict under ${module}`, async () => {
      const config = `{"compilerOptions": {"strict": true, "target": "es2023", "noEmit": true, "types": [],
        "noUncheckedIndexedAccess": true, "exactOptionalPropertyTypes": true, "allowImportingTsExtensions": true, ${module}}}`;
      await writeFile(join(folder, 'tsconfig.json'), config);
      await writeFile(join(folder, 'client.ts'), client(''));
      assert.deepEqual(await run(process.execPath, [TSC, '-p', '.'], folder), { code: 0, out: '', err: '' });
      await writeFile(join(folder, 'client.ts'), client('').replace("'ant'", '1'));
      assert.match((await run(process.execPath, [TSC, '-p', '.'], folder)).out, /^client\.ts\(3,\d+\): error TS2322/);
    });
  }

  test('its command line runs an app, and its client is answered', async () => {
    const dev = await Dev.start(join(installed, 'dist/bin/antrail.js'), ['dev', 'app.ts'], folder);
    try {
      const { code } = await transform(client(dev.url), { loader: 'ts' });
      await writeFile(join(folder, 'client.js'), code);
      assert.deepEqual(await run(process.execPath, ['client.js'], folder), { code: 0, out: 'ANT\n', err: '' });
    } finally {
      await dev.close();
    }
  });
});
