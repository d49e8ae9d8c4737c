// Goal: each checker of the simulator finds what it is there for. Method: bugs are planted (src/testing/plants.ts), and the
// first seeds are run until the checker of each says so.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { PLANTS, SeedRunner, type SimulationOptions } from '#src/testing/index.js';

/** Twice as many as the slowest of them needs. */
const SEEDS_MAX = 100;

const runner = new SeedRunner(1);
after(() => runner.close());

test('every checker has a bug planted for it', () => {
  const checkers = new Set(PLANTS.map(({ checker }) => checker));
  assert.equal(checkers.size, 8);
});

for (const { name, checker } of PLANTS) {
  test(`${checker}: a machine that ${name.replaceAll('-', ' ')} is found out`, async () => {
    let found: string | undefined;
    function* seeds(): Generator<SimulationOptions> {
      for (let seed = 1; seed <= SEEDS_MAX && found === undefined; seed++) yield { seed, plant: name };
    }
    await runner.run(seeds(), ({ violations }) => {
      found ??= violations.find((one) => one.checker === checker)?.message;
    });
    assert.ok(found !== undefined, `not within ${SEEDS_MAX} seeds`);
  });
}
