// Goal: set-up may be run at any time, by several at once, with and without network, and never makes things worse.
// Method: its parts run on temporary folders; installing is replaced by a function.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { ROOT } from './checks/repository.ts';
import { needs } from './fixtures/needs.ts';

type Packages = Record<string, { version?: string; optional?: boolean; devOptional?: boolean }>;

interface SetupScript {
  NODE_MIN: [number, number];
  nodeProblem(version: string): string | undefined;
  outdatedPackages(wanted: Packages, installed: Packages): string[];
  ensureDependencies(options: { root: string; log: (line: string) => void; npmCi: () => boolean }): void;
  pruneOutput(source: string, output: string, mark: string): string[];
  withLock<T>(
    folder: string,
    work: () => T | Promise<T>,
    options?: { staleMs?: number; waitMs?: number; log?: (line: string) => void },
  ): Promise<T>;
}

interface DebianRow {
  program: string;
  package: string;
  isPresent: () => boolean;
  neededBy: string;
}

interface DebianScript {
  DEBIAN_PACKAGES: DebianRow[];
  missingReason(program: string, table: DebianRow[]): string | undefined;
  ensureDebianPackages(options: {
    table: DebianRow[];
    mayInstall: boolean;
    install: (names: string[]) => boolean;
    log: (line: string) => void;
  }): DebianRow[];
}

const load = (path: string) => import(pathToFileURL(join(ROOT, path)).href);
const setup = (await load('scripts/setup.mjs')) as SetupScript;
const debian = (await load('scripts/debian.mjs')) as DebianScript;

const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'antrail-setup-'));
  folders.push(folder);
  return folder;
}

describe('Node', () => {
  test('a version below the minimum is named together with what is needed', () => {
    assert.equal(setup.nodeProblem('v20.19.0'), undefined);
    assert.equal(setup.nodeProblem('v24.1.0'), undefined);
    assert.match(setup.nodeProblem('v20.18.3') ?? '', /needs Node 20\.19 or newer; this is v20\.18\.3/);
    assert.notEqual(setup.nodeProblem('v18.20.0'), undefined);
  });

  test('package.json and the set-up ask for the same version', () => {
    const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    assert.equal(engines.node, `>=${setup.NODE_MIN.join('.')}`);
  });
});

describe('dependencies', () => {
  const wanted: Packages = {
    '': {},
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b': { version: '2.0.0', optional: true },
  };

  /** A tree whose lock file wants `wanted`; with `installed`, as npm would have left it. */
  function tree(installed?: Packages): string {
    const root = temporaryFolder();
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages: wanted }));
    mkdirSync(join(root, '.setup'));
    if (installed !== undefined) writeInstalled(root, installed);
    return root;
  }
  function writeInstalled(root: string, installed: Packages) {
    mkdirSync(join(root, 'node_modules'), { recursive: true });
    writeFileSync(join(root, 'node_modules/.package-lock.json'), JSON.stringify({ packages: installed }));
  }
  /** @returns how often npm was called and what was said. */
  function ensure(root: string, npmCi: () => boolean) {
    let calls = 0;
    const lines: string[] = [];
    const counted = () => {
      calls++;
      return npmCi();
    };
    setup.ensureDependencies({ root, log: (line) => lines.push(line), npmCi: counted });
    return { calls, lines };
  }

  test('missing and other versions are outdated; optional ones may be missing', () => {
    assert.deepEqual(setup.outdatedPackages(wanted, { 'node_modules/a': { version: '1.0.0' } }), []);
    assert.deepEqual(setup.outdatedPackages(wanted, {}), ['node_modules/a']);
    assert.deepEqual(
      setup.outdatedPackages(wanted, {
        'node_modules/a': { version: '1.0.0' },
        'node_modules/b': { version: '1.9.0' },
      }),
      ['node_modules/b'],
    );
  });

  test('what is current is left alone, without npm', () => {
    const root = tree({ 'node_modules/a': { version: '1.0.0' } });
    assert.equal(ensure(root, () => false).calls, 0);
  });

  test('what is missing or outdated is installed', () => {
    for (const root of [tree(), tree({ 'node_modules/a': { version: '0.9.0' } })]) {
      const install = () => {
        assert.ok(!existsSync(join(root, 'node_modules')), 'npm starts from nothing');
        writeInstalled(root, { 'node_modules/a': { version: '1.0.0' } });
        return true;
      };
      assert.equal(ensure(root, install).calls, 1);
      assert.equal(ensure(root, install).calls, 0);
    }
  });

  test('a failed installation keeps the one that was there (SU2)', () => {
    const root = tree({ 'node_modules/a': { version: '0.9.0' } });
    const { lines } = ensure(root, () => {
      mkdirSync(join(root, 'node_modules/half'), { recursive: true });
      return false;
    });
    assert.match(lines.at(-1) ?? '', /going on with the packages that were installed before/);
    assert.ok(existsSync(join(root, 'node_modules/.package-lock.json')));
    assert.ok(!existsSync(join(root, 'node_modules/half')));
  });

  test('a failed first installation is an error', () => {
    assert.throws(() => ensure(tree(), () => false), /npm ci/);
  });

  test('the packages of another tree are not touched through a link', () => {
    const other = tree({ 'node_modules/a': { version: '0.9.0' } });
    const root = tree();
    symlinkSync(join(other, 'node_modules'), join(root, 'node_modules'));
    assert.equal(ensure(root, () => true).calls, 0);
  });
});

