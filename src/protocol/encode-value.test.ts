// Guarantee: what encodeValue accepts comes back equal after JSON, and what it refuses is named with its path.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PlatformError } from '../base/index.ts';
import { CONTENT_BYTES, CONTENT_JSON, describeUnserialisable, encodeJsonText, encodeValue } from './index.ts';

const decode = (value: unknown) => JSON.parse(new TextDecoder().decode(encodeValue(value).bytes));

test('a JSON value comes back as it was', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(describeUnserialisable(value), undefined);
      assert.equal(encodeJsonText(value), JSON.stringify(value));
      assert.equal(new TextDecoder().decode(encodeValue(value).bytes), JSON.stringify(value));
    }),
  );
});

test('bytes are handed on as they are', () => {
  for (const bytes of [new Uint8Array([1, 2]), Buffer.from('ab'), new Uint8Array(0)]) {
    const payload = encodeValue(bytes);
    assert.equal(payload.contentType, CONTENT_BYTES);
    assert.equal(payload.bytes, bytes);
  }
});

test('undefined, dates, toJSON and class instances become what JSON makes of them', () => {
  class Point {
    x = 1;
    #secret = 2;
    get secret() {
      return this.#secret;
    }
  }
  assert.equal(encodeValue(undefined).contentType, CONTENT_JSON);
  assert.equal(decode(undefined), null);
  assert.deepEqual(decode({ a: undefined, b: [undefined] }), { b: [null] });
  assert.deepEqual(decode({ at: new Date(0) }), { at: '1970-01-01T00:00:00.000Z' });
  assert.deepEqual(decode([new Point()]), [{ x: 1 }]);
  assert.deepEqual(decode({ toJSON: () => 'me' }), 'me');
  assert.deepEqual(decode(Object.assign(Object.create(null), { a: 1 })), { a: 1 });
  const shared = { a: 1 };
  assert.deepEqual(decode([shared, shared]), [shared, shared]);
  assert.deepEqual(decode('ä'.repeat(3)), 'äää');
});

test('what JSON cannot carry is refused with its path and a way out', () => {
  const cycle: Record<string, unknown> = { list: [{}] };
  (cycle.list as unknown[]).push({ up: cycle });
  const cases: [unknown, string, RegExp][] = [
    [{ items: [1, 2, 3, { when: 1n }] }, 'input.items[3].when', /BigInt.*string/],
    [10n, 'input', /BigInt/],
    [() => 1, 'input', /function/],
    [{ f: function named() {} }, 'input.f', /function \(named\)/],
    [[Symbol('s')], 'input[0]', /symbol/],
    [{ n: Number.NaN }, 'input.n', /NaN/],
    [[Number.POSITIVE_INFINITY], 'input[0]', /Infinity/],
    [{ at: new Date(Number.NaN) }, 'input.at', /invalid Date/],
    [{ 'odd key': new Map() }, 'input["odd key"]', /fromEntries/],
    [{ s: new Set([1]) }, 'input.s', /\[\.\.\.set\]/],
    [{ p: Promise.resolve(1) }, 'input.p', /await/],
    [{ e: new TypeError('no') }, 'input.e', /error\.message/],
    [{ r: /x/ }, 'input.r', /RegExp/],
    [{ b: new Uint8Array(2) }, 'input.b', /Uint8Array inside a value/],
    [new Float64Array(2), 'input', /Float64Array/],
    [new ArrayBuffer(2), 'input', /new Uint8Array/],
    [cycle, 'input.list[1].up', /is input again: a cycle/],
  ];
  for (const [value, path, what] of cases) {
    assert.throws(
      () => encodeValue(value, 'input'),
      (thrown) => {
        assert.ok(thrown instanceof PlatformError);
        assert.equal(thrown.code, 'E_VALUE_UNSERIALISABLE');
        assert.equal(thrown.details.path, path);
        assert.match(thrown.message, what);
        assert.ok(thrown.message.startsWith(path));
        return true;
      },
    );
  }
});

test('deep nesting is carried, and refused only where JSON itself gives up', () => {
  let deep: unknown = 1;
  for (let i = 0; i < 1_000; i++) deep = { deep };
  assert.equal(encodeJsonText(deep), JSON.stringify(deep));
  for (let i = 0; i < 200_000; i++) deep = [deep];
  assert.throws(() => encodeValue(deep), { code: 'E_VALUE_UNSERIALISABLE', message: /nested too deeply/ });
});

test('a toJSON that throws is refused with the cause', () => {
  const value = {
    toJSON() {
      throw new Error('not now');
    },
  };
  assert.throws(() => encodeValue(value), { code: 'E_VALUE_UNSERIALISABLE', message: /not now/ });
});
