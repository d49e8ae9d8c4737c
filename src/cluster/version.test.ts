// Goal: the version follows from content alone. Method: bundles that differ in one respect.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AppBundle } from '../protocol/index.ts';
import { canonicalJson, versionOf } from './index.ts';

const BUNDLE: AppBundle = {
  manifest: {
    entry: 'a',
    functions: { a: { kind: 'fn' }, b: { kind: 'durable', options: { timeoutMs: 5 } } },
    buckets: { c: { on: { d: { kind: 'immediate', run: 'a' } } } },
  },
  main: 'main.mjs',
  files: { 'main.mjs': 'export default 1;', 'x.bin': { base64: 'AAEC' } },
};

test('the order of keys, where things stand and how bytes are written do not count', () => {
  const source = { file: 'app.ts', line: 7 };
  const same: AppBundle = {
    files: { 'x.bin': { base64: 'AAEC' }, 'main.mjs': { base64: Buffer.from('export default 1;').toString('base64') } },
    main: 'main.mjs',
    manifest: {
      source,
      buckets: { c: { source, on: { d: { run: 'a', source, kind: 'immediate' } } } },
      functions: { b: { options: { timeoutMs: 5 }, kind: 'durable', source }, a: { kind: 'fn' } },
      entry: 'a',
    },
  };
  assert.equal(versionOf(same), versionOf(BUNDLE));
  assert.match(versionOf(BUNDLE), /^[0-9a-f]{16}$/);
});

test('everything else counts', () => {
  const versions = [
    versionOf(BUNDLE),
    versionOf({ ...BUNDLE, main: 'x.bin' }),
    versionOf({ ...BUNDLE, files: { ...BUNDLE.files, 'main.mjs': 'export default 2;' } }),
    versionOf({ ...BUNDLE, files: { ...BUNDLE.files, more: '' } }),
    versionOf({ ...BUNDLE, manifest: { ...BUNDLE.manifest, entry: 'b' } }),
    versionOf({ ...BUNDLE, manifest: { ...BUNDLE.manifest, cron: [1, 2] } }),
    versionOf({ ...BUNDLE, manifest: { ...BUNDLE.manifest, cron: [2, 1] } }),
    versionOf({ ...BUNDLE, manifest: { ...BUNDLE.manifest, buckets: {} } }),
    versionOf(BUNDLE, { REGION: 'eu' }),
  ];
  assert.equal(new Set(versions).size, versions.length);
});

test('canonical JSON is JSON', () => {
  const value = { b: [1, 'ä', null, { z: true, a: undefined }], a: { '': -0.5 }, x: '"' };
  assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)));
  assert.equal(canonicalJson({ b: 1, a: { d: 2, c: 3 } }), '{"a":{"c":3,"d":2},"b":1}');
  let deep: unknown = 1;
  for (let i = 0; i < 50; i++) deep = [deep];
  assert.throws(() => canonicalJson(deep), { code: 'E_APP_INVALID' });
});
