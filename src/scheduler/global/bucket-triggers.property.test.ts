// Goal: firings of bucket scope are those of a reference model, whatever is delivered twice (BT1 to BT4).
// Method: sessions send objects, are executed again (and send all of them anew), end; versions change; the model is a
// list per trigger that is cut into batches.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { BucketSpec } from '../../protocol/index.ts';
import { BucketTriggers, type BucketTriggersEffect } from './bucket-triggers.ts';
import { HELD_BYTES_MAX } from './limits.ts';
import type { StoredObject } from './session.ts';

const now = (ms: number) => ({ monotonicMs: ms, epochMs: 1_700_000_000_000 + ms });

function objectOf(session: string, name: string, size = 1): StoredObject {
  const header = { bucket: 'b', name, group: '', session, contentType: 'application/json', size };
  return { header, bytes: new Uint8Array(size) };
}

function batches(size: number, extra: Record<string, BucketSpec['on']> = {}): Record<string, BucketSpec> {
  return { b: { on: { t: { kind: 'byBatchSize', size, run: 'f' }, ...extra.b } } };
}

function firings(effects: readonly BucketTriggersEffect[]): string[][] {
  const found: string[][] = [];
  for (const effect of effects) {
    if (effect.type !== 'fire') continue;
    found.push(effect.objects.map(({ object }) => `${object.header.session}/${object.header.name}`));
  }
  return found;
}

const command = fc.oneof(
  { weight: 6, arbitrary: fc.record({ type: fc.constant('send' as const), session: fc.nat(5), name: fc.nat(9) }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('again' as const), session: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('end' as const), session: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('redeploy' as const) }) },
);

test('byBatchSize fires each distinct object once, in arrival order, over redeploys and repeated executions', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.array(command, { maxLength: 150 }), (size, commands) => {
      const triggers = new BucketTriggers();
      const effects: BucketTriggersEffect[] = [];
      let version = 0;
      triggers.configure('a', 'v0', batches(size), now(0), effects);
      const ended = new Set<number>();
      const sent = new Map<number, string[]>();
      const model: string[] = [];
      const take = (session: number, name: string) => {
        const id = `s${session}`;
        const { type } = triggers.take(
          { app: 'a', version: 'v0', object: objectOf(id, name), durable: false },
          now(0),
          effects,
        );
        const names = sent.get(session) ?? [];
        sent.set(session, names);
        assert.equal(type, names.includes(name) ? 'duplicate' : 'taken');
        if (!names.includes(name)) {
          names.push(name);
          model.push(`${id}/${name}`);
        }
      };
      for (const one of commands) {
        if (one.type === 'redeploy') {
          triggers.configure('a', `v${++version}`, batches(size), now(0), effects);
        } else if (one.type === 'end') {
          ended.add(one.session);
          triggers.sessionEnded('a', `s${one.session}`);
        } else if (!ended.has(one.session)) {
          if (one.type === 'send') take(one.session, `o${one.name}`);
          else for (const name of [...(sent.get(one.session) ?? [])]) take(one.session, name);
        }
        triggers.checkInvariants();
      }
      const expected: string[][] = [];
      for (let at = 0; at + size <= model.length; at += size) expected.push(model.slice(at, at + size));
      assert.deepEqual(firings(effects), expected);
      assert.equal(triggers.heldOf('a').objects, model.length % size);
    }),
    { numRuns: 300 },
  );
});

test('a restart rebuilds what was held, and an object that was taken stays taken', () => {
  const triggers = new BucketTriggers();
  const effects: BucketTriggersEffect[] = [];
  triggers.configure('a', 'v1', batches(3), now(0), effects);
  const spec = { kind: 'byBatchSize', size: 3, run: 'f' } as const;
  const placement = { app: 'a', version: 'v0', bucket: 'b', trigger: 't', spec, draining: false };
  triggers.restoreTaken('a', 's', 'b', 'gone');
  triggers.restoreTaken('a', 's', 'b', 'held');
  const object = objectOf('s', 'held');
  triggers.restoreHeld(placement, { key: 's\u0000held', seq: 7, object, durable: true }, now(0), effects);
  const take = (name: string) =>
    triggers.take({ app: 'a', version: 'v1', object: objectOf('s', name), durable: true }, now(0), effects).type;
  assert.equal(take('gone'), 'duplicate');
  assert.equal(take('held'), 'duplicate');
  assert.equal(take('new'), 'taken');
  assert.equal(take('last'), 'taken');
  assert.deepEqual(firings(effects), [['s/held', 's/new', 's/last']]);
  triggers.checkInvariants();
});

