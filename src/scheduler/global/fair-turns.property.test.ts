// Goal: FT1 and FT2. Method: whoever wants turns without end, beside others who come and go.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FairTurns } from './fair-turns.ts';

const OPTIONS = { roundMs: 1, perRound: 32, quantum: 8 };
const weights = fc.array(fc.constantFrom(0.1, 0.25, 1, 2, 3, 10), { minLength: 2, maxLength: 6 });

test('shares of those who always want more are as their weights', () => {
  fc.assert(
    fc.property(weights, (all) => {
      const turns = new FairTurns<number>(OPTIONS);
      const got = all.map(() => 0);
      for (let round = 0; round < 5_000; round++) {
        for (const [key, weight] of all.entries()) turns.want(key, weight);
        turns.serve(round, (key) => {
          got[key] = (got[key] as number) + 1;
          return true;
        });
      }
      const sum = got.reduce((a, b) => a + b, 0);
      assert.equal(sum, 5_000 * OPTIONS.perRound, 'nothing is wasted (FT2)');
      const weightSum = all.reduce((a, b) => a + b, 0);
      for (const [key, weight] of all.entries()) {
        const share = (got[key] as number) / sum;
        const fair = weight / weightSum;
        assert.ok(Math.abs(share - fair) < 0.02, `${key} got ${share} of the turns, fair is ${fair}`);
      }
    }),
    { numRuns: 50 },
  );
});

test('nobody waits for more rounds than the others have work of one turn of theirs', () => {
  fc.assert(
    fc.property(weights, fc.array(fc.nat(5), { minLength: 200, maxLength: 200 }), (all, comings) => {
      const turns = new FairTurns<number>(OPTIONS);
      const has = all.map(() => 0);
      const waitsSince = new Map<number, number>();
      let ahead = 0;
      for (const weight of all) ahead += Math.max(1, OPTIONS.quantum * weight);
      // One that gathers a fraction of a turn each time comes round more often before it has a whole one.
      const timesRound = Math.ceil(1 / (OPTIONS.quantum * Math.min(...all)));
      const longest = Math.ceil((ahead * timesRound) / OPTIONS.perRound) + 1;
      for (const [round, who] of comings.entries()) {
        const key = who % all.length;
        // One floods, the others come now and then.
        has[0] = 1_000;
        has[key] = (has[key] as number) + 1;
        for (const [one, count] of has.entries()) {
          if (count === 0) continue;
          turns.want(one, all[one] as number);
          if (!waitsSince.has(one)) waitsSince.set(one, round);
        }
        turns.serve(round, (one) => {
          if (has[one] === 0) return false;
          has[one] = (has[one] as number) - 1;
          waitsSince.delete(one);
          return true;
        });
        for (const [one, since] of waitsSince) assert.ok(round - since <= longest, `${one} waits since ${since}`);
      }
    }),
    { numRuns: 100 },
  );
});

test('alone, a turn is there at once until the round has none; then it is waited for', () => {
  const turns = new FairTurns<string>({ roundMs: 1, perRound: 2, quantum: 1 });
  assert.deepEqual([turns.takeAtOnce(0), turns.takeAtOnce(0.5), turns.takeAtOnce(0.9)], [true, true, false]);
  turns.want('a', 1);
  assert.equal(turns.nextRoundMs, 1);
  assert.equal(turns.takeAtOnce(1), false, 'who waits goes before who comes');
  const used: string[] = [];
  turns.serve(1, (key) => used.push(key) < 2);
  assert.deepEqual(used, ['a', 'a']);
  assert.equal(turns.nextRoundMs, undefined);
  assert.equal(turns.takeAtOnce(1), true);
});
