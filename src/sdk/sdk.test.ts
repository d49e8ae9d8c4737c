// Goal: builders make frozen records that any copy of the SDK recognises, refuse misuse at the author's own line, and
// turn into a manifest that loses nothing. Method: call them, look at what they made.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toErrorData } from '../base/index.ts';
import {
  app,
  bucket,
  byBatchSize,
  byName,
  byTime,
  custom,
  durable,
  dynamicGroup,
  fn,
  immediate,
  redundant,
  TerminalError,
} from './index.ts';
import { APP, framesOf, isApp, isBucket, isFunction, isTrigger, manifestOf, NO_LOCATIONS } from './internal.ts';

const validator = { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } } as const;

function thrownBy(build: () => unknown): TypeError {
  try {
    build();
  } catch (error) {
    assert.ok(error instanceof TypeError, `a TypeError, not ${error}`);
    return error;
  }
  assert.fail('it was accepted');
}

describe('builders', () => {
  test('what they make is frozen and bears its brand', () => {
    const a = fn(() => 1, { timeoutMs: undefined, concurrency: 2 });
    const trigger = immediate({ run: 'a' });
    const b = bucket({ on: { trigger } });
    const made = app('made', { entry: 'a', functions: { a }, buckets: { b } });
    for (const frozen of [
      a,
      a.options,
      trigger,
      trigger.options,
      b,
      b.on,
      b.rerun,
      made,
      made.functions,
      made.buckets,
    ]) {
      assert.ok(Object.isFrozen(frozen));
    }
    assert.ok(isApp(made) && isFunction(a) && isBucket(b) && isTrigger(trigger));
    assert.ok(!isApp(a) && !isFunction(trigger) && !isApp(undefined) && !isApp({}));
    assert.equal(made[APP], 1);
    assert.equal((made as unknown as Record<symbol, unknown>)[Symbol.for('antrail.app')], 1);
    assert.deepEqual(a.options, { concurrency: 2 });
    assert.equal(made.name, 'made');
    assert.equal(made.functions.a, a);
  });

  test('a TerminalError is told by its name', () => {
    const data = toErrorData(new TerminalError('no', { cause: new Error('because') }), 'E_FUNCTION_FAILED');
    assert.equal(data.terminal, true);
    assert.equal(data.cause?.message, 'because');
  });

  const misuse: readonly (readonly [name: string, build: () => unknown, message: RegExp])[] = [
    ['fn without a function', () => fn('x' as never), /^fn: the handler must be a function .* not "x"$/],
    [
      'an unknown option',
      () => durable(() => {}, { timeoutMS: 1 } as never),
      /unknown option "timeoutMS", did you mean "timeoutMs"\?/,
    ],
    ['an option of the wrong type', () => fn(() => {}, { retries: '3' as never }), /retries must be a number or/],
    ['a number as text', () => fn(() => {}, { memoryMb: '128' as never }), /memoryMb must be a number, not "128"/],
    ['an unknown runtime', () => fn(() => {}, { runtime: 'docker' as never }), /runtime must be 'thread' or 'process'/],
    ['something that does not validate', () => fn(() => {}, { input: {} as never }), /input must be a Standard Schema/],
    ['options that are none', () => fn(() => {}, 5 as never), /options must be an object, not 5/],
    ['a trigger without run', () => immediate({} as never), /^immediate: run must be the name of a function/],
    ['an empty run', () => immediate({ run: [] }), /^immediate: run must be/],
    ['an unknown option of a trigger', () => byTime({ windowMS: 5, run: 'a' } as never), /did you mean "windowMs"\?/],
    [
      'a custom trigger that is no class',
      () => custom({} as never, { run: 'a' }),
      /must be a class with the method onObject/,
    ],
    [
      'a bucket of things that are no triggers',
      () => bucket({ on: { t: { run: 'a' } as never } }),
      /on\.t is an object, not a trigger/,
    ],
    [
      'a trigger with an impossible name',
      () => bucket({ on: { 'a b': immediate({ run: 'a' }) } }),
      /"a b" cannot name a trigger/,
    ],
    ['a rule with an unknown option', () => bucket({ rerun: [{ sources: 'a' } as never] }), /did you mean "source"\?/],
    ['an app with an impossible name', () => app('Ad Events', {} as never), /^app: the name must be lower-case/],
    [
      'a function not made by fn',
      () => app('x', { entry: 'a', functions: { a: (() => 1) as never } }),
      /functions\.a is a function, not made by fn/,
    ],
    [
      'a bucket not made by bucket',
      () => app('x', { entry: 'a', functions: { a: fn(() => 1) }, buckets: { b: {} as never } }),
      /buckets\.b is an object/,
    ],
    ['no functions', () => app('x', { entry: 'a' } as never), /functions must be/],
    [
      'an unknown entry',
      () => app('x', { entry: 'strat' as never, functions: { start: fn(() => 1) } }),
      /did you mean "start"\?/,
    ],
    [
      'an unknown option of an app',
      () => app('x', { entry: 'a', functions: {}, bukets: {} } as never),
      /did you mean "buckets"\?/,
    ],
  ];
  for (const [name, build, message] of misuse) {
    test(`refused at once, at the author's line: ${name}`, () => {
      const error = thrownBy(build);
      assert.match(error.message, message);
      const [first] = framesOf(error.stack ?? '');
      assert.match(first?.file ?? '', /sdk\.test\.[jt]s$/);
    });
  }
});

