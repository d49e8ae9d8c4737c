import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PAGE_BYTES } from './limits.ts';
import { createSlabMemory, Slab, type SlabRef } from './slab.ts';

const sizes = fc.oneof(fc.integer({ min: 0, max: 40_000 }), fc.integer({ min: 0, max: 5 * PAGE_BYTES }));

// Goal: no two live objects share a byte, and everything comes back. Method: two owners allocate and free at random.
test('live objects never overlap, and freeing all of them frees every page', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.record({ size: sizes, who: fc.nat(1) }), fc.record({ free: fc.nat() })), { maxLength: 80 }),
      (steps) => {
        const memory = createSlabMemory(40 * PAGE_BYTES);
        const slabs = [new Slab(memory, 1), new Slab(memory, 2)] as const;
        const live: SlabRef[] = [];
        for (const step of steps) {
          if ('size' in step) {
            try {
              live.push((slabs[step.who] ?? slabs[0]).allocate(step.size));
            } catch (error) {
              assert.equal((error as { code?: string }).code, 'E_QUOTA_EXCEEDED');
            }
          } else if (live.length > 0) {
            const [ref] = live.splice(step.free % live.length, 1);
            slabs[0].free(ref as SlabRef);
          }
          slabs[0].checkInvariants();
        }
        const ranges = live.map((r) => [r.offset, r.offset + r.size] as const).sort((a, b) => a[0] - b[0]);
        for (let i = 1; i < ranges.length; i++) assert.ok((ranges[i - 1]?.[1] ?? 0) <= (ranges[i]?.[0] ?? 0));
        for (const ref of live) slabs[0].view(ref).fill(1);
        for (const ref of live) slabs[0].free(ref);
        // At most the page that each owner still fills.
        assert.ok(slabs[0].usedBytes <= 2 * PAGE_BYTES);
        slabs[0].sweep(1, []);
        slabs[0].sweep(2, []);
        assert.equal(slabs[0].usedBytes, 0);
      },
    ),
    { numRuns: 300 },
  );
});

test('an allocation above the budget is refused and takes nothing', () => {
  const slab = new Slab(createSlabMemory(4 * PAGE_BYTES), 1);
  assert.throws(() => slab.allocate(5 * PAGE_BYTES), { code: 'E_QUOTA_EXCEEDED' });
  assert.equal(slab.usedBytes, 0);
  slab.allocate(4 * PAGE_BYTES);
  assert.throws(() => slab.allocate(1), { code: 'E_QUOTA_EXCEEDED' });
});

test('what a dead owner never reported is taken back, what it reported stays', () => {
  const memory = createSlabMemory(10 * PAGE_BYTES);
  const host = new Slab(memory, 1);
  const instance = new Slab(memory, 2);
  const reported = instance.allocate(100);
  instance.allocate(2 * PAGE_BYTES);
  const large = instance.allocate(3 * PAGE_BYTES);
  host.sweep(2, [reported, large]);
  host.checkInvariants();
  assert.equal(host.usedBytes, 4 * PAGE_BYTES);
  host.free(reported);
  host.free(large);
  assert.equal(host.usedBytes, 0);
});

// Goal: what is allocated and freed over and over touches no more memory than was in use at once, so that resident memory
// stays level. Method: rounds of objects of all kinds, freed in any order, in a store with room for a hundred times as many.
test('memory that was freed is used again before any that was never touched', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 30 }),
      fc.array(fc.nat(), { minLength: 8, maxLength: 60 }),
      (count, picks) => {
        const memory = createSlabMemory(10_000 * PAGE_BYTES);
        const slabs = [new Slab(memory, 1), new Slab(memory, 2)] as const;
        let peakPages = 0;
        let highest = 0;
        for (const pick of picks) {
          const live: SlabRef[] = [];
          for (let i = 0; i < count; i++) {
            const size = [20_000, 300, 70_000, 12_000, 3 * PAGE_BYTES][(pick + i) % 5] as number;
            const ref = (slabs[i % 2] ?? slabs[0]).allocate(size);
            live.push(ref);
            highest = Math.max(highest, Math.ceil((ref.offset + ref.size) / PAGE_BYTES));
          }
          peakPages = Math.max(peakPages, slabs[0].usedBytes / PAGE_BYTES);
          for (let i = live.length; i > 0; i--) slabs[0].free(live.splice((pick * i) % live.length, 1)[0] as SlabRef);
        }
        // Gaps too small for a run of three pages may lie between.
        assert.ok(highest <= 3 * peakPages + 3, `page ${highest} was touched for ${peakPages} in use`);
      },
    ),
  );
});
