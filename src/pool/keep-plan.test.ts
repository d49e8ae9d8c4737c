// Goal: the plan is the cheapest. Method: its expected cost, counted forward, against every plain keep-alive and against
// plans with one bin changed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GAP_BOUNDS_MS, IdleGaps } from './idle-gaps.ts';
import { type KeepPlan, planOf } from './keep-plan.ts';
import { GAP_BINS } from './limits.ts';

const START_COST_MS = 800;

/** Idling, starts ahead and missed gaps of a set of bins, in ms. */
function costOf(kept: readonly boolean[], hazards: Float64Array, worthMs: number): number {
  let cost = 0;
  let lasts = 1;
  let warm = true;
  for (let bin = 0; bin < GAP_BINS; bin++) {
    const hazard = hazards[bin] ?? 0;
    const widthMs = (GAP_BOUNDS_MS[bin] as number) - (bin === 0 ? 0 : (GAP_BOUNDS_MS[bin - 1] as number));
    const keep = kept[bin] === true;
    if (keep && !warm) cost += lasts * START_COST_MS;
    cost += keep ? lasts * widthMs * (1 - hazard / 2) : lasts * hazard * worthMs;
    lasts *= 1 - hazard;
    warm = keep;
  }
  return cost;
}

function binsOf(plan: KeepPlan): boolean[] {
  return GAP_BOUNDS_MS.map((toMs) => plan.some((window) => window.fromMs < toMs && toMs <= window.toMs));
}

const gaps = fc.array(fc.double({ min: 1, max: 1e7, noNaN: true }), { minLength: 1, maxLength: 40 });

test('no plain keep-alive and no change of one bin costs less', () => {
  fc.assert(
    fc.property(
      gaps,
      fc.double({ min: 1e3, max: 1e8, noNaN: true }),
      fc.nat(GAP_BINS - 2),
      (lengths, worthMs, changed) => {
        const seen = new IdleGaps();
        for (const length of lengths) seen.add(length);
        const hazards = seen.hazards(undefined, 1);
        const bins = binsOf(planOf(hazards, worthMs, START_COST_MS));
        const cost = costOf(bins, hazards, worthMs);
        const slack = 1e-9 * (1 + cost);
        for (let keepTo = 0; keepTo < GAP_BINS; keepTo++) {
          const plain = costOf(
            bins.map((_, bin) => bin < keepTo),
            hazards,
            worthMs,
          );
          assert.ok(cost <= plain + slack, `${cost} <= keep-alive over ${keepTo} bins ${plain}`);
        }
        const other = costOf(
          bins.map((keep, bin) => (bin === changed ? !keep : keep)),
          hazards,
          worthMs,
        );
        assert.ok(cost <= other + slack, `${cost} <= ${other} with bin ${changed} changed`);
      },
    ),
  );
});

test('a function that comes every five minutes is started shortly before, not kept', () => {
  const seen = new IdleGaps();
  for (let i = 0; i < 50; i++) seen.add(300_000 + i * 10);
  const plan = planOf(seen.hazards(undefined, 0), 250_000, START_COST_MS);
  assert.equal(plan.length, 1);
  const [window] = plan;
  assert.ok(window?.ahead);
  assert.ok(window.fromMs > 200_000 && window.toMs >= 300_500, JSON.stringify(window));
});

test('hazards count a gap once, and what has no own gaps looks like the others', () => {
  const seen = new IdleGaps();
  for (const length of [100, 100, 5_000]) seen.add(length);
  const hazards = seen.hazards(undefined, 0);
  assert.equal(hazards[0], 2 / 3);
  assert.equal(hazards.filter((hazard) => hazard > 0).length, 2);
  assert.deepEqual([...new IdleGaps().hazards(hazards, 2)], [...hazards]);
});
