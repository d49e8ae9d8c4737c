import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReached, ratioOf, targetText } from './report.ts';
import { Samples } from './samples.ts';

const samples = new Samples();
samples.addAll([2, 4, 6]);

test('a ratio is the median over the baseline', () => {
  assert.deepEqual(ratioOf('hop', 'µs', samples, 8), {
    name: 'hop',
    value: 4,
    unit: 'µs',
    p99: 6,
    baseline: 8,
    ratio: 0.5,
  });
});

test('a target is a bound on the ratio or on the value, from above or from below', () => {
  const metric = ratioOf('hop', 'µs', samples, 8);
  assert.equal(isReached(metric, { of: 'ratio', atMost: 0.5 }), true);
  assert.equal(isReached(metric, { of: 'ratio', atMost: 0.49 }), false);
  assert.equal(isReached(metric, { of: 'ratio', atLeast: 0.6 }), false);
  assert.equal(isReached(metric, { of: 'value', atLeast: 4 }), true);
  assert.equal(isReached({ name: 'hop', value: 0.1, unit: 'µs' }, { of: 'ratio', atMost: 0.5 }), false);
  assert.equal(targetText({ of: 'ratio', atMost: 0.5 }, 'µs'), '≤ 0.5');
  assert.equal(targetText({ of: 'value', atLeast: 4 }, 'µs'), '≥ 4 µs');
});
