// Debian packages that some tests need beside what npm installs.
//
// A row: `program` names it in tests, `package` is what apt installs, `isPresent` looks for it without starting it,
// `neededBy` says which tests and why. A test asks with `needs('<program>')` of test/fixtures/needs.ts and is skipped
// with the reason when the program is missing.
//
//   { program: 'postgres', package: 'postgresql', isPresent: () => anyFile('/usr/lib/postgresql', /\/bin\/postgres$/),
//     neededBy: 'test/integration/postgres-*.test.ts: the postgres back ends' }

import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { say } from './setup.mjs';

const INSTALL_TIMEOUT_MS = 300_000;

/** @type {readonly { program: string, package: string, isPresent: () => boolean, neededBy: string }[]} */
export const DEBIAN_PACKAGES = [
  {
    program: 'prlimit',
    package: 'util-linux',
    isPresent: () => isOnPath('prlimit'),
    neededBy: 'test/fault/spill: a disk that takes no more',
  },
];

/** Whether a program of this name is on the PATH. */
export function isOnPath(program, path = process.env.PATH ?? '') {
  return path.split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return folder !== '';
    } catch {
      return false;
    }
  });
}

/**
 * @returns why tests that need `program` are skipped, or undefined when it is there.
 * @throws when the table has no such program: a typing error must not skip a test for ever.
 */
export function missingReason(program, table = DEBIAN_PACKAGES) {
  const row = table.find((candidate) => candidate.program === program);
  if (row === undefined) throw new Error(`scripts/debian.mjs has no row for '${program}': add one`);
  return row.isPresent() ? undefined : `${program} is missing: apt-get install ${row.package}`;
}

/**
 * Installs what is missing when this user may; otherwise names it and says how to get it.
 *
 * @param install installs packages by name; returns whether that worked.
 * @returns the rows that are still missing; their tests skip themselves.
 */
export function ensureDebianPackages({
  table = DEBIAN_PACKAGES,
  mayInstall = process.getuid?.() === 0 && isOnPath('apt-get'),
  install = aptInstall,
  log = say,
} = {}) {
  const missing = table.filter((row) => !row.isPresent());
  if (missing.length === 0) return [];
  const names = [...new Set(missing.map((row) => row.package))];
  if (mayInstall) {
    log(`installing Debian packages for tests: ${names.join(', ')}`);
    if (!install(names)) log('apt-get failed');
  }
  const still = missing.filter((row) => !row.isPresent());
  for (const row of still) {
    log(`${row.program} is missing, tests that need it are skipped (${row.neededBy}).`);
    log(`  to get it: sudo apt-get install ${row.package}`);
  }
  return still;
}

function aptInstall(names) {
  const options = { stdio: ['ignore', 'ignore', 2], timeout: INSTALL_TIMEOUT_MS };
  const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = () =>
    spawnSync('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...names], { ...options, env: environment })
      .status === 0;
  if (install()) return true;
  // A fresh image has no package lists.
  spawnSync('apt-get', ['update', '-q'], { ...options, env: environment });
  return install();
}
