// Goal: nothing that the style rules out is left in the tree.
// Method: each check runs over the tree, and over small made-up files so that it is seen to fail.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ERROR_TABLE } from '#src/base/index.js';
import { exists, isTypeScript, readTree } from './checks/repository.ts';
import { importsOf, type Problem, report, type SourceFile, scan } from './checks/source.ts';
import {
  BANS,
  checkBans,
  checkErrorCodes,
  checkErrorPage,
  checkFolderTable,
  checkLeftovers,
  checkLinks,
  checkMachinePaths,
  checkReached,
  checkSyntax,
  checkTests,
  EXCEPTIONS,
} from './checks/tidy.ts';

const tree = readTree();
const typescript = tree.filter(isTypeScript);
const known = new Set(Object.keys(ERROR_TABLE));

function none(problems: readonly Problem[]): void {
  assert.equal(problems.length, 0, `\n${report(problems)}`);
}

function file(path: string, text: string): SourceFile {
  return { path, text };
}

function messages(problems: readonly Problem[]): string[] {
  return problems.map((problem) => `${problem.path}:${problem.line}: ${problem.message}`);
}

describe('the tree', () => {
  test('takes time, randomness, environment and output from ports', () => none(checkBans(typescript)));
  test('has no export *, enum or namespace', () => none(checkSyntax(typescript)));
  test('has no notes left over', () => none(checkLeftovers(tree)));
  test('has no file of src that nothing reaches', () => none(checkReached(typescript)));
  test('uses only error codes of the table', () => none(checkErrorCodes(typescript, known)));
  test('names no path of somebody’s machine', () => none(checkMachinePaths(tree)));
  test('has no link that leads nowhere', () => none(checkLinks(tree, exists)));
  test('has no test that cannot fail', () => none(checkTests(typescript)));

  test('explains every error code, and no other, in docs/errors.md', () => {
    const page = tree.find(({ path }) => path === 'docs/errors.md');
    assert.ok(page !== undefined, 'docs/errors.md must exist');
    none(checkErrorPage(page, ERROR_TABLE));
  });

  test('has every folder of src in the table of ARCHITECTURE.md', () => {
    const page = tree.find(({ path }) => path === 'ARCHITECTURE.md');
    assert.ok(page !== undefined, 'ARCHITECTURE.md must exist');
    none(checkFolderTable(page, tree));
  });
});

describe('the check of bans', () => {
  const found = (text: string, path = 'src/pool/pool.ts') =>
    checkBans([file(path, text)]).map((problem) => problem.message.split(':')[0]);

  test('finds each banned call and names a replacement', () => {
    for (const [text, name] of [
      ['const t = Date.now();', 'Date.now'],
      ['const t = new Date();', 'new Date()'],
      ['const t = performance.now();', 'performance.now'],
      ['const t = process.hrtime.bigint();', 'process.hrtime'],
      ['const r = Math.random();', 'Math.random'],
      ["import { randomUUID } from 'node:crypto';", 'randomUUID'],
      ['const id = crypto.randomUUID();', 'randomUUID'],
      ['setTimeout(f, 1);', 'setTimeout'],
      ['globalThis.setTimeout(f, 1);', 'setTimeout'],
      ["import { setTimeout } from 'node:timers/promises';", 'setTimeout'],
      ['setInterval(f, 1);', 'setInterval'],
      ['setImmediate(f);', 'setImmediate'],
      ['fetch(url, { signal: AbortSignal.timeout(5) });', 'AbortSignal.timeout'],
      ['const home = process.env.HOME;', 'process.env'],
      ["console.log('x');", 'console'],
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the fixture is a template literal.
      ['const s = `${Date.now()}`;', 'Date.now'],
    ] as const) {
      assert.deepEqual(found(text), [name], text);
    }
    for (const ban of BANS) assert.ok(ban.instead.length > 10, ban.name);
  });

  test('leaves ports, strings, comments and dates from numbers alone', () => {
    for (const text of [
      'timers.setTimeout(f, 1);',
      'clock.performance.now();',
      "const s = 'Date.now()';",
      '// console.log(Date.now())',
      '/* setTimeout */ f();',
      'const d = new Date(nowMs);',
      'const port = { setTimeout: f };',
      'const r = /console.log/;',
      'const console2 = 1;',
    ]) {
      assert.deepEqual(found(text), [], text);
    }
  });

  test('holds everywhere in src but in adapters, compositions, commands and tests', () => {
    for (const path of [
      'src/platform/node/clock.ts',
      'src/node/a.ts',
      'src/cli/a.ts',
      'src/bin/a.ts',
      'src/bench/a.ts',
      'src/pool/a.test.ts',
    ]) {
      assert.deepEqual(found('Date.now()', path), [], path);
    }
    for (const path of ['src/platform/clock.ts', 'src/gateway/a.ts', 'src/testing/a.ts', 'src/executor/guest/a.ts']) {
      assert.deepEqual(found('Date.now()', path), ['Date.now'], path);
    }
  });

  test('an exception holds for its place and its ban only', () => {
    const rows = [{ path: 'src/executor/guest/', ban: 'setImmediate', reason: 'user code' }];
    const problems = (path: string, text: string) => checkBans([file(path, text)], rows).length;
    assert.equal(problems('src/executor/guest/a.ts', 'setImmediate(f)'), 0);
    assert.equal(problems('src/executor/guest/a.ts', 'setTimeout(f)'), 1);
    assert.equal(problems('src/executor/host/a.ts', 'setImmediate(f)'), 1);
    for (const row of EXCEPTIONS) {
      assert.ok(
        BANS.some((ban) => ban.name === row.ban),
        `no ban is called ${row.ban}`,
      );
      assert.ok(row.reason.length > 10, `${row.path} ${row.ban} needs a reason`);
    }
  });
});

