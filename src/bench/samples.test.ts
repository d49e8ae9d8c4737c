import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Samples } from './samples.ts';

test('percentiles are those of all samples, whenever they came', () => {
  const samples = new Samples();
  for (let value = 100; value > 50; value--) samples.add(value);
  assert.equal(samples.percentile(1), 100);
  samples.addAll(Array.from({ length: 50 }, (_, i) => i + 1));
  assert.equal(samples.count, 100);
  assert.equal(samples.median, 50);
  assert.equal(samples.percentile(0.99), 99);
  assert.equal(samples.percentile(0), 1);
});

test('what is no number is no sample, and nothing has no median', () => {
  const samples = new Samples();
  assert.throws(() => samples.median, /percentile is of something/);
  assert.throws(() => samples.add(Number.NaN), /finite/);
});