describe('locations', () => {
  test('each builder knows the line it was called on', () => {
    const marker = lineHere();
    const a = fn(() => 1);
    const t = immediate({ run: 'a' });
    const b = bucket({ on: { t } });
    const made = app('made', { entry: 'a', functions: { a }, buckets: { b } });
    assert.deepEqual(
      [a, t, b, made].map((it) => it.source?.line),
      [marker + 1, marker + 2, marker + 3, marker + 4],
    );
    assert.match(a.source?.file ?? '', /sdk\.test\.[jt]s$/);
    assert.ok(!a.source?.file.startsWith('file:'));
  });

  test('a flag leaves them out, and the stack limit of the program is untouched', () => {
    const limit = Error.stackTraceLimit;
    const flags = globalThis as Record<symbol, unknown>;
    flags[NO_LOCATIONS] = true;
    try {
      assert.equal(fn(() => 1).source, undefined);
    } finally {
      delete flags[NO_LOCATIONS];
    }
    assert.ok(fn(() => 1).source);
    assert.equal(Error.stackTraceLimit, limit);
  });

  test('frames of all shapes are read', () => {
    const stack = [
      'Error: at (the top):1:2',
      '    at Object.<anonymous> (/a b/app.ts:12:5)',
      '    at async file:///a%20b/main.mjs:7:1',
      '    at new Thing (file:///x.mjs:3:9)',
      '    at eval (eval at run (/x.js:1:1), <anonymous>:1:1)',
      '    at node:internal/main:5:3',
      '    at <anonymous>',
    ].join('\n');
    assert.deepEqual(framesOf(stack).slice(0, 3), [
      { file: '/a b/app.ts', line: 12 },
      { file: '/a b/main.mjs', line: 7 },
      { file: '/x.mjs', line: 3 },
    ]);
  });
});

describe('manifestOf', () => {
  test('data stays, a RegExp becomes data, what is code becomes a flag', () => {
    const flags = globalThis as Record<symbol, unknown>;
    flags[NO_LOCATIONS] = true;
    try {
      const made = app('made', {
        entry: 'a',
        functions: {
          a: fn(() => 1, {
            input: validator,
            init: () => {},
            runtime: 'process',
            retries: { max: 1, minMs: 2, maxMs: 3 },
          }),
          b: durable(() => 1),
        },
        buckets: {
          c: bucket({
            on: {
              d: byName({ match: /^x/i, run: ['a', 'b'] }),
              e: byBatchSize({ size: 3, maxWaitMs: undefined, run: 'b' }),
              f: redundant({ k: 1, n: 2, sources: ['a'], cancelLosers: true, run: 'b' }),
              g: dynamicGroup({ producers: ['a'], run: 'b' }),
            },
            rerun: [{ source: 'a', expect: ['x'], timeoutMs: 100 }],
            schema: validator,
          }),
          h: bucket({}),
        },
        state: { protocols: { '': 'auto' } },
        env: { URL: null },
        secrets: ['KEY'],
      });
      assert.deepEqual(manifestOf(made), {
        entry: 'a',
        functions: {
          a: {
            kind: 'fn',
            runtime: 'process',
            options: { retries: { max: 1, minMs: 2, maxMs: 3 }, input: true, init: true },
          },
          b: { kind: 'durable' },
        },
        buckets: {
          c: {
            on: {
              d: { kind: 'byName', match: { regexp: '^x', flags: 'i' }, run: ['a', 'b'] },
              e: { kind: 'byBatchSize', size: 3, run: 'b' },
              f: { kind: 'redundant', k: 1, n: 2, sources: ['a'], cancelLosers: true, run: 'b' },
              g: { kind: 'dynamicGroup', producers: ['a'], run: 'b' },
            },
            rerun: [{ source: 'a', expect: ['x'], timeoutMs: 100 }],
            schema: true,
          },
          h: { on: {} },
        },
        state: { protocols: { '': 'auto' } },
        env: { URL: null },
        secrets: ['KEY'],
      });
    } finally {
      delete flags[NO_LOCATIONS];
    }
  });

  test('what JSON would lose is refused by name', () => {
    const made = app('made', { entry: 'a', functions: { a: fn(() => 1) }, cron: { nightly: { run: () => 1 } } });
    assert.throws(
      () => manifestOf(made),
      /app "made"\.cron\.nightly\.run must be plain data \(JSON or a RegExp\), not a function/,
    );
    const infinite = app('made', {
      entry: 'a',
      functions: { a: fn(() => 1, { timeoutMs: Number.POSITIVE_INFINITY }) },
    });
    assert.throws(() => manifestOf(infinite), /function "a"\.timeoutMs must be plain data/);
  });

  test('names that objects already have keep their place', () => {
    const functions = Object.fromEntries([['__proto__', fn(() => 1)]]);
    const manifest = manifestOf(app('made', { entry: '__proto__', functions }));
    assert.deepEqual(Object.keys(manifest.functions), ['__proto__']);
    assert.match(JSON.stringify(manifest), /"__proto__":\{"kind":"fn"/);
  });
});

function lineHere(): number {
  return framesOf(new Error('here').stack ?? '')[1]?.line ?? 0;
}
