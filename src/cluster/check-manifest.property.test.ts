// Goal: whatever comes from outside, the checks answer (CM1), and what they accept is sound (CM2, CM3).
// Method: arbitrary values, valid manifests with one part replaced by an arbitrary one, and the soundness of what passes
// checked by code of its own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { AppBundle, Manifest } from '../protocol/index.ts';
import { checkManifest, decodeBundle, type TriggerChecks, versionOf } from './index.ts';

const CHECKS: TriggerChecks = {
  checkTrigger: (spec) => {
    const { kind, run } = spec as Record<string, unknown>;
    const fine =
      kind === 'immediate' &&
      (typeof run === 'string' || (Array.isArray(run) && run.every((n) => typeof n === 'string')));
    return fine ? [] : ['is wrong.'];
  },
  functionsOf: (spec) => (typeof spec.run === 'string' ? [spec.run] : spec.run),
};

const name = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom('a', 'b') },
  { weight: 1, arbitrary: fc.constantFrom('constructor', '__proto__', 'toString', 'a b', '$x', '') },
);
const garbage = fc.anything({
  withBigInt: true,
  withNullPrototype: true,
  withDate: true,
  withMap: true,
  withSparseArray: true,
});
const orGarbage = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 30, arbitrary }, { weight: 1, arbitrary: garbage });
/** Keys as JSON gives them: `__proto__` is an own property. */
const recordOf = <T>(value: fc.Arbitrary<T>) =>
  fc.array(fc.tuple(name, value), { maxLength: 4 }).map((entries) => Object.fromEntries(entries));

const count = fc.integer({ min: 1, max: 9 });
const names = fc.uniqueArray(name, { minLength: 1, maxLength: 2 });
const run = fc.oneof(name, names);
const trigger = fc.record(
  { kind: orGarbage(fc.constant('immediate')), run: orGarbage(run), sources: orGarbage(names) },
  { requiredKeys: ['kind', 'run'] },
);
const rule = fc.record({
  source: orGarbage(name),
  expect: orGarbage(fc.oneof(fc.constant('every-object'), names)),
  timeoutMs: orGarbage(count),
});
const bucket = fc.record(
  { on: orGarbage(recordOf(orGarbage(trigger))), rerun: orGarbage(fc.array(orGarbage(rule), { maxLength: 2 })) },
  { requiredKeys: [] },
);
const spec = fc.record(
  {
    kind: orGarbage(fc.constantFrom('fn', 'durable')),
    runtime: orGarbage(fc.constantFrom('thread', 'process')),
    options: orGarbage(
      fc.record(
        { timeoutMs: orGarbage(count), retries: orGarbage(fc.nat(5)), keepAlive: orGarbage(fc.jsonValue()) },
        { requiredKeys: [] },
      ),
    ),
    source: orGarbage(fc.constant({ file: 'app.ts', line: 1 })),
  },
  { requiredKeys: ['kind'] },
);
const manifest = fc.record(
  {
    entry: orGarbage(fc.constantFrom('a', 'b')),
    functions: orGarbage(recordOf(orGarbage(spec))),
    buckets: orGarbage(recordOf(orGarbage(bucket))),
    state: orGarbage(fc.constant({ commit: 'each' })),
    env: orGarbage(recordOf(orGarbage(fc.constantFrom('x', null)))),
    secrets: orGarbage(names),
  },
  { requiredKeys: ['entry', 'functions', 'buckets'] },
);

function isSound(accepted: Manifest): void {
  const names = Object.keys(accepted.functions);
  assert.ok(names.includes(accepted.entry));
  for (const key of [...names, ...Object.keys(accepted.buckets)])
    assert.ok(!(key in Object.prototype) && /^[A-Za-z$_]/.test(key));
  for (const one of Object.values(accepted.functions)) assert.match(one.kind, /^(fn|durable)$/);
  for (const one of Object.values(accepted.buckets)) {
    for (const { run } of Object.values(one.on ?? {}))
      for (const target of [run].flat()) assert.ok(names.includes(target));
    for (const { source } of one.rerun ?? []) assert.ok(names.includes(source));
  }
}

test('arbitrary values are refused or accepted, never thrown at', () => {
  fc.assert(
    fc.property(garbage, (value) => {
      const problems = checkManifest(value, CHECKS);
      assert.ok(problems.length > 0);
      for (const problem of problems) assert.equal(typeof problem.message, 'string');
      const body = decodeBundle(value, CHECKS);
      assert.ok(body.problems !== undefined && body.problems.length > 0);
    }),
    { numRuns: 2_000 },
  );
});

test('what is accepted of nearly valid manifests is sound, and has a version', () => {
  let accepted = 0;
  fc.assert(
    fc.property(manifest, (value) => {
      const problems = checkManifest(value, CHECKS);
      if (problems.length > 0) return;
      accepted++;
      isSound(value as unknown as Manifest);
      const bundle = { manifest: value, main: 'm', files: { m: '' } } as unknown as AppBundle;
      assert.match(versionOf(bundle), /^[0-9a-f]{16}$/);
      assert.deepEqual(checkManifest(JSON.parse(JSON.stringify(value)), CHECKS), []);
    }),
    { numRuns: 5_000 },
  );
  assert.ok(accepted > 100, `many must be accepted, else nothing was tested: ${accepted}`);
});
