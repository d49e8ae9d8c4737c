// Goal: HL1 to HL3 for any order of events, and the moves that a reader of the drawing expects.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ErrorData, MonotonicMs } from '../base/index.ts';
import { backOffMs, HostLife, type HostLifeEffect, type HostLifeEvent } from './host-life.ts';
import { BACK_OFF_MS_MAX, HEALTHY_MS, START_MS_MAX } from './limits.ts';

const EXIT: ErrorData = { code: 'E_NODE_LOST', message: 'ended' };
const LOAD: ErrorData = { code: 'E_FUNCTION_FAILED', message: 'thrown at load' };

/** A host life with the process and the timer that it asked for. */
class Bench {
  readonly life = new HostLife(() => 0);
  nowMs = 0;
  alive = false;
  timerMs: number | undefined;
  readyTold = false;
  readonly story: string[] = [];
  readonly lost: { phase: string; planned: boolean; error: ErrorData }[] = [];

  feed(event: HostLifeEvent): void {
    for (const effect of this.life.handle(event, this.nowMs as MonotonicMs)) this.#note(effect);
  }

  #note(effect: HostLifeEffect): void {
    this.story.push(effect.type);
    switch (effect.type) {
      case 'spawn':
        assert.equal(this.alive, false, 'one process at a time (HL1)');
        assert.equal(this.readyTold, false, 'the one before was told lost (HL2)');
        this.alive = true;
        return;
      case 'set-timer':
        this.timerMs = effect.atMs;
        return;
      case 'tell-ready':
        assert.equal(this.readyTold, false, '(HL2)');
        this.readyTold = true;
        return;
      case 'tell-lost':
        assert.equal(effect.phase === 'ready', this.readyTold, 'lost when ready or starting, as it was');
        this.readyTold = false;
        this.lost.push(effect);
        return;
      case 'kill':
      case 'send-drain':
        return;
    }
  }

  die(): void {
    this.alive = false;
    this.feed({ type: 'exited', error: EXIT });
  }

  timer(): void {
    this.nowMs = Math.max(this.nowMs, this.timerMs ?? this.nowMs);
    this.timerMs = undefined;
    this.feed({ type: 'timer-fired' });
  }
}

test('one process at a time, each ready followed by one lost, for any order of events', () => {
  const events = fc.constantFrom('needed', 'ready', 'load-failed', 'exit', 'disconnected', 'unused', 'timer', 'stop');
  fc.assert(
    fc.property(fc.array(events, { maxLength: 100 }), (order) => {
      const bench = new Bench();
      for (const one of order) {
        bench.nowMs += 7;
        if (one === 'exit') {
          if (bench.alive) bench.die();
        } else if (one === 'timer') {
          if (bench.timerMs !== undefined) bench.timer();
        } else if (one === 'load-failed') {
          if (bench.alive) bench.feed({ type: 'load-failed', error: LOAD });
        } else if (one === 'ready' || one === 'disconnected') {
          if (bench.alive) bench.feed({ type: one });
        } else {
          bench.feed({ type: one as 'needed' | 'unused' | 'stop' });
        }
      }
      bench.feed({ type: 'stop' });
      if (bench.alive) bench.die();
      assert.equal(bench.life.state, 'stopped');
      assert.equal(bench.timerMs, undefined, 'no timer is left');
    }),
    { numRuns: 500 },
  );
});

test('deaths in a row wait longer each time, up to the cap; a healthy run begins anew', () => {
  const bench = new Bench();
  const pauses: number[] = [];
  for (let i = 0; i < 12; i++) {
    bench.feed({ type: 'needed' });
    bench.feed({ type: 'ready' });
    bench.die();
    bench.feed({ type: 'needed' });
    pauses.push((bench.timerMs ?? 0) - bench.nowMs);
    bench.timer();
  }
  assert.deepEqual(pauses.slice(0, 4), [100, 200, 400, 800]);
  assert.equal(pauses.at(-1), BACK_OFF_MS_MAX);
  bench.feed({ type: 'ready' });
  bench.nowMs += HEALTHY_MS;
  bench.die();
  assert.equal(bench.timerMs, bench.nowMs, 'at once');
  assert.equal(backOffMs(1_000), BACK_OFF_MS_MAX);
});

test('a bundle that throws at load is told with its error, and its process is ended', () => {
  const bench = new Bench();
  bench.feed({ type: 'needed' });
  bench.feed({ type: 'load-failed', error: LOAD });
  assert.equal(bench.story.at(-1), 'kill');
  bench.die();
  assert.deepEqual(
    bench.lost.map(({ phase, error }) => [phase, error.message]),
    [['starting', 'thrown at load']],
  );
});

test('a host that is not ready in time is killed', () => {
  const bench = new Bench();
  bench.feed({ type: 'needed' });
  assert.equal(bench.timerMs, START_MS_MAX);
  bench.timer();
  assert.equal(bench.story.at(-1), 'kill');
  bench.feed({ type: 'ready' });
  assert.equal(bench.life.state, 'starting', 'too late');
  bench.die();
  assert.match(bench.lost[0]?.error.message ?? '', /not ready within/);
});

test('what nothing uses drains and stops; needed meanwhile it starts again', () => {
  const bench = new Bench();
  bench.feed({ type: 'needed' });
  bench.feed({ type: 'ready' });
  bench.feed({ type: 'unused' });
  assert.equal(bench.life.state, 'draining');
  bench.feed({ type: 'needed' });
  bench.die();
  assert.equal(bench.life.state, 'starting');
  bench.feed({ type: 'ready' });
  bench.feed({ type: 'unused' });
  bench.die();
  assert.equal(bench.life.state, 'stopped');
  assert.deepEqual(
    bench.lost.map(({ planned }) => planned),
    [true, true],
    'nobody is warned of it',
  );
});
