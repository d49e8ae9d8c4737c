// Goal: what an instance told is read whole and in order, however writing and reading take turns. Method: random records
// in one thread; the reader drains whenever the writer finds the ring full.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { StoredObject } from '../../bucket/index.ts';
import { createEventRing, EventRingReader, EventRingWriter } from './event-ring.ts';
import {
  type EventRecord,
  readRecord,
  writeEnded,
  writeHandedOver,
  writeNote,
  writeSent,
  writeStarted,
} from './records.ts';

const speaker = fc.record(
  {
    sessionNo: fc.nat(0xffffffff),
    id: fc.record({ hi: fc.nat(0xffffffff), lo: fc.nat(0xffffffff) }, { noNullPrototype: true }),
    fence: fc.nat(1000),
  },
  { noNullPrototype: true },
);

const object: fc.Arbitrary<StoredObject> = fc.record(
  {
    bucket: fc.nat(1000),
    name: fc.option(fc.string({ unit: 'grapheme', maxLength: 30 }), { nil: undefined }),
    producer: fc.record({ hi: fc.nat(0xffffffff), lo: fc.nat(0xffffffff) }, { noNullPrototype: true }),
    step: fc.nat(100_000),
    group: fc.string({ maxLength: 10 }),
    session: fc.option(fc.string({ minLength: 1, maxLength: 40 }), { nil: undefined }),
    contentType: fc.constantFrom('application/json', 'application/octet-stream', 'text/plain'),
    content: fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 200 }),
      fc.uint8Array({ maxLength: 200 }),
      fc.constant(new Uint8Array(16_000).fill(3)),
      fc.record({ segment: fc.nat(15), offset: fc.nat(2 ** 40), size: fc.nat(2 ** 40) }, { noNullPrototype: true }),
    ),
    alias: fc.boolean(),
    isSeen: fc.boolean(),
    checksum: fc.nat(0xffffffff),
  },
  { noNullPrototype: true },
);

type Written = { readonly write: (ring: EventRingWriter) => void; readonly expect: (record: EventRecord) => void };

function plain(value: StoredObject): unknown {
  const { content } = value;
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return {
    ...value,
    content: bytes instanceof Uint8Array ? Buffer.from(bytes).toString('hex') : bytes,
    // Only places have owners.
    alias: bytes instanceof Uint8Array ? false : value.alias,
    isSeen: bytes instanceof Uint8Array || value.alias === true ? false : value.isSeen,
  };
}

const written: fc.Arbitrary<Written> = fc.oneof(
  speaker.map(
    (s): Written => ({
      write: (ring) => writeStarted(ring, s, 2, 1.5),
      expect: (record) => assert.deepEqual(record, { type: 'started', ...s, start: 'takeover', atMs: 1.5 }),
    }),
  ),
  fc.tuple(speaker, object, fc.boolean(), fc.boolean()).map(
    ([s, sent, output, evaluated]): Written => ({
      write: (ring) =>
        writeSent(
          ring,
          s,
          sent,
          { output, persist: !output },
          7,
          evaluated ? [{ trigger: 3, function: 9, id: s.id }] : undefined,
        ),
      expect: (record) => {
        assert.ok(record.type === 'sent');
        assert.deepEqual(plain(record.object), plain(sent));
        assert.deepEqual(record.firings, evaluated ? [{ trigger: 3, function: 9, id: s.id }] : undefined);
        assert.deepEqual([record.output, record.persist, record.atMs], [output, !output, 7]);
      },
    }),
  ),
  fc
    .tuple(speaker, fc.option(fc.string({ maxLength: 50 }), { nil: undefined }), fc.option(object, { nil: undefined }))
    .map(
      ([s, error, result]): Written => ({
        write: (ring) => writeEnded(ring, s, 2, error, result, false),
        expect: (record) => {
          assert.ok(record.type === 'ended');
          assert.equal(record.error, error);
          assert.deepEqual(record.result && plain(record.result), result && plain(result));
        },
      }),
    ),
  speaker.map(
    (s): Written => ({
      write: (ring) => writeNote(ring, s, { kind: 'join', bucket: 4, names: ['ä', 'b'] }),
      expect: (record) =>
        assert.deepEqual(record, { type: 'note', ...s, note: { kind: 'join', bucket: 4, names: ['ä', 'b'] } }),
    }),
  ),
  speaker.map(
    (s): Written => ({
      write: (ring) => writeHandedOver(ring, s),
      expect: (record) => assert.deepEqual(record, { type: 'handed-over', ...s }),
    }),
  ),
);

test('records come out as they went in, in order, across many turns of the ring', () => {
  fc.assert(
    fc.property(
      fc.array(written, { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 1, max: 40 }),
      (records, repeat) => {
        const memory = createEventRing();
        const reader = new EventRingReader(memory);
        const expected: Written[] = [];
        const drain = () => {
          for (let bytes = reader.peek(); bytes !== undefined; bytes = reader.peek()) {
            const record = readRecord(bytes);
            reader.advance();
            expected.shift()?.expect(record);
          }
        };
        const writer = new EventRingWriter(memory, drain);
        for (let i = 0; i < repeat; i++) {
          for (const one of records) {
            one.write(writer);
            expected.push(one);
          }
        }
        drain();
        assert.equal(expected.length, 0, 'all were read');
      },
    ),
    { numRuns: 60 },
  );
});