test('outputs of deleted sources are removed, other files of dist are not', () => {
  const root = temporaryFolder();
  mkdirSync(join(root, 'src/a'), { recursive: true });
  mkdirSync(join(root, 'dist/a'), { recursive: true });
  writeFileSync(join(root, 'src/a/kept.ts'), '');
  for (const name of ['kept.js', 'kept.d.ts', 'gone.test.js', 'gone.test.js.map', 'gone.test.d.ts', 'bundle.js']) {
    writeFileSync(join(root, 'dist/a', name), '');
  }
  assert.deepEqual(setup.pruneOutput(join(root, 'src'), join(root, 'dist'), '.d.ts'), [join('a', 'gone.test.js')]);
  assert.ok(!existsSync(join(root, 'dist/a/gone.test.d.ts')));
  assert.ok(existsSync(join(root, 'dist/a/bundle.js')));
  assert.ok(existsSync(join(root, 'dist/a/kept.js')));
});

describe('the lock', () => {
  test('two set-ups take turns (SU1)', async () => {
    const folder = join(temporaryFolder(), 'lock');
    let inside = 0;
    const work = async () => {
      assert.equal(++inside, 1);
      await new Promise((done) => setImmediate(done));
      inside--;
    };
    await Promise.all([1, 2, 3].map(() => setup.withLock(folder, work, { log: () => {} })));
    assert.ok(!existsSync(folder));
  });

  test('it is given back after a failure', async () => {
    const folder = join(temporaryFolder(), 'lock');
    await assert.rejects(
      setup.withLock(folder, () => Promise.reject(new Error('no'))),
      /no/,
    );
    assert.equal(await setup.withLock(folder, () => 1), 1);
  });

  test('one whose process is gone, or that is too old, is broken', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', '0']);
    for (const owner of [
      { pid, sinceMs: Date.now() },
      { pid: process.pid, sinceMs: 0 },
    ]) {
      const folder = join(temporaryFolder(), 'lock');
      mkdirSync(folder);
      writeFileSync(join(folder, 'owner.json'), JSON.stringify(owner));
      assert.equal(await setup.withLock(folder, () => 'done', { waitMs: 0 }), 'done');
    }
  });

  test('one that is held is not broken: whoever waits too long is told', async () => {
    const folder = join(temporaryFolder(), 'lock');
    mkdirSync(folder);
    writeFileSync(join(folder, 'owner.json'), JSON.stringify({ pid: process.pid, sinceMs: Date.now() }));
    await assert.rejects(
      setup.withLock(folder, () => 1, { waitMs: -1, log: () => {} }),
      /holds .* for too long/,
    );
    assert.ok(existsSync(folder));
  });
});

describe('Debian packages', () => {
  function row(present: () => boolean): DebianRow {
    return { program: 'tool', package: 'tool-package', isPresent: present, neededBy: 'test/x.test.ts' };
  }
  function ensure(table: DebianRow[], mayInstall: boolean, install: (names: string[]) => boolean) {
    const lines: string[] = [];
    const still = debian.ensureDebianPackages({ table, mayInstall, install, log: (line) => lines.push(line) });
    return { still: still.map(({ program }) => program), said: lines.join('\n') };
  }
  const never = () => assert.fail('nothing is installed');

  test('nothing happens when all are there', () => {
    assert.deepEqual(ensure([row(() => true)], true, never), { still: [], said: '' });
  });

  test('a missing one is installed where that is allowed', () => {
    let there = false;
    const install = (names: string[]) => {
      assert.deepEqual(names, ['tool-package']);
      there = true;
      return true;
    };
    assert.deepEqual(ensure([row(() => there)], true, install).still, []);
  });

  test('otherwise it is named, with how to get it', () => {
    const { still, said } = ensure([row(() => false)], false, never);
    assert.deepEqual(still, ['tool']);
    assert.match(said, /sudo apt-get install tool-package/);
  });

  test('tests that need it give the reason; a program that the table does not know is an error', async () => {
    assert.match(debian.missingReason('tool', [row(() => false)]) ?? '', /apt-get install tool-package/);
    assert.equal(debian.missingReason('tool', [row(() => true)]), undefined);
    await assert.rejects(needs('tol'), /no row for 'tol'/);
  });
});