test('a trigger that the new version lacks drains under the old one, and fires its rest when nothing can fill it', () => {
  const triggers = new BucketTriggers();
  const effects: BucketTriggersEffect[] = [];
  triggers.configure('a', 'v1', batches(3), now(0), effects);
  triggers.take({ app: 'a', version: 'v1', object: objectOf('s', 'one'), durable: false }, now(0), effects);
  triggers.configure('a', 'v2', { b: { on: { other: { kind: 'byBatchSize', size: 2, run: 'g' } } } }, now(0), effects);
  assert.ok(triggers.usesVersion('a', 'v1'));
  triggers.take({ app: 'a', version: 'v1', object: objectOf('s', 'two'), durable: false }, now(0), effects);
  triggers.take({ app: 'a', version: 'v2', object: objectOf('n', 'three'), durable: false }, now(0), effects);
  triggers.checkInvariants();
  triggers.versionUnused('a', 'v1', now(0), effects);
  const fired = effects.filter((effect) => effect.type === 'fire');
  assert.deepEqual(firings(effects), [
    ['s/two', 'n/three'],
    ['s/one', 's/two'],
  ]);
  assert.deepEqual(
    fired.map(({ placement }) => placement.version),
    ['v2', 'v1'],
  );
  assert.equal(triggers.usesVersion('a', 'v1'), false);
  triggers.checkInvariants();
});

test('a byTime fires by its timer, also after a redeploy', () => {
  const triggers = new BucketTriggers();
  const effects: BucketTriggersEffect[] = [];
  const buckets = { b: { on: { w: { kind: 'byTime', windowMs: 1_000, run: 'f' } as const } } };
  triggers.configure('a', 'v1', buckets, now(0), effects);
  triggers.take({ app: 'a', version: 'v1', object: objectOf('s', 'x'), durable: false }, now(10), effects);
  triggers.configure('a', 'v2', buckets, now(20), effects);
  const armed = new Map<unknown, number>();
  for (const effect of effects) {
    if (effect.type !== 'set-timer') continue;
    if (effect.atMs === undefined) armed.delete(effect.placement);
    else armed.set(effect.placement, effect.atMs);
  }
  assert.equal(armed.size, 1, 'one timer, of the placement that is current');
  const [[placement, atMs] = [undefined, 0]] = armed;
  triggers.timerFired(placement as never, now(atMs), effects);
  assert.deepEqual(firings(effects), [['s/x']]);
});

test('above the limit of bytes the sender is told, and nothing is taken', () => {
  const triggers = new BucketTriggers();
  const effects: BucketTriggersEffect[] = [];
  triggers.configure('a', 'v1', batches(10), now(0), effects);
  const object = objectOf('s', 'x');
  const huge = { ...object, bytes: { length: HELD_BYTES_MAX + 1 } as Uint8Array };
  const result = triggers.take({ app: 'a', version: 'v1', object: huge, durable: false }, now(0), effects);
  assert.equal(result.type === 'refused' && result.error.code, 'E_QUOTA_EXCEEDED');
  assert.equal(triggers.heldOf('a').objects, 0);
  assert.equal(triggers.take({ app: 'a', version: 'v1', object, durable: false }, now(0), effects).type, 'taken');
});

test('the first close of any session fires the groups, and what any session sends later is refused', () => {
  const triggers = new BucketTriggers();
  const effects: BucketTriggersEffect[] = [];
  const on = {
    g: { kind: 'dynamicGroup', scope: 'bucket', run: 'f' },
    two: { kind: 'byBatchSize', size: 2, run: 'f' },
  } as const;
  triggers.configure('a', 'v1', { b: { on } }, now(0), effects);
  const take = (session: string, name: string) =>
    triggers.take({ app: 'a', version: 'v1', object: objectOf(session, name), durable: false }, now(0), effects);
  assert.equal(take('s', 'x').type, 'taken');
  triggers.close('a', 'b', 'v1', now(0), effects);
  assert.deepEqual(firings(effects), [['s/x']]);
  const late = take('t', 'y');
  assert.equal(late.type === 'refused' && late.error.code, 'E_SESSION_ENDED');
  assert.equal(take('s', 'x').type, 'duplicate', 'a repeat of what came before is none');
  triggers.close('a', 'b', 'v1', now(0), effects);
  assert.deepEqual(firings(effects), [['s/x']]);
  assert.equal(triggers.heldOf('a').objects, 1, 'nothing of a refused object is held by another trigger');
  triggers.checkInvariants();
});
