// Goal: whatever becomes of askings (failed, lost, answered late, twice or out of turn), each object is decided about once,
// as a class that is asked in order and at once decides. Method: generated events against a model of ten lines.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { EvaluationResult, TriggerScope } from '../protocol/index.ts';
import { type CustomMachine, type EvaluationPlan, evaluationOf } from './custom.ts';
import { evaluateCustom } from './custom-evaluation.ts';
import { createTrigger, restoreTrigger, type TriggerObject } from './index.ts';
import { EVALUATION_LOSSES_MAX, EVALUATION_TRIES_MAX } from './limits.ts';
import type { Firing, Now } from './machine.ts';
import type { SpecOf } from './spec.ts';

/** Fires what has come when the sum is above the threshold, and 50 ms after the first of them if it is not by then. */
class Sum {
  readonly #above: number;
  #sum = 0;

  constructor({ above }: { above: number }) {
    this.#above = above;
  }

  onObject(object: { group: string; id: string }, nowMs: number) {
    if (object.group === 'poison') throw new Error('poison');
    if (object.group === 'ignore') return { drop: [object.id] };
    const first = this.#sum === 0;
    this.#sum += Number(object.group);
    if (this.#sum <= this.#above) return first ? { timerAtMs: nowMs + 50 } : undefined;
    this.#sum = 0;
    return { fire: [{}], timerAtMs: null };
  }

  onTimer() {
    this.#sum = 0;
    return { fire: [{ group: 'late' }] };
  }

  snapshot() {
    return { sum: this.#sum };
  }

  restore({ sum }: { sum: number }) {
    this.#sum = sum;
  }
}

type Step =
  | { readonly type: 'object'; readonly group: string }
  | { readonly type: 'again'; readonly which: number }
  | { readonly type: 'advance'; readonly ms: number }
  | { readonly type: 'answer' | 'lose' | 'fail' | 'answer-twice' | 'restart' };

const ABOVE = 10;

/** What must fire: key lists. An object that is poison counts for nothing. */
function model(arrivals: readonly { key: string; group: string; ms: number }[], endMs: number): string[][] {
  const firings: string[][] = [];
  let held: string[] = [];
  let sum = 0;
  let timer = Number.POSITIVE_INFINITY;
  const serve = (ms: number) => {
    if (timer > ms) return;
    firings.push(held);
    [held, sum, timer] = [[], 0, Number.POSITIVE_INFINITY];
  };
  for (const { key, group, ms } of arrivals) {
    serve(ms);
    if (group === 'poison' || group === 'ignore') continue;
    if (sum === 0) timer = ms + 50;
    held.push(key);
    sum += Number(group);
    if (sum <= ABOVE) continue;
    firings.push(held);
    [held, sum, timer] = [[], 0, Number.POSITIVE_INFINITY];
  }
  serve(endMs);
  return firings;
}

class Bench {
  readonly spec: SpecOf<'custom'>;
  machine: CustomMachine;
  ms = 5_000;
  readonly arrivals: { key: string; group: string; ms: number }[] = [];
  readonly groups = new Map<string, string>();
  readonly firings: Firing[] = [];
  readonly gaveUp: string[] = [];
  readonly stale: { id: number; result: EvaluationResult }[] = [];
  flight: EvaluationPlan | undefined;

  constructor(scope: TriggerScope) {
    this.spec = { kind: 'custom', class: 'Sum', run: 'f', scope, options: { above: ABOVE } };
    this.machine = createTrigger(this.spec, this.now()) as CustomMachine;
  }

  now(): Now {
    return { monotonicMs: this.ms, epochMs: this.ms };
  }

  object(group: string): void {
    const name = `o${this.arrivals.length}`;
    const key = this.spec.scope === 'bucket' ? `s\u0000${name}` : name;
    this.groups.set(key, group);
    this.arrivals.push({ key, group, ms: this.ms });
    this.deliver(this.objectOf(key));
  }

  objectOf(key: string): TriggerObject {
    return { key, name: key, group: this.groups.get(key) ?? '', session: 's' };
  }

  deliver(object: TriggerObject): void {
    assert.deepEqual(this.machine.onObject(object, this.now()), []);
    this.pump();
  }

  pump(): void {
    this.machine.onTimer(this.now());
    const plan = this.machine.begin(this.now());
    if (plan === undefined) return;
    assert.equal(this.flight, undefined, 'one evaluation at a time (CU1)');
    this.flight = plan;
  }

  evaluate(plan: EvaluationPlan): EvaluationResult {
    const evaluation = evaluationOf(this.spec, { bucket: 'b', trigger: 't' }, plan, (key) => {
      assert.ok(this.groups.has(key));
      return { name: key, session: 's', group: this.groups.get(key) ?? '', contentType: '', size: 0 };
    });
    return JSON.parse(JSON.stringify(evaluateCustom(Sum as never, evaluation, [])));
  }

  answer(result: EvaluationResult): void {
    const { flight } = this;
    if (flight === undefined) return;
    this.flight = undefined;
    this.stale.push({ id: flight.id, result });
    const { firings, gaveUp } = this.machine.answered(flight.id, result);
    this.firings.push(...firings);
    if (gaveUp !== undefined) this.gaveUp.push(gaveUp.key ?? gaveUp.what);
    this.check();
    this.pump();
  }

  /** An answer that came before, once more. */
  repeat(): void {
    for (const { id, result } of this.stale) {
      if (id === this.flight?.id) continue;
      assert.deepEqual(this.machine.answered(id, result), { firings: [], dropped: [] }, 'a stale answer (CU2)');
    }
  }

  restart(): void {
    const snapshot = JSON.parse(JSON.stringify(this.machine.snapshot(this.now())));
    this.machine = restoreTrigger(this.spec, snapshot, this.now()) as CustomMachine;
    this.flight = undefined;
    this.stale.length = 0;
    this.pump();
  }

  finish(): void {
    for (let i = 0; this.flight !== undefined; i++) {
      assert.ok(i < 10_000, 'it comes to an end (CU5)');
      this.answer(this.evaluate(this.flight));
    }
  }

  check(): void {
    const used = [...this.firings.flatMap(({ objects }) => objects), ...this.machine.heldKeys()];
    assert.equal(new Set(used).size, used.length, 'a key is held or in one firing (CU4)');
    assert.equal([...this.machine.heldKeys()].length, this.machine.held);
    const numbers = this.firings.map(({ index }) => Number(index.split(':')[0]));
    assert.deepEqual(numbers, [...numbers.keys()], 'numbered in order (CU3)');
  }
}

function play(bench: Bench, steps: readonly Step[]): void {
  let misses = 0;
  for (const step of steps) {
    const { flight } = bench;
    switch (step.type) {
      case 'object':
        bench.object(step.group);
        break;
      case 'again': {
        const arrival = bench.arrivals[step.which % Math.max(1, bench.arrivals.length)];
        // What has gone in bucket scope its owner does not deliver again.
        if (arrival === undefined || (bench.spec.scope === 'bucket' && !isHeld(bench, arrival.key))) break;
        bench.deliver(bench.objectOf(arrival.key));
        break;
      }
      case 'advance':
        bench.ms += step.ms;
        bench.pump();
        break;
      case 'answer':
      case 'answer-twice':
        misses = 0;
        if (flight !== undefined) bench.answer(bench.evaluate(flight));
        if (step.type === 'answer-twice') bench.repeat();
        break;
      case 'lose':
      case 'fail': {
        // Fewer in a row than give an event up.
        if (++misses >= EVALUATION_TRIES_MAX) break;
        const error = { code: 'E_FUNCTION_FAILED' as const, message: step.type };
        bench.answer({ failure: { error, blame: step.type === 'lose' ? 'lost' : 'event' } });
        break;
      }
      case 'restart':
        misses = 0;
        bench.restart();
        break;
    }
  }
  bench.finish();
}

function isHeld(bench: Bench, key: string): boolean {
  return [...bench.machine.heldKeys()].includes(key);
}

const group = fc.oneof({ weight: 12, arbitrary: fc.integer({ min: 1, max: 8 }).map(String) }, fc.constant('ignore'));
const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: group.map((one): Step => ({ type: 'object', group: one })) },
    { weight: 1, arbitrary: fc.nat(50).map((which): Step => ({ type: 'again', which })) },
    { weight: 2, arbitrary: fc.integer({ min: 0, max: 80 }).map((ms): Step => ({ type: 'advance', ms })) },
    { weight: 5, arbitrary: fc.constantFrom<Step>({ type: 'answer' }, { type: 'lose' }, { type: 'fail' }) },
    { weight: 1, arbitrary: fc.constantFrom<Step>({ type: 'answer-twice' }, { type: 'restart' }) },
  ),
  { maxLength: 60 },
);

