// Goal: folders import each other only as the table of layers allows.
// Method: the check runs over every file of src, and over small made-up files so that each rule is seen to fail.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkConsole, checkLayers, LAYERS } from './checks/layers.ts';
import { isTypeScript, readTree, runtimePackages } from './checks/repository.ts';
import { report } from './checks/source.ts';

/** Problems of one file with this text. */
function problemsOf(path: string, text: string, others: Record<string, string> = {}): string[] {
  const files = Object.entries({ ...others, [path]: text }).map(([name, content]) => ({ path: name, text: content }));
  return checkLayers(files, LAYERS, new Set(['fastify', 'msgpackr', 'croner', 'lmdb']))
    .filter((problem) => problem.path === path)
    .map((problem) => problem.message);
}

function refused(path: string, text: string, message: RegExp, others?: Record<string, string>): void {
  const found = problemsOf(path, text, others);
  assert.equal(found.length, 1, `${path}: ${text}\n${found.join('\n')}`);
  assert.match(found[0] ?? '', message);
}

function allowed(path: string, text: string, others?: Record<string, string>): void {
  assert.deepEqual(problemsOf(path, text, others), [], `${path}: ${text}`);
}

test('every import of src follows the table of layers', () => {
  const problems = checkLayers(readTree('src').filter(isTypeScript), LAYERS, runtimePackages());
  assert.equal(problems.length, 0, `\n${report(problems)}`);
});

test('the console imports only types of protocol', () => {
  const problems = checkConsole(readTree('console').filter(isTypeScript));
  assert.equal(problems.length, 0, `\n${report(problems)}`);
});

