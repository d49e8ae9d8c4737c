// Goal: whatever a user throws becomes plain data that can be written down; nothing that it does when it is looked at gets out.
// Method: values that throw from getters, traps and conversions.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toErrorData } from './errors.ts';

const rude = (): never => {
  throw new Error('from within');
};
const traps = { get: rude, has: rude, ownKeys: rude, getPrototypeOf: rude };

function revoked(): unknown {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function withGetter(key: string): Error {
  return Object.defineProperty(new Error('kept'), key, { get: rude });
}

function withValue(key: string, value: unknown): Error {
  return Object.assign(new Error('kept'), { [key]: value });
}

const THROWN: Readonly<Record<string, () => unknown>> = {
  'a proxy whose traps throw': () => new Proxy({}, traps),
  'a proxy of an error': () => new Proxy(new Error('kept'), { get: rude }),
  'a revoked proxy': revoked,
  'an error with a revoked cause': () => new Error('kept', { cause: revoked() }),
  'a message that is no text': () => withValue('message', { toString: rude, toJSON: rude }),
  'a name that is no text': () => withValue('name', 5),
  'a stack that is no text': () => withValue('stack', Symbol('x')),
  'an object without prototype': () => Object.create(null),
  'a conversion that throws': () => Object.assign(() => {}, { toString: rude, [Symbol.toPrimitive]: rude }),
  'details that throw': () =>
    Object.assign(new Error('kept'), { name: 'PlatformError', code: 'E_TIMEOUT', details: new Proxy({}, traps) }),
  ...Object.fromEntries(
    ['message', 'name', 'stack', 'cause', 'code'].map((key) => [
      `a getter of ${key} that throws`,
      () => withGetter(key),
    ]),
  ),
};

for (const [what, make] of Object.entries(THROWN)) {
  test(`thrown: ${what}`, () => {
    const data = toErrorData(make(), 'E_FUNCTION_FAILED');
    assert.ok(data.message.length > 0);
    for (const text of [data.message, data.name ?? '', data.stack ?? '']) assert.equal(typeof text, 'string');
    assert.equal(JSON.parse(JSON.stringify(data)).message, data.message);
  });
}
