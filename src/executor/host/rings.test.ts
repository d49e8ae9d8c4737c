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
import { HOST_SLICE_MS } from './limits.ts';
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
        rings.readAll(random.int(2) === 0);
      }
      for (let i = 0; i < 1_000 && rings.anythingTold(); i++) rings.readAll(true);
      assert.equal(rings.anythingTold(), false, 'all was read');
      assert.equal(new Set(read).size, read.length);
    }),
    { numRuns: 400 },
  );
});

test('a slice ends while instances go on telling, and every ring has its turn', () => {
  const RINGS = 3;
  const memories = Array.from({ length: RINGS }, () => createEventRing());
  const writers = memories.map((memory) => new EventRingWriter(memory, () => assert.fail('the ring is large enough')));
  const all = memories.map((memory, slot) => ({
    slot,
    ready: true,
    reader: new EventRingReader(memory),
    readTo: 0,
    recordsRead: 0,
  }));
  const tell = (slot: number) =>
    writeStarted(writers[slot] as EventRingWriter, { sessionNo: SESSION, id: id(1), fence: 1 }, 0, 0);
  for (let slot = 0; slot < RINGS; slot++) for (let i = 0; i < 2_000; i++) tell(slot);
  let nowMs = 0;
  const read = [0, 0, 0];
  const rings = new Rings({ all: () => all.values(), bells: { isSleeping: () => true } } as unknown as Instances, {
    hasMore: () => false,
    isUnheardOf: () => false,
    now: () => nowMs,
    onRung: () => {},
    onRecord: ({ slot }: RunningInstance) => {
      nowMs += HOST_SLICE_MS / 50;
      read[slot] = (read[slot] as number) + 1;
      tell(slot); // without end
    },
  });
  for (let slice = 0; slice < 6; slice++) rings.readAll(true);
  for (const count of read) assert.ok(count >= 100 && count <= 300, `${read} records were read of the rings`);
});