for (const scope of ['session', 'bucket'] as const) {
  test(`${scope} scope: fires what the model says, whatever became of askings`, () => {
    fc.assert(
      fc.property(steps, (all) => {
        const bench = new Bench(scope);
        play(bench, all);
        const fired = bench.firings.map(({ objects }) => objects);
        assert.deepEqual(fired, model(bench.arrivals, bench.ms));
        assert.deepEqual(bench.gaveUp, []);
        bench.check();
      }),
      { numRuns: 500 },
    );
  });
}

test('bucket scope: what a class cannot bear is given up, and nothing else', () => {
  const poisoned = fc.array(
    fc.oneof({ weight: 5, arbitrary: group }, { weight: 1, arbitrary: fc.constant('poison') }),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(poisoned, (groups) => {
      const bench = new Bench('bucket');
      play(
        bench,
        groups.map((one) => ({ type: 'object', group: one })),
      );
      assert.deepEqual(
        bench.gaveUp,
        bench.arrivals.filter((one) => one.group === 'poison').map(({ key }) => key),
      );
      assert.deepEqual(
        bench.firings.map(({ objects }) => objects),
        model(bench.arrivals, bench.ms),
      );
    }),
  );
});

test('session scope: the first object that a class cannot bear ends its decisions', () => {
  const bench = new Bench('session');
  for (const one of ['5', '7', 'poison', '9', '9']) bench.object(one);
  bench.finish();
  assert.deepEqual(bench.gaveUp, ['o2']);
  assert.deepEqual(
    bench.firings.map(({ objects }) => objects),
    [['o0', 'o1']],
  );
  assert.equal(bench.machine.held, 3);
  assert.ok(!bench.machine.keepsOpen);
  assert.match(bench.machine.waitsFor() ?? '', /class Sum failed: class Sum: poison/);
});