describe('the other checks', () => {
  test('syntax', () => {
    const count = (text: string) => checkSyntax([file('src/a/b.ts', text)]).length;
    assert.equal(count(`export * from './x.ts';`), 1);
    assert.equal(count(`export * as x from './x.ts';`), 1);
    assert.equal(count('enum Color { Red }'), 1);
    assert.equal(count('declare namespace A { }'), 1);
    assert.equal(count('declare global { }'), 0);
    assert.equal(count(`const s = 'enum Color {';`), 0);
  });

  test('leftovers: in comments, not in code', () => {
    const word = ['TO', 'DO'].join('');
    assert.deepEqual(messages(checkLeftovers([file('src/a/b.ts', `f();\n// ${word}: later`)])), [
      `src/a/b.ts:2: ${word} left over: do it, or open an issue and delete the note`,
    ]);
    assert.equal(checkLeftovers([file('src/a/b.ts', `const s = '${word}';`)]).length, 0);
    assert.equal(checkLeftovers([file('python/a.py', `f()  # ${word}`)]).length, 1);
  });

  test('dead files: what no door, entry or bin reaches', () => {
    const files = [
      file('src/a/index.ts', `export { b } from './b.ts';`),
      file('src/a/b.ts', `const worker = new URL('./worker.ts', import.meta.url); await import('./late.ts');`),
      file('src/a/worker.ts', ''),
      file('src/a/late.ts', ''),
      file('src/a/dead.ts', ''),
      file('src/a/dead.test.ts', `import './dead.ts';`),
      file('src/a/entry.ts', ''),
      file('src/bin/antrail.ts', ''),
      file('src/without-door/yet.ts', ''),
    ];
    const entries = [{ path: 'src/a/entry.ts', reason: 'a thread' }];
    assert.deepEqual(
      checkReached(files, entries).map(({ path }) => path),
      ['src/a/dead.ts'],
    );
    assert.deepEqual(
      checkReached(files, [...entries, { path: 'src/a/gone.ts', reason: '' }])[0]?.path,
      'src/a/gone.ts',
    );
  });

  test('error codes', () => {
    const count = (text: string) => checkErrorCodes([file('src/a/b.ts', text)], new Set(['E_TIMEOUT'])).length;
    assert.equal(count(`throw new PlatformError('E_TIMEOUT', 'x');`), 0);
    assert.equal(count(`throw new PlatformError('E_TIMEOUTS', 'x');`), 1);
    assert.equal(count(`// 'E_OLD'`), 0);
  });

  test('the error page', () => {
    const table = { E_A: { kind: 'usage', status: 400, title: 'A' }, E_B: { kind: 'usage', status: 404, title: 'B' } };
    const section = (code: string, title: string, status: number) =>
      `### ${code}\n\n${title}. Kind \`usage\`, status ${status}.\n\n**Cause.** x\n\n**Remedy.** y\n\n`;
    const count = (text: string) => checkErrorPage(file('docs/errors.md', text), table).length;
    assert.equal(count(section('E_A', 'A', 400) + section('E_B', 'B', 404)), 0);
    assert.equal(count(section('E_A', 'A', 400)), 1);
    assert.equal(count(section('E_A', 'A', 401) + section('E_B', 'B', 404)), 1);
    assert.equal(count(section('E_A', 'A', 400) + section('E_B', 'B', 404) + section('E_C', 'C', 400)), 1);
    assert.equal(count(section('E_A', 'A', 400) + section('E_B', 'B', 404) + section('E_B', 'B', 404)), 1);
    assert.equal(count(section('E_A', 'A', 400) + section('E_B', 'B', 404).replace('**Remedy.** y', '')), 1);
  });

  test('the folder table', () => {
    const page = file('ARCHITECTURE.md', '| `src/base` | 0 |');
    assert.equal(checkFolderTable(page, [file('src/base/heap.ts', '')]).length, 0);
    assert.equal(checkFolderTable(page, [file('src/pool/pool.ts', '')]).length, 1);
  });

  test('machine paths', () => {
    const count = (text: string) => checkMachinePaths([file('docs/a.md', text)]).length;
    assert.equal(count(`see ${['', 'work', 'main'].join('/')}`), 1);
    assert.equal(count(`see ${['', 'home', 'me', 'x'].join('/')}`), 1);
    assert.equal(count('see https://example.org/work/x and ./work/x'), 0);
  });

  test('links', () => {
    const there = new Set(['docs/errors.md', 'src/base/errors.ts', 'docs']);
    const count = (text: string) => checkLinks([file('docs/a.md', text)], (path) => there.has(path)).length;
    assert.equal(
      count('[e](errors.md#e_timeout) [t](../src/base/errors.ts) [d](../docs/) [x](https://x.org) [h](#here)'),
      0,
    );
    assert.equal(count('[e](error.md)'), 1);
    assert.equal(count('[ref]: ./gone.md'), 1);
    assert.equal(count('```\n[e](error.md)\n```\nand `[e](error.md)`'), 0);
  });

  test('tests that cannot fail', () => {
    const count = (text: string) => checkTests([file('test/a.test.ts', text)]).length;
    assert.equal(count(`test('x', () => { assert.equal(1, 1); });`), 0);
    assert.equal(count(`sharedLogConformance(() => new MemoryLog());`), 0);
    assert.equal(count(`test('assert', () => { f(); });`), 1);
    assert.equal(count(`test.only('x', () => { assert.equal(1, 1); });`), 1);
  });
});

