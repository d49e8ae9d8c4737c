// Goal: with `cancelLosers` the invocations that were not among the first k end at once, wherever they are, as no failure.
// Method: a session of four sources by hand; the firing comes while the others wait, are held, run, or pause.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Hash64, Prng } from '../../base/index.ts';
import { buildTables, objectFiringId, type StoredObject } from '../../bucket/index.ts';
import { CONTENT_JSON } from '../../protocol/index.ts';
import type { SessionEffect, SessionEvent } from './events.ts';
import type { Invocation } from './session.ts';
import { SessionMachine } from './session-machine.ts';

const TABLES = buildTables({
  entry: 'begin',
  functions: {
    begin: { kind: 'fn' },
    source: { kind: 'fn', options: { retries: 3 } },
    other: { kind: 'fn' },
    use: { kind: 'fn' },
  },
  buckets: {
    work: { on: { go: { kind: 'immediate', run: 'source' }, too: { kind: 'byName', match: 'o', run: 'other' } } },
    firsts: {
      on: { two: { kind: 'redundant', k: 2, n: 4, sources: ['source'], cancelLosers: true, run: 'use' } },
    },
    elsewhere: { on: { all: { kind: 'dynamicGroup', producers: ['source'], run: 'use' } } },
  },
});
const bucketOf = (name: string) => TABLES.bucketByName.get(name)?.index ?? -1;

class Hand {
  readonly machine = new SessionMachine({ random: new Prng(1), sameContent: () => true });
  effects: SessionEffect[] = [];

  constructor() {
    this.apply({
      type: 'session-started',
      id: 's',
      run: 1,
      durable: false,
      priority: 0,
      deadlineMs: 0,
      tables: TABLES,
      entries: [{ function: 0, inputs: [] }],
      objects: [],
      open: undefined,
    });
  }

  get session() {
    return this.machine.session('s');
  }

  /** @returns the effects of this event alone. */
  apply(event: SessionEvent): SessionEffect[] {
    const effects = this.machine.handle(event, { monotonicMs: 0, epochMs: 0 });
    this.machine.checkInvariants();
    this.effects.push(...effects);
    return effects;
  }

  start(invocation: Invocation, slot = 1): void {
    this.apply({ ...which(invocation), type: 'attempt-started', slot, instance: 'i', start: 'warm', atMs: 0 });
  }

  send(sender: Invocation, bucket: string, name: string, firings?: readonly { function: number; id: Hash64 }[]) {
    const object = objectOf(sender, bucketOf(bucket), name);
    return this.apply({
      ...which(sender),
      type: 'object-sent',
      slot: 1,
      atMs: 0,
      object,
      output: false,
      persist: false,
      firings: firings?.map((one) => ({ trigger: 0, ...one })),
    });
  }

  end(invocation: Invocation, failed = false): SessionEffect[] {
    const error = failed ? { code: 'E_FUNCTION_FAILED' as const, message: 'x' } : undefined;
    return this.apply({ ...which(invocation), type: 'attempt-ended', atMs: 0, error, result: undefined });
  }

  waiting(name: string): Invocation[] {
    const all = this.effects.flatMap((effect) => (effect.type === 'enqueue' ? [effect.invocation] : []));
    return all.filter((one) => one.row.name === name && one.place === 'queued');
  }

  /** The entry runs and has set off as many sources. */
  begin(count: number): { entry: Invocation; sources: Invocation[] } {
    const [entry] = this.waiting('begin') as [Invocation];
    this.start(entry);
    for (let i = 0; i < count; i++) this.send(entry, 'work', `w${i}`);
    return { entry, sources: this.waiting('source') };
  }
}

function which({ session, id, fence }: Invocation) {
  return { sessionNo: session.no, id, fence };
}

function objectOf(sender: Invocation, bucket: number, name: string): StoredObject {
  return {
    bucket,
    name,
    producer: sender.id,
    step: 0,
    group: '',
    session: undefined,
    contentType: CONTENT_JSON,
    content: '1',
  };
}

