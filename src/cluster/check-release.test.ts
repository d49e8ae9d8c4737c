// Goal: an app that asks for what this release cannot do is refused with what to do instead. Method: one field each.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Manifest } from '../protocol/index.ts';
import { checkRelease } from './index.ts';

const PLAIN: Manifest = { entry: 'f', functions: { f: { kind: 'fn', runtime: 'thread' } }, buckets: {} };

test('a plain app is accepted', () => {
  assert.deepEqual(checkRelease(PLAIN), []);
});

const source = { file: 'app.ts', line: 7 };
for (const [what, manifest, message] of [
  ['a durable function', { ...PLAIN, functions: { f: { kind: 'durable', source } } }, /is durable.*Use fn/],
  [
    'a process of its own',
    { ...PLAIN, functions: { f: { kind: 'fn', runtime: 'process', source } } },
    /runtime 'process'/,
  ],
  ['state', { ...PLAIN, state: {}, source }, /declares state/],
  ['cron of the app', { ...PLAIN, cron: [], source }, /byTime\(\{ cron \}\)/],
  ['secrets', { ...PLAIN, secrets: ['KEY'], source }, /secrets.*Use env/],
] as const) {
  test(`${what} is refused, with file and line`, () => {
    const [problem, ...more] = checkRelease(manifest as Manifest);
    assert.match(problem?.message ?? '', message);
    assert.deepEqual([problem?.file, problem?.line, more.length], ['app.ts', 7, 0]);
  });
}
