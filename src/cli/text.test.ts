import assert from 'node:assert/strict';
import { test } from 'node:test';
import { manifestDifferences } from './manifest-text.ts';
import { bytes, duration, isoMs, paintFor, printable, shorten, table } from './text.ts';
import { traceText } from './trace-text.ts';

const plain = paintFor(false);

test('durations and sizes keep the digits that matter', () => {
  const durations = [0, 0.44, 9.96, 12.4, 999, 1_234, 59_949, 250_000, 7_500_000, 273_600_000];
  assert.deepEqual(durations.map(duration), [
    ...['0 ms', '0.4 ms', '10 ms', '12 ms', '999 ms', '1.2 s', '59.9 s', '4 min 10 s', '2 h 5 min', '3 d 4 h'],
  ]);
  assert.deepEqual([0, 1_023, 1_536, 2 ** 30, 2 ** 42].map(bytes), ['0 B', '1023 B', '1.5 KiB', '1 GiB', '4 TiB']);
});

test('ISO times keep fractions below a millisecond', () => {
  assert.ok(Math.abs(isoMs('1970-01-01T00:00:01.000250Z') - 1_000.25) < 1e-6);
  assert.equal(isoMs('1970-01-01T00:00:01Z'), 1_000);
  assert.ok(Number.isNaN(isoMs('soon')));
});

test('text of apps cannot steer the terminal', () => {
  assert.equal(printable('a\x1b[2J\tb\nc\x9b\u202e'), 'a\\x1b[2J\tb\nc\\x9b\\u202e');
  assert.equal(shorten('one\n  two three', 9), 'one ⏎ tw…');
});

test('a table leaves out columns that nobody fills, and colours cells without moving them', () => {
  const rows = [
    { name: 'a', n: 1 },
    { name: 'long', n: 20 },
  ];
  const columns = [
    { title: 'name', value: (row: (typeof rows)[0]) => row.name, color: () => 'red' as const },
    { title: 'none', value: () => undefined },
    { title: 'n', value: (row: (typeof rows)[0]) => row.n, align: 'right' as const },
  ];
  assert.equal(table(rows, columns, plain), 'name   n\na      1\nlong  20\n');
  const colored = table(rows, columns, paintFor(true));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the colours are looked for.
  assert.equal(colored.replace(/\x1b\[\d+m/g, ''), table(rows, columns, plain));
  assert.ok(colored.includes('\x1b[31ma\x1b[39m '));
});

test('a trace of a thousand hops is drawn without deep recursion or endless indentation, and cut', () => {
  const invocations = Array.from({ length: 5_000 }, (_, i) => ({
    id: `i${i}`,
    function: 'hop',
    firing: i === 0 ? null : `b/t/${i}`,
    parent: i === 0 ? null : `i${i - 1}`,
    attempts: [],
    in: [],
    out: [],
  }));
  const text = traceText({ session: 's', invocations, dropped: 7 }, { rowsMax: 100, columns: 120 }, plain);
  const lines = text.split('\n');
  assert.equal(lines.length, 1 + 1 + 100 + 2 + 1);
  assert.match(lines[0] ?? '', /5,007 invocations/);
  assert.ok(lines.every((line) => line.length < 120));
  assert.match(text, /4,900 more lines .*\n7 invocations not kept/);
});

test('a parent that is missing or a cycle of parents loses no line twice', () => {
  const one = (id: string, parent: string | null) => ({
    id,
    function: id,
    firing: null,
    parent,
    attempts: [],
    in: [],
    out: [],
  });
  const text = traceText(
    { session: 's', invocations: [one('a', 'gone'), one('b', 'a')] },
    { rowsMax: 9, columns: 80 },
    plain,
  );
  assert.match(text, /\na +waiting\n└─ b +waiting\n/);
});

test('differences of manifests ignore where things stand in files', () => {
  const before = {
    entry: 'a',
    functions: { a: { kind: 'fn', source: { file: 'x', line: 1 } }, gone: { kind: 'fn' } },
    buckets: { b: { on: { t: { kind: 'immediate', run: 'a' }, u: { kind: 'immediate', run: 'a' } } } },
  } as const;
  const after = {
    entry: 'a',
    functions: { a: { kind: 'durable', source: { file: 'x', line: 9 } } },
    buckets: { b: { on: { t: { kind: 'immediate', run: 'a', source: { file: 'x', line: 2 } } } }, c: {} },
    secrets: ['KEY'],
  } as const;
  assert.deepEqual(manifestDifferences(before, after), [
    '~ function a: {"kind":"fn"} → {"kind":"durable"}',
    '- function gone',
    '+ bucket c: {}',
    '- trigger b/u',
    '~ secrets: none → ["KEY"]',
  ]);
  assert.deepEqual(manifestDifferences(before, structuredClone(before)), []);
});
