// No test of its own: a test file only so that it is neither shipped nor held to the imports of the folder.
//
// What the tests of this folder share: builders, and a driver that feeds events into a machine and checks after each
// one what holds for every kind (T2, T3, T5 of machine.ts).

import assert from 'node:assert/strict';
import {
  createTrigger,
  type Firing,
  type Now,
  restoreTrigger,
  scopeOf,
  type TriggerMachine,
  type TriggerObject,
  type TriggerSpec,
} from './index.ts';

export const EPOCH_MS = Date.UTC(2026, 0, 1);

export function at(ms: number): Now {
  return { monotonicMs: 5_000 + ms, epochMs: EPOCH_MS + ms };
}

/** Session scope: the key is the name. */
export function object(name: string, group = ''): TriggerObject {
  return { key: name, name, group, session: 's' };
}

/** Bucket scope. */
export function objectOf(session: string, name: string, group = ''): TriggerObject {
  return { key: `${session}\u0000${name}`, name, group, session };
}

/** Keys of the firings, session-scoped. */
export function fired(firings: readonly Firing[]): (readonly string[])[] {
  return firings.map((firing) => firing.objects);
}

export type Event =
  | { readonly type: 'object'; readonly object: TriggerObject }
  | { readonly type: 'advance'; readonly ms: number }
  /** The runtime serves the timer if it is due. */
  | { readonly type: 'timer' }
  /** Snapshot, through JSON, and restore. */
  | { readonly type: 'restart' }
  | { readonly type: 'join'; readonly names?: readonly string[]; readonly count?: number }
  | { readonly type: 'producer-ended'; readonly name: string; readonly outcome: 'ok' | 'failed' }
  | { readonly type: 'quiet' }
  | { readonly type: 'close' };

export interface Run {
  readonly machine: TriggerMachine;
  readonly firings: Firing[];
  /** First deliveries with their time, in order: what reference models are made of. */
  readonly arrivals: readonly { readonly ms: number; readonly object: TriggerObject }[];
  readonly endMs: number;
}

/** Applies the events from time 0 on, and serves timers once more at the end. */
export function drive(spec: TriggerSpec, events: readonly Event[]): Run {
  let machine = createTrigger(spec, at(0));
  let ms = 0;
  const firings: Firing[] = [];
  const arrivals: { ms: number; object: TriggerObject }[] = [];
  const delivered = new Set<string>();
  const apply = (event: Event): Firing[] => {
    switch (event.type) {
      case 'object':
        if (!delivered.has(event.object.key)) arrivals.push({ ms, object: event.object });
        delivered.add(event.object.key);
        return machine.onObject(event.object, at(ms));
      case 'advance':
        ms += event.ms;
        return [];
      case 'timer':
        return machine.onTimer(at(ms));
      case 'restart':
        machine = restoreTrigger(spec, JSON.parse(JSON.stringify(machine.snapshot(at(ms)))), at(ms));
        return [];
      case 'join':
        return machine.onJoin(event, 'joiner', at(ms));
      case 'producer-ended':
        machine.onProducerEnded(event.name, event.outcome);
        return [];
      case 'quiet':
        return machine.onQuiet(at(ms));
      case 'close':
        return machine.onClose(at(ms));
    }
  };
  for (const event of [...events, { type: 'timer' } as const]) {
    firings.push(...apply(event));
    checkAlways(machine, firings);
  }
  return { machine, firings, arrivals, endMs: ms };
}

function checkAlways(machine: TriggerMachine, firings: readonly Firing[]): void {
  const indices = firings.map((firing) => firing.index);
  assert.equal(new Set(indices).size, indices.length, 'every firing has an index of its own');
  const used = [...firings.flatMap((firing) => firing.objects), ...machine.heldKeys()];
  assert.equal(new Set(used).size, used.length, 'a key is held or in one firing, not both, not twice');
  assert.equal([...machine.heldKeys()].length, machine.held, 'held counts the held keys');
  if (machine.held === 0 && scopeOf(machine.spec) === 'session') {
    assert.equal(machine.nextTimerMs(), undefined, 'a session that holds nothing waits for no timer');
  }
}
