// Goal: however far the rings are ahead of each other, news of an invocation is read after whoever made it said so, and
// what nobody made is read all the same. Method: generated histories of instances that make and begin invocations, written
// into real rings; the host reads at any moment between.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Prng } from '../../base/index.ts';
import {
  createEventRing,
  type EventRecord,
  EventRingReader,
  EventRingWriter,
  writeSent,
  writeStarted,
} from '../shared/index.ts';
import type { Instances, RunningInstance } from './instances.ts';
import { Rings } from './rings.ts';

const SESSION = 1;
const id = (n: number) => ({ hi: 0, lo: n });

test('news waits for who made it, and lost news for nobody', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 2, max: 7 }), fc.integer({ min: 1, max: 120 }), (seed, count, steps) => {
      const random = new Prng(seed);
      const known = new Set<number>([0]);
      const lost = new Set<number>();
      const read: number[] = [];
      const writers: EventRingWriter[] = [];
      const all = Array.from({ length: count }, (_, slot) => {
        const memory = createEventRing();
        writers.push(new EventRingWriter(memory, () => assert.fail('the ring is large enough')));
        return { slot, ready: true, reader: new EventRingReader(memory), readTo: 0, recordsRead: 0 };
      });
      const instances = { all: () => all.values(), bells: { isSleeping: () => true } };
      let reads = 0;
      const rings = new Rings(instances as unknown as Instances, {
        hasMore: () => false,
        isUnheardOf: (record) => !known.has(record.id.lo),
        now: () => reads,
        onRung: () => {},
        onRecord: (_running: RunningInstance, record: EventRecord) => {
          // The instances go on while the host reads.
          reads++;
          if (random.int(3) === 0) step();
          if (record.type === 'started') {
            assert.ok(
              known.has(record.id.lo) !== lost.has(record.id.lo),
              `invocation ${record.id.lo} is known unless it is lost`,
            );
            read.push(record.id.lo);
          } else if (record.type === 'sent') {
            for (const firing of record.firings ?? []) known.add(firing.id.lo);
          }
        },
      });
      /** Made by somebody, told, and not begun yet. */
      const offered: number[] = [0];
      let made = 1;
      let left = steps;
      function step(): void {
        if (left-- <= 0) return;
        const slot = random.int(count);
        const writer = writers[slot] as EventRingWriter;
        const begun = offered.splice(random.int(offered.length), 1)[0];
        const isLost = begun === undefined || random.int(12) === 0;
        const number = isLost ? made++ : begun;
        if (isLost) {
          lost.add(number);
          if (begun !== undefined) offered.push(begun);
        }
        const speaker = { sessionNo: SESSION, id: id(number), fence: 1 };
        writeStarted(writer, speaker, 0, 0);
        for (let sends = random.int(4); sends > 0 && !isLost; sends--) {
          const firings = Array.from({ length: 1 + random.int(2) }, () => ({
            trigger: 0,
            function: 0,
            id: id(made++),
          }));
          const object = {
            bucket: 0,
            producer: id(number),
            step: 0,
            group: '',
            contentType: 'application/json',
            content: new Uint8Array(1),
          };
          writeSent(
            writer,
            speaker,
            object as Parameters<typeof writeSent>[2],
            { output: false, persist: false },
            0,
            firings,
          );
          for (const firing of firings) offered.push(firing.id.lo);
        }
      }
      while (left > 0) {
        for (let burst = random.int(20); burst >= 0; burst--) step();
        rings.readAll();
      }
      for (let i = 0; i < 1_000 && rings.anythingTold(); i++) rings.readAll();
      assert.equal(rings.anythingTold(), false, 'all was read');
      assert.equal(new Set(read).size, read.length);
    }),
    { numRuns: 400 },
  );
});
