// Goal: an id is there if and only if it was added, whatever else was.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { IdSet } from './id-set.ts';

test('what was added is there, nothing else is', () => {
  const word = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 0xffff_ffff }));
  const id = fc.record({ hi: word, lo: word });
  fc.assert(
    fc.property(fc.array(id, { maxLength: 3_000 }), fc.array(id, { maxLength: 100 }), (added, asked) => {
      const set = new IdSet();
      const model = new Set<string>();
      for (const one of added) {
        set.add(one);
        model.add(`${one.hi}/${one.lo}`);
      }
      assert.equal(set.size, model.size);
      for (const one of [...added, ...asked]) assert.equal(set.has(one), model.has(`${one.hi}/${one.lo}`));
    }),
    { numRuns: 30 },
  );
});
