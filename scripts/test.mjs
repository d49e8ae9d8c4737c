// `npm test [-- pattern…]`: set-up, lint, then every test file of dist and dist-test in one run of node:test.
// With patterns: only files whose path contains one of them, and no lint.
//
// The runner's summary comes last, whatever failed; the exit code is 0 only when build, lint and tests pass.

import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { ensureDebianPackages } from './debian.mjs';
import { ROOT, runMain, say, setup } from './setup.mjs';

/** Test files at once: some start servers and measure, so they must not starve each other. */
const FILES_AT_ONCE = 2;
/** For one test file, its whole process. The slowest (a cluster under faults) should take a third of it. */
const FILE_TIMEOUT_MS = 180_000;
/** Lines of the runner's summary, in its order. */
const SUMMARY_LINE = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) [\d.]+$/;

await runMain(async () => {
  const patterns = process.argv.slice(2);
  await setup({ tests: true });
  ensureDebianPackages();
  const lintPassed = patterns.length > 0 || lint();

  const files = testFiles().filter((path) => patterns.length === 0 || patterns.some((part) => path.includes(part)));
  if (files.length === 0) {
    say(`no test file's path contains ${patterns.map((part) => `'${part}'`).join(' or ')}`);
    return 1;
  }
  const { failed, summary } = await runFiles(files.map((path) => join(ROOT, path)));
  if (!lintPassed) say('lint failed (see above); `npm run format` mends most of it');
  process.stdout.write(`${summary.map((line) => `ℹ ${line}`).join('\n')}\n`);
  return failed || !lintPassed ? 1 : 0;
});

function lint() {
  const args = [
    join(ROOT, 'node_modules/@biomejs/biome/bin/biome'),
    'ci',
    '.',
    ...(process.stdout.isTTY ? [] : ['--colors=off']),
  ];
  return spawnSync(process.execPath, args, { cwd: ROOT, stdio: 'inherit' }).status === 0;
}

/** Paths relative to the root, sorted, with `/`. */
function testFiles() {
  return ['dist', 'dist-test/test']
    .filter((folder) => existsSync(join(ROOT, folder)))
    .flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true })
        .filter((path) => path.endsWith('.test.js'))
        .map((path) => `${folder}/${path.replaceAll('\\', '/')}`),
    )
    .sort();
}

/** Runs the files, prints as they go, and keeps the summary back. */
function runFiles(files) {
  process.chdir(ROOT);
  const summary = [];
  let failed = false;
  const events = run({ files, concurrency: FILES_AT_ONCE, timeout: FILE_TIMEOUT_MS });
  events.on('test:fail', (event) => {
    if (event.todo === undefined || event.todo === false) failed = true;
  });
  async function* withoutSummary(source) {
    for await (const event of source) {
      const isSummary =
        event.type === 'test:diagnostic' && event.data.nesting === 0 && SUMMARY_LINE.test(event.data.message);
      if (isSummary) summary.push(event.data.message);
      else yield event;
    }
  }
  return new Promise((done, fail) => {
    const output = events.compose(withoutSummary).compose(new spec());
    output.on('data', (chunk) => process.stdout.write(chunk));
    output.on('error', fail);
    output.on('end', () => done({ failed, summary }));
  });
}