describe('the check of layers', () => {
  test('imports go downward', () => {
    allowed('src/pool/pool.ts', `import { assert } from '../base/index.ts';`);
    allowed('src/node/all-in-one.ts', `import { Pool } from '../pool/index.ts';`);
    refused('src/base/heap.ts', `import { Pool } from '../pool/index.ts';`, /only downward/);
    refused('src/base/heap.ts', `import type { Pool } from '../pool/index.ts';`, /only downward/);
    refused('src/base/heap.ts', `export { Pool } from '../pool/index.ts';`, /only downward/);
    refused('src/base/heap.ts', `const { Pool } = await import('../pool/index.ts');`, /only downward/);
    refused('src/base/heap.test.ts', `import { Pool } from '#src/pool/index.js';`, /only downward/);
  });

  test('folders of one level do not know each other', () => {
    refused('src/trigger/by-set.ts', `import { Bucket } from '../bucket/index.ts';`, /level 3.*level 3/);
    allowed('src/bin/antrail.ts', `import { main } from '../cli/index.ts';`);
    refused('src/cli/index.ts', `import '../bin/antrail.ts';`, /inside bin/);
  });

  test('another folder is entered through its door', () => {
    refused('src/pool/pool.ts', `import { Heap } from '../base/heap.ts';`, /src\/base\/index\.ts/);
    refused('src/pool/pool.ts', `import { x } from '../base/internal.ts';`, /src\/base\/index\.ts/);
    allowed('src/pool/pool.test.ts', `import { x } from '../base/internal.ts';`);
    allowed('src/pool/pool.ts', `import { keep } from './policy/keep-alive.ts';`);
    refused('src/node/worker.ts', `import { x } from '../executor/guest/step.ts';`, /executor\/guest\/index\.ts/);
    allowed('src/node/worker.ts', `import { x } from '../executor/guest/index.ts';`);
  });

  test('below the I/O level there are only the listed packages', () => {
    allowed('src/protocol/codec.ts', `import { pack } from 'msgpackr';`);
    refused('src/state/codec.ts', `import { pack } from 'msgpackr';`, /docs\/decisions/);
    allowed('src/trigger/by-time.ts', `import { Cron } from 'croner';`);
    allowed('src/gateway/server.ts', `import fastify from 'fastify';`);
    allowed('src/log/embedded/index-file.ts', `import { open } from 'lmdb';`);
    refused('src/gateway/server.ts', `import fc from 'fast-check';`, /tests only/);
    refused('src/gateway/server.ts', `import pg from 'pg';`, /not among the dependencies/);
    allowed('src/protocol/codec.property.test.ts', `import fc from 'fast-check';`);
  });

  test('below the I/O level there are ports instead of node: modules', () => {
    refused('src/pool/pool.ts', `import { readFile } from 'node:fs/promises';`, /port/);
    refused('src/pool/pool.ts', `import { Worker } from 'node:worker_threads';`, /port/);
    allowed('src/pool/pool.ts', `import { inspect } from 'node:util';`);
    allowed('src/platform/node/storage.ts', `import { open } from 'node:fs';`);
    allowed('src/pool/pool.test.ts', `import { test } from 'node:test';`);
    allowed('src/pool/pool.ts', `// import { readFile } from 'node:fs';\nconst s = "import 'node:fs'";`);
  });

  test('adapters are chosen where things are composed', () => {
    refused('src/scheduler/driver.ts', `import { x } from '../platform/node/index.ts';`, /port as an argument/);
    refused('src/platform/index.ts', `export { x } from './node/index.ts';`, /chooses it/);
    allowed('src/node/all-in-one.ts', `import { x } from '../platform/node/index.ts';`);
    allowed('src/log/embedded/file.ts', `import { x } from '../../platform/node/index.ts';`);
    allowed('src/log/shared-log.test.ts', `import { x } from './embedded/index.ts';`);
  });

  test('edge folders stay light', () => {
    allowed('src/sdk/app.ts', `import { PlatformError } from '../base/index.ts';`);
    refused('src/sdk/app.ts', `import { x } from '../bucket/index.ts';`, /edge folder imports only/);
    refused('src/sdk/app.ts', `import { types } from 'node:util';`, /no node: module/);
    refused('src/sdk/app.ts', `import { x } from '../base/index.ts';`, /gets node:util through/, {
      'src/base/index.ts': `export { x } from './x.ts';`,
      'src/base/x.ts': `import { types } from 'node:util';`,
    });
    refused('src/pool/pool.ts', `import { fn } from '../sdk/index.ts';`, /see the edge/);
    allowed('src/executor/guest/context.ts', `import { fn } from '../../sdk/index.ts';`);
    refused('src/executor/host/driver.ts', `import { fn } from '../../sdk/index.ts';`, /see the edge/);
    refused('src/client/client.ts', `import fastify from 'fastify';`, /uses no package/);
  });

  test('only tests import testing', () => {
    refused('src/node/all-in-one.ts', `import { Sim } from '../testing/index.ts';`, /only tests/);
    allowed('src/log/log.test.ts', `import { Sim } from '../testing/index.ts';`);
    allowed('src/testing/sim.ts', `import { compose } from '../node/index.ts';`);
  });

  test('a folder that is not in the table is refused with what to do', () => {
    refused('src/utils/misc.ts', '', /add a row .* LAYERS/);
    refused('src/misc.ts', '', /directly in src/);
    refused('src/pool/pool.ts', `import { x } from '../utils/index.ts';`, /add a row/);
  });

  test('product code does not reach out of src, nor import itself by name', () => {
    refused('src/cli/main.ts', `import { x } from '../../test/checks/source.ts';`, /outside src/);
    refused('src/cli/main.ts', `import { app } from 'antrail';`, /relative paths/);
  });

  test('the console sees types of protocol only', () => {
    const problems = (text: string) => checkConsole([{ path: 'console/app.ts', text }]).length;
    assert.equal(problems(`import type { App } from '../src/protocol/index.ts';`), 0);
    assert.equal(problems(`import { App } from '../src/protocol/index.ts';`), 1);
    assert.equal(problems(`import type { Pool } from '../src/pool/index.ts';`), 1);
  });
});