test('losses that nobody is to blame for are borne longer, not for ever', () => {
  const bench = new Bench('bucket');
  bench.object('1');
  let asked = 0;
  const error = { code: 'E_NODE_LOST' as const, message: 'gone' };
  while (bench.gaveUp.length === 0) {
    asked++;
    bench.answer({ failure: { error, blame: 'lost' } });
  }
  assert.equal(asked, EVALUATION_LOSSES_MAX);
  assert.deepEqual(bench.gaveUp, ['s\u0000o0']);
});

test('of several events whose askings are lost, the first alone is given up', () => {
  const bench = new Bench('bucket');
  for (const one of ['1', '2', '3', '4']) bench.object(one);
  bench.answer(bench.evaluate(bench.flight as EvaluationPlan));
  assert.equal(bench.flight?.events.length, 3);
  const error = { code: 'E_NODE_LOST' as const, message: 'gone' };
  let asked = 0;
  while (bench.gaveUp.length === 0 && asked++ < 100) bench.answer({ failure: { error, blame: 'lost' } });
  assert.deepEqual(bench.gaveUp, ['s\u0000o1']);
  assert.equal(asked, EVALUATION_LOSSES_MAX);
  bench.finish();
  assert.equal(bench.machine.held, 3);
  bench.check();
});

test('a class that cannot be made stands still, and a restored machine asks again', () => {
  const bench = new Bench('bucket');
  bench.object('11');
  const error = { code: 'E_FUNCTION_FAILED' as const, message: 'no' };
  for (let i = 0; i < EVALUATION_TRIES_MAX; i++) bench.answer({ failure: { error, blame: 'setup' } });
  assert.deepEqual(bench.gaveUp, ['setup']);
  assert.equal(bench.flight, undefined);
  bench.restart();
  bench.finish();
  assert.deepEqual(
    bench.firings.map(({ objects }) => objects),
    [['s\u0000o0']],
  );
});

test('after a restart a firing goes without what was lost with the server', () => {
  const bench = new Bench('bucket');
  bench.object('4');
  bench.object('5');
  bench.finish();
  bench.restart();
  bench.machine.keepOnly((key) => key !== 's\u0000o0');
  bench.object('6');
  bench.finish();
  assert.deepEqual(
    bench.firings.map(({ objects }) => objects),
    [['s\u0000o1', 's\u0000o2']],
  );
});