const types = (effects: readonly SessionEffect[]) => effects.map(({ type }) => type);

test('losers that run, wait or pause end at the firing; those that have sent, and others, go on', () => {
  const hand = new Hand();
  const { entry, sources } = hand.begin(5);
  const [first, second, runs, pauses, waits] = sources as [Invocation, Invocation, Invocation, Invocation, Invocation];
  hand.send(entry, 'work', 'other');
  const [other] = hand.waiting('other') as [Invocation];
  for (const one of [first, second, runs, pauses]) hand.start(one, 2);
  hand.end(pauses, true);
  assert.equal(pauses.place, 'backoff');
  hand.send(runs, 'elsewhere', 'kept');
  hand.send(first, 'firsts', 'a');
  const effects = hand.send(second, 'firsts', 'b');

  // `other` was set off by the name as well as a source: that one waited, too.
  assert.deepEqual(types(effects), ['enqueue', 'abort', 'withdraw', 'withdraw']);
  const abort = effects.find((effect) => effect.type === 'abort');
  assert.equal(abort?.invocation, runs);
  assert.equal(abort?.error.code, 'E_CANCELLED');
  for (const one of [runs, pauses, waits]) assert.equal(one.place, 'ended');
  for (const one of [first, second]) assert.equal(one.place, 'running');
  assert.equal(other.place, 'queued');
  assert.equal(runs.history[0]?.outcome, 'cancelled');

  // What a loser still says is dropped; nothing is tried again.
  assert.deepEqual(types(hand.send(runs, 'firsts', 'late')), ['discard']);
  assert.deepEqual(types(hand.end(runs, true)), []);
  for (const one of [entry, first, second]) hand.end(one);
  for (const one of [other, ...hand.waiting('use')]) {
    hand.start(one);
    hand.end(one);
  }
  // What the loser sent elsewhere before counts, and it was no failure.
  const [grouped] = hand.waiting('use') as [Invocation];
  assert.deepEqual(
    grouped.inputs.map(({ name }) => name),
    ['kept'],
  );
  hand.start(grouped);
  const last = hand.end(grouped);
  assert.deepEqual(types(last), ['session-ended', 'release']);
  assert.equal(last[0]?.type === 'session-ended' && last[0].state, 'completed');
  assert.equal(last[0]?.type === 'session-ended' && last[0].session.failures.length, 0);
});

test('a loser that an instance holds is taken from it; one that it makes later never begins', () => {
  const hand = new Hand();
  const { entry, sources } = hand.begin(2);
  const [first, second] = sources as [Invocation, Invocation];
  hand.start(first, 2);
  hand.start(second, 3);
  const made = (name: string) => {
    const id = objectFiringId(objectOf(entry, bucketOf('work'), name), 0, 0);
    return hand.send(entry, 'work', name, [{ function: 1, id }]);
  };
  made('x');
  hand.send(first, 'firsts', 'a');
  const fired = hand.send(second, 'firsts', 'b');
  const [withdrawn] = fired.filter((effect) => effect.type === 'withdraw');
  assert.equal(withdrawn?.slot, 1, 'it was held by the sender’s instance');
  assert.equal(withdrawn?.invocation.place, 'ended');
  // It was claimed a moment before.
  hand.start(withdrawn?.invocation as Invocation);
  assert.equal(withdrawn?.invocation.place, 'ended');
  assert.deepEqual(
    withdrawn?.invocation.history.map(({ outcome }) => outcome),
    ['cancelled'],
  );
  assert.equal(hand.effects.at(-1)?.type, 'abort');

  const later = made('y');
  assert.deepEqual(types(later), ['withdraw']);
  assert.equal(later[0]?.type === 'withdraw' && later[0].slot, 1);
  assert.deepEqual(types(hand.send(entry, 'work', 'z')), [], 'it was in no queue yet');
  assert.equal(hand.session?.live, 4, 'entry, the first two, and who gets what they sent');
});
