// Goal: further attempts are as many as they may be, further and further apart, and end in a failure that is told once.
// Method: the real session machine; each attempt is begun, and fails or misses its rule.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ErrorData, Prng } from '../../base/index.ts';
import { buildTables } from '../../bucket/index.ts';
import type { Manifest } from '../../protocol/index.ts';
import type { SessionEffect, SessionEvent } from './events.ts';
import { LOST_RETRIES_MAX, RERUN_ATTEMPTS_MAX } from './limits.ts';
import type { Invocation } from './session.ts';
import { SessionMachine } from './session-machine.ts';

const RETRIES = { max: 6, minMs: 10, maxMs: 100 };
const RULE_MS = 50;
const MANIFEST: Manifest = {
  entry: 'f',
  functions: { f: { kind: 'fn', options: { retries: RETRIES } }, g: { kind: 'fn' } },
  buckets: { b: { rerun: [{ source: 'g', expect: 'every-object', timeoutMs: RULE_MS }] } },
};
const FAILED: ErrorData = { code: 'E_FUNCTION_FAILED', message: 'no' };

class Run {
  readonly machine: SessionMachine;
  readonly told: (SessionEffect & { type: 'attempt-failed' })[] = [];
  nowMs = 0;
  ended = false;
  #queued: Invocation | undefined;

  constructor(name: 'f' | 'g', seed = 1) {
    this.machine = new SessionMachine({ random: new Prng(seed), sameContent: () => true });
    const tables = buildTables(MANIFEST);
    const entries = [{ function: tables.functionByName.get(name)?.index ?? -1, inputs: [] }];
    const what = { id: 's', run: 1, durable: false, priority: 0, deadlineMs: 0, objects: [], open: undefined };
    this.apply({ type: 'session-started', ...what, tables, entries });
  }

  apply(event: SessionEvent): void {
    for (const effect of this.machine.handle(event, { monotonicMs: this.nowMs, epochMs: 0 })) {
      if (effect.type === 'enqueue') this.#queued = effect.invocation;
      else if (effect.type === 'attempt-failed') this.told.push(effect);
      else if (effect.type === 'session-ended') this.ended = true;
    }
    this.machine.checkInvariants();
  }

  /** Waits for the next attempt and begins it. @returns how long it waited. */
  begin(): { invocation: Invocation; waitedMs: number } {
    const fromMs = this.nowMs;
    while (this.#queued === undefined) {
      const nextMs = this.machine.nextTimerMs();
      assert.ok(nextMs !== undefined, 'another attempt comes');
      this.nowMs = nextMs;
      this.apply({ type: 'time-passed' });
    }
    const invocation = this.#queued;
    this.#queued = undefined;
    const { session, id, fence } = invocation;
    const started = { slot: 0, instance: 'i', start: 'warm' as const, atMs: this.nowMs };
    this.apply({ type: 'attempt-started', sessionNo: session.no, id, fence, ...started });
    return { invocation, waitedMs: this.nowMs - fromMs };
  }

  end({ session, id, fence }: Invocation, error: ErrorData | undefined): void {
    this.apply({ type: 'attempt-ended', sessionNo: session.no, id, fence, atMs: this.nowMs, error, result: undefined });
  }
}

test('a function that throws is tried `max` times more, after pauses that double within their bounds and differ by seed', () => {
  const pauses = [1, 2].map((seed) => {
    const run = new Run('f', seed);
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 1 + RETRIES.max; attempt++) {
      const { invocation, waitedMs } = run.begin();
      if (attempt > 1) waits.push(waitedMs);
      run.end(invocation, FAILED);
    }
    assert.ok(run.ended, 'then it has failed');
    assert.deepEqual(
      run.told.map(({ final }) => final),
      [...new Array(RETRIES.max).fill(false), true],
    );
    return waits;
  });
  for (const waits of pauses) {
    for (const [n, waitedMs] of waits.entries()) {
      assert.ok(waitedMs >= RETRIES.minMs && waitedMs <= RETRIES.maxMs, `pause ${n + 1} of ${waitedMs} ms`);
      if (RETRIES.minMs * 2 ** n * 1.5 <= RETRIES.maxMs)
        assert.ok(waitedMs >= RETRIES.minMs * 2 ** n, `pause ${n + 1} grows`);
    }
  }
  assert.notDeepEqual(pauses[0], pauses[1]);
});

test('a TerminalError ends the attempts at once', () => {
  const run = new Run('f');
  run.end(run.begin().invocation, { ...FAILED, terminal: true });
  assert.ok(run.ended);
  assert.deepEqual(
    run.told.map(({ final }) => final),
    [true],
  );
});

test('an attempt whose instance is lost is tried again LOST_RETRIES_MAX times, whatever `retries` says', () => {
  const run = new Run('g');
  const lost: ErrorData = { code: 'E_NODE_LOST', message: 'gone' };
  for (let attempt = 0; attempt <= LOST_RETRIES_MAX; attempt++) {
    assert.equal(run.ended, false);
    run.apply({ type: 'attempt-lost', invocation: run.begin().invocation, why: 'lost', error: lost });
  }
  assert.ok(run.ended);
  assert.equal(run.told.at(-1)?.error.code, 'E_NODE_LOST');
});

test('a source that sends nothing is executed RERUN_ATTEMPTS_MAX times more, each from its own start, then given up', () => {
  const run = new Run('g');
  for (let attempt = 1; attempt <= 1 + RERUN_ATTEMPTS_MAX; attempt++) {
    const { invocation, waitedMs } = run.begin();
    if (attempt > 1) assert.ok(waitedMs > RULE_MS, `after ${waitedMs} ms: not before the rule is missed`);
    // It returns at once: the rule's time runs on from its start.
    run.end(invocation, undefined);
  }
  assert.ok(run.ended);
  assert.equal(run.told.length, 1 + RERUN_ATTEMPTS_MAX);
  assert.match(run.told.at(-1)?.error.message ?? '', /did not send what bucket b expects/);
});
