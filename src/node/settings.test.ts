// Goal: weights are checked at the door, and processors are shared by them.

import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { nicenessOf, resolveSettings, weightOf } from './settings.ts';

async function withConfig(t: TestContext, config: unknown) {
  const folder = await mkdtemp(join(tmpdir(), 'antrail-settings-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const configFile = join(folder, 'config.json');
  await writeFile(configFile, JSON.stringify(config));
  return resolveSettings({ dataDir: folder, host: '127.0.0.1', port: 0, configFile });
}

test('the heaviest app stands back for the server only, the others by their weight', async (t) => {
  const settings = await withConfig(t, { weights: { heavy: 4, light: 0.5 } });
  assert.deepEqual(
    ['heavy', 'light', 'other', 'constructor'].map((app) => weightOf(settings, app)),
    [4, 0.5, 1, 1],
  );
  assert.equal(nicenessOf(settings, 'heavy'), 3);
  // A step of niceness is a factor of 1.25 between the shares of a contended core.
  assert.equal(nicenessOf(settings, 'other'), 9);
  assert.equal(nicenessOf(settings, 'light'), 12);
  assert.equal(nicenessOf(await withConfig(t, {}), 'any'), 3);
});

test('a weight that is none is refused with what it may be', async (t) => {
  for (const weights of [{ a: 0 }, { a: 11 }, { a: 'x' }, [1], null, 3]) {
    await assert.rejects(withConfig(t, { weights }), /Option 'weights' .* weight from 0\.1 to 10/);
  }
});
