import assert from 'node:assert/strict';
import { test } from 'node:test';
import { coldAt } from './frontier.ts';

const POINTS = [
  { idle: 0, cold: 1 },
  { idle: 50, cold: 0.9 },
  { idle: 100, cold: 0.2 },
  { idle: 300, cold: 0.1 },
];

test('between two settings the line counts, and a setting above the line of others does not', () => {
  assert.equal(coldAt(POINTS, 100)?.toFixed(6), '0.200000');
  assert.equal(coldAt(POINTS, 200)?.toFixed(6), '0.150000');
  assert.equal(coldAt(POINTS, 50)?.toFixed(6), '0.600000');
});

test('outside its range nothing is said of it', () => {
  assert.equal(coldAt(POINTS, 301), undefined);
  assert.equal(coldAt([], 1), undefined);
});