describe('reading source', () => {
  test('tells code from comments, strings, templates and regular expressions', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the fixture is a template literal.
    const text = "a('x//y'); // c\nconst r = /['\"`]/g; const t = `p${b({ k: `q${c}` })}s`; d = e / f / g;";
    const { code, comments, strings } = scan(text);
    assert.equal(code.length, text.length);
    assert.deepEqual(
      comments.map((comment) => comment.text),
      ['// c'],
    );
    assert.deepEqual(
      strings.map((string) => string.value),
      ['x//y', 'p', 'q', '', 's'],
    );
    assert.match(code, /b\(\{ k: `/);
    assert.match(code, /d = e \/ f \/ g;/);
  });

  test('finds every form of import', () => {
    const text = [
      `import a, { b } from './1.ts';`,
      `import type { T } from './2.ts';`,
      `import { type U } from './3.ts';`,
      `import './4.ts';`,
      `export { c } from './5.ts';`,
      `const d = await import('./6.ts');`,
      `const e = new URL('./7.ts', import.meta.url);`,
      `const f = 'import "./no.ts"'; // import './no.ts'`,
      `import {\n  g,\n  h,\n} from './8.ts';`,
    ].join('\n');
    const found = importsOf(text).sort((x, y) => (x.specifier < y.specifier ? -1 : 1));
    assert.deepEqual(
      found.map((one) => one.specifier),
      [1, 2, 3, 4, 5, 6, 7, 8].map((n) => `./${n}.ts`),
    );
    assert.deepEqual(
      found.filter((one) => one.typeOnly).map((one) => one.specifier),
      ['./2.ts'],
    );
    assert.equal(found[7]?.line, 9);
  });
});
