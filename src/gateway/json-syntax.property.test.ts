// Goal: the scanner accepts exactly what JSON.parse accepts, and the position it reports is the first at which no valid
// text can go on (JS1).
// Method: random JSON, and random JSON damaged by one edit. JSON.parse is the judge: a prefix can be continued if some
// ending makes it valid; endings are made from the brackets that a naive reader finds open.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { PlatformError } from '../base/index.ts';
import { checkJson, readJson } from './json-body.ts';
import { firstWrongUtf8, JsonSyntax, textPosition } from './json-syntax.ts';

const pause = () => Promise.resolve();

function isValid(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Ends the token at hand, in each of the ways that one can be unfinished. */
const TOKEN_ENDINGS = [
  '',
  '"',
  '\\"',
  'n"',
  '0000"',
  '000"',
  '00"',
  '0"',
  '0',
  '"":0',
  ':0',
  '":0',
  '\\":0',
  'n":0',
].concat(['0000":0', '000":0', '00":0', '0":0', 'rue', 'ue', 'e', 'alse', 'lse', 'se', 'ull', 'll', 'l']);

function endings(prefix: string): string[] {
  let closers = '';
  let inString = false;
  for (let i = 0; i < prefix.length; i++) {
    const char = prefix[i];
    if (inString && char === '\\') i++;
    else if (char === '"') inString = !inString;
    else if (!inString && char === '{') closers = `}${closers}`;
    else if (!inString && char === '[') closers = `]${closers}`;
    else if (!inString && (char === '}' || char === ']')) closers = closers.slice(1);
  }
  return TOKEN_ENDINGS.map((ending) => ending + closers);
}

const canGoOn = (prefix: string) => endings(prefix).some((ending) => isValid(prefix + ending));

/** Position as the gateway says it, or undefined when the text is valid. */
function reported(bytes: Buffer): number | undefined {
  try {
    assert.equal(checkJson(bytes, pause), undefined);
    return undefined;
  } catch (error) {
    assert.equal((error as PlatformError).code, 'E_JSON_INVALID');
    return (error as PlatformError).details.position as number;
  }
}

const json = fc.oneof(
  fc.json(),
  fc.json({ stringUnit: 'binary' }),
  fc.json().map((text) => ` ${text}\r\n\t`),
);
const alphabet = [...'{}[]",:\\/0123456789.+-eE truefalsn\n\t\u0001äu\u{1f41c}\ufeff'];
const damaged = fc
  .tuple(json, fc.nat(), fc.constantFrom('insert', 'delete', 'replace', 'cut'), fc.constantFrom(...alphabet))
  .map(([text, where, edit, char]) => {
    const at = where % (text.length + 1);
    if (edit === 'cut') return text.slice(0, at);
    return text.slice(0, at) + (edit === 'delete' ? '' : char) + text.slice(edit === 'insert' ? at : at + 1);
  });

/** Texts with a lone surrogate have no UTF-8 form. */
const isWellFormed = (text: string) => Buffer.from(text).toString() === text;

test('accepts what JSON.parse accepts', () => {
  fc.assert(fc.property(json.filter(isWellFormed), (text) => assert.equal(reported(Buffer.from(text)), undefined)));
});

test('a reported position is the first at which the text cannot go on', () => {
  fc.assert(
    fc.property(damaged.filter(isWellFormed), (text) => {
      const position = reported(Buffer.from(text));
      assert.equal(position === undefined, isValid(text));
      if (position === undefined) return;
      assert.ok(canGoOn(text.slice(0, position)), 'what is before can be continued');
      if (position < text.length) assert.ok(!canGoOn(text.slice(0, position + 1)), 'with the character it cannot');
    }),
    { numRuns: 3_000 },
  );
});

test('slices do not matter', () => {
  fc.assert(
    fc.property(damaged, fc.array(fc.nat({ max: 8 }), { maxLength: 20 }), (text, sizes) => {
      const bytes = Buffer.from(text);
      const whole = new JsonSyntax();
      const expected = whole.read(bytes, 0, bytes.length);
      const sliced = new JsonSyntax();
      let at = 0;
      let wrong = -1;
      for (const size of [...sizes, bytes.length]) {
        const to = Math.min(at + size, bytes.length);
        wrong = sliced.read(bytes, at, to);
        if (wrong >= 0) break;
        at = to;
      }
      assert.equal(wrong, expected);
      if (wrong < 0) assert.equal(sliced.isComplete(), whole.isComplete());
    }),
  );
});

test('examples', () => {
  for (const [text, position] of [
    ['', 0],
    ['{', 1],
    ['{"a":1,}', 7],
    ['[1,]', 3],
    ['[1 2]', 3],
    ['01', 1],
    ['-', 1],
    ['1.', 2],
    ['1.e', 2],
    ['1e', 2],
    ['+1', 0],
    ['.5', 0],
    ['tru', 3],
    ['trux', 3],
    ['nulll', 4],
    ['NaN', 0],
    ["{'a':1}", 1],
    ['{a:1}', 1],
    ['"a', 2],
    ['"\\x"', 2],
    ['"\\u12G4"', 5],
    ['"\n"', 1],
    ['"ä\u{1f41c}\u0001"', 4],
    ['\ufeff{}', 0],
    ['1 1', 2],
    [']', 0],
    ['{"a"}', 4],
    ['{"a":}', 5],
    ['[[[[', 4],
  ] as const) {
    assert.equal(reported(Buffer.from(text)), position, JSON.stringify(text));
  }
});

test('line and column are those of an editor', async () => {
  const text = Buffer.from('{\n  "ä": 1,\n  "b": x\n}');
  assert.deepEqual(textPosition(text, text.indexOf('x')), { position: 19, line: 3, column: 8 });
  await assert.rejects(readJson(text), { code: 'E_JSON_INVALID', message: /"x".* position 19 \(line 3, column 8\)/ });
});

test('wrong UTF-8 is found where it begins, and not before a syntax error', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (array) => {
      const bytes = Buffer.from(array);
      const wrong = firstWrongUtf8(bytes);
      const decode = (part: Uint8Array) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(part);
      if (wrong < 0) decode(bytes);
      else {
        assert.equal(decode(bytes.subarray(0, wrong)), bytes.toString('utf8', 0, wrong));
        assert.throws(() => decode(bytes.subarray(0, wrong + 4)));
      }
    }),
  );
  assert.equal(reported(Buffer.from([0x22, 0xc3, 0xa4, 0xff, 0x22])), 2);
  assert.equal(reported(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), 1);
  assert.equal(reported(Buffer.from([0x5d, 0xff])), 0);
});

test('a large text is checked in slices, with pauses, with the same result', async () => {
  const element = '{"k":[1,2,"ä"]},';
  const text = `[${element.repeat(60_000)}null]`;
  let pauses = 0;
  const counted = async () => {
    pauses++;
  };
  await checkJson(Buffer.from(text), counted);
  assert.ok(pauses >= 3, String(pauses));
  await assert.rejects(async () => checkJson(Buffer.from(`${text}]`), counted), {
    code: 'E_JSON_INVALID',
    details: { position: text.length, line: 1, column: text.length + 1 },
  });
  await assert.rejects(async () => checkJson(Buffer.from(text.slice(0, -1)), counted), /ends too early/);
  const deep = Buffer.from(`${'['.repeat(200_000)}${']'.repeat(200_000)}`);
  await checkJson(deep, counted);
});
