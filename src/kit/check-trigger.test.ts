// Goal: the kit passes a class that keeps the rules and finds each way of breaking one, with a small story and a seed that
// replays it. Method: one right class, and one fault planted at a time.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CustomReaction, CustomTrigger, TriggerObject } from '../sdk/index.ts';
import { checkTrigger, type ExpectedFiring, type TriggerCheck, type TriggerStory } from './index.ts';

interface Options {
  readonly above: number;
  readonly waitMs: number;
}

/** Fires what has come when its sum is above the threshold, or `waitMs` after the first of it. */
class Sum implements CustomTrigger {
  protected sum = 0;
  readonly above: number;
  readonly waitMs: number;

  constructor({ above, waitMs }: Options) {
    this.above = above;
    this.waitMs = waitMs;
  }

  onObject(object: TriggerObject<{ n: number }>, nowMs: number): CustomReaction | undefined {
    const first = this.sum === 0;
    this.sum += object.json().n;
    if (this.sum > this.above) return this.fire();
    return first ? { timerAtMs: nowMs + this.waitMs } : undefined;
  }

  onTimer(): CustomReaction {
    return this.fire();
  }

  protected fire(): CustomReaction {
    this.sum = 0;
    return { fire: [{}], timerAtMs: null };
  }

  snapshot(): unknown {
    return { sum: this.sum };
  }

  restore({ sum }: { sum: number }): void {
    this.sum = sum;
  }
}

function reference({ events, endMs }: TriggerStory<{ n: number }>, { above, waitMs }: Options): ExpectedFiring[] {
  const firings: ExpectedFiring[] = [];
  let held: { id: string; n: number; atMs: number }[] = [];
  const fire = () => {
    firings.push({ objects: held.map(({ id }) => id) });
    held = [];
  };
  for (const event of events) {
    if (event.type !== 'object') continue;
    if (held[0] !== undefined && held[0].atMs + waitMs <= event.atMs) fire();
    held.push({ id: event.object.id, n: event.object.value.n, atMs: event.atMs });
    if (held.reduce((sum, { n }) => sum + n, 0) > above) fire();
  }
  if (held[0] !== undefined && held[0].atMs + waitMs <= endMs) fire();
  return firings;
}

const CHECK: TriggerCheck<Options, { n: number }> = {
  options: { above: 12, waitMs: 100 },
  object: (random) => ({ value: { n: random.int(1, 9) } }),
  reference,
};

for (const scope of ['session', 'bucket'] as const) {
  test(`a class that keeps the rules passes (${scope} scope)`, () => checkTrigger(Sum, { ...CHECK, scope }));
}

test('sources are told, and a class that counts them passes', () => {
  class Starts implements CustomTrigger {
    #started = 0;
    onObject(): CustomReaction | undefined {
      return undefined;
    }
    onSourceStarted(source: { readonly function: string }): CustomReaction | undefined {
      if (source.function === 'b' || ++this.#started % 3 !== 0) return undefined;
      return { fire: [{ run: 'left', group: 'third' }] };
    }
    snapshot(): unknown {
      return this.#started;
    }
    restore(started: number): void {
      this.#started = started;
    }
  }
  const starts: TriggerCheck = { sources: ['a', 'b'], run: ['left', 'right'] };
  checkTrigger(Starts, {
    ...starts,
    reference: ({ events }) => {
      const firings: ExpectedFiring[] = [];
      let held: string[] = [];
      let started = 0;
      for (const event of events) {
        if (event.type === 'object') held.push(event.object.id);
        else if (event.source.function === 'a' && ++started % 3 === 0) {
          firings.push({ objects: held, run: ['left'], group: 'third' });
          held = [];
        }
      }
      return firings;
    },
  });
});

class Forgets extends Sum {
  override restore(): void {}
}
class Drifts extends Sum {
  static calls = 0;
  override onObject(object: TriggerObject<{ n: number }>, nowMs: number): CustomReaction | undefined {
    return Drifts.calls++ % 7 === 6 ? { fire: [{}] } : super.onObject(object, nowMs);
  }
}
class Late extends Sum {
  override onObject(object: TriggerObject<{ n: number }>, nowMs: number): CustomReaction | undefined {
    const reaction = super.onObject(object, nowMs);
    return typeof reaction?.timerAtMs === 'number' ? { timerAtMs: reaction.timerAtMs + 1 } : reaction;
  }
}
class Equal extends Sum {
  protected override fire(): CustomReaction {
    return this.sum === 13 ? {} : super.fire();
  }
}
class Twice extends Sum {
  override onObject(object: TriggerObject): CustomReaction {
    return { fire: [{ objects: [object, object.id] }] };
  }
}
class Invents extends Sum {
  override onObject(): CustomReaction {
    return { fire: [{ objects: ['nobody'] }] };
  }
}
class Throws extends Sum {
  override onObject(object: TriggerObject<{ n: number }>, nowMs: number): CustomReaction | undefined {
    if (object.json().n === 7) throw new RangeError('seven');
    return super.onObject(object, nowMs);
  }
}
class Unplain extends Sum {
  override snapshot(): unknown {
    return { sum: this.sum, seen: new Set() };
  }
}
class Waits extends Sum {
  override onTimer = undefined as never;
}

describe('finds a class that', () => {
  for (const [what, Class, message, events] of [
    ['forgets its state', Forgets, /it decides differently when it is asked about several events|restored from/, 9],
    ['keeps state outside', Drifts, /asked twice about the same it decides differently/, 9],
    ['sets its timer too late', Late, /fires otherwise than the reference/, 2],
    ['misses a sum', Equal, /fires otherwise than the reference/, 4],
    ['fires an object twice', Twice, /class Twice: fires object o\d+, which it does not hold/, 1],
    ['fires what never came', Invents, /fires object nobody, which it does not hold/, 1],
    ['throws', Throws, /class Throws: seven/, 1],
    ['gives a snapshot that JSON cannot hold', Unplain, /snapshot\(\)\.seen is a Set/, 1],
    ['sets a timer and has no method for it', Waits, /has no onTimer/, 1],
  ] as const) {
    test(what, () => {
      const told = messageOf(() => checkTrigger(Class, CHECK));
      assert.match(told, message);
      const [, shown, of, seed] = /after these events \((\d+) of the (\d+) of seed (\d+)\)/.exec(told) ?? [];
      assert.ok(Number(shown) <= events, `small: ${told}`);
      assert.ok(Number(of) >= Number(shown));
      const again = messageOf(() => checkTrigger(Class, { ...CHECK, seeds: [Number(seed)] }));
      if (Class !== Drifts) assert.equal(again, told, 'the seed replays it');
    });
  }
});

test('an error of the class is shown with the place where it threw', () => {
  assert.match(
    messageOf(() => checkTrigger(Throws, CHECK)),
    /RangeError: seven\n {4}at Throws\.onObject \(.*check-trigger\.test/,
  );
});

test('options that a trigger cannot have are refused', () => {
  assert.throws(() => checkTrigger(class {} as never), /the first argument has no method onObject/);
  assert.throws(() => checkTrigger(Sum, { ...CHECK, sources: ['a'] }), /has no method onSourceStarted/);
  assert.throws(() => checkTrigger(Sum, { ...CHECK, scope: 'app' as never }), /scope must be 'session' or 'bucket'/);
});

function messageOf(act: () => void): string {
  try {
    act();
  } catch (error) {
    return (error as Error).message;
  }
  return assert.fail('the fault is found');
}
