// Goal: whatever dies, is late or is repeated, what was promised holds. Method: the simulator (docs/internals/simulator.md)
// on a few fixed seeds; many more by hand, `npm run sim -- --seeds 10000`.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { SeedRunner, type SimulationResult } from '#src/testing/index.js';

/** Some seconds' worth. */
const SEEDS = 40;

const runner = new SeedRunner(1);
after(() => runner.close());

test('no checker finds a violation', async () => {
  const failed: string[] = [];
  let executions = 0;
  let deaths = 0;
  const seeds = Array.from({ length: SEEDS }, (_, i) => ({ seed: i + 1 }));
  await runner.run(seeds, (result) => {
    executions += result.executions;
    deaths += result.deaths;
    for (const { checker, message } of result.violations) {
      failed.push(`npm run sim -- --seed ${result.seed}\n  ${checker}: ${message}`);
    }
  });
  assert.deepEqual(failed, []);
  assert.ok(executions > 10 * SEEDS && deaths > SEEDS, 'something happened in them');
});

test('the same seed twice gives the same trace, another seed another one', async () => {
  const results: SimulationResult[] = [];
  await runner.run([{ seed: 7 }, { seed: 8 }, { seed: 7 }], (result) => results.push(result));
  const [first, other, again] = results;
  assert.ok(first !== undefined && other !== undefined && again !== undefined && first.events > 100);
  assert.equal(again.hash, first.hash);
  assert.equal(again.events, first.events);
  assert.notEqual(other.hash, first.hash);
});
