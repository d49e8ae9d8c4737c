// Goal: a large answer comes whole to a client that reads it however slowly, and is cut off for one that takes nothing.
// Method: a response in the test's hands, and a watch that ticks when it is told to.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { test } from 'node:test';
import type { CancelTimer } from '../platform/index.ts';
import { ANSWER_SLICE_BYTES } from './limits.ts';
import { SlowAnswer } from './slow-answer.ts';
import { type Time, Watch } from './watch.ts';

const TICK_MS = 10;
const STALL_MS = 3 * TICK_MS;

class Client extends EventEmitter {
  readonly parts: Buffer[] = [];
  ended = false;
  destroyed = false;

  write(part: Buffer): boolean {
    this.parts.push(part);
    return false;
  }

  end(part: Buffer): void {
    this.parts.push(part);
    this.ended = true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

function answer(bytes: Buffer) {
  let callback: (() => void) | undefined;
  const cancel: CancelTimer = () => {
    callback = undefined;
  };
  const time = {
    clock: { monotonicMs: () => 0, epochMs: () => 0 },
    timers: {
      set: (_atMs: number, then: () => void) => {
        callback = then;
        return cancel;
      },
    },
  } as unknown as Time;
  const client = new Client();
  const watch = new Watch(time, TICK_MS);
  new SlowAnswer(client as unknown as ServerResponse, bytes, watch, STALL_MS);
  return { client, tick: () => callback?.(), isWatched: () => callback !== undefined };
}

const BYTES = Buffer.alloc(2 * ANSWER_SLICE_BYTES + 100, 7);

test('a client that takes a slice now and then gets all of it', () => {
  const { client, tick, isWatched } = answer(BYTES);
  for (let slice = 0; slice < 2; slice++) {
    for (let i = 0; i < 3; i++) tick();
    client.emit('drain');
  }
  assert.ok(client.ended);
  client.emit('close');
  tick();
  tick();
  assert.equal(isWatched(), false, 'nothing is watched any more');
  assert.equal(client.destroyed, false);
  assert.ok(Buffer.concat(client.parts).equals(BYTES));
});

test('one that takes nothing is cut off, at the last slice too', () => {
  for (const slices of [0, 2]) {
    const { client, tick } = answer(BYTES);
    for (let i = 0; i < slices; i++) client.emit('drain');
    for (let i = 0; i < 3; i++) tick();
    assert.equal(client.destroyed, false);
    tick();
    assert.equal(client.destroyed, true);
  }
});
