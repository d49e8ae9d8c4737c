// Goal: a wrong manifest is refused with a sentence that says what to do, where it is known with file and line.
// Method: one valid manifest, one change each, and the sentences that follow from it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Manifest, TriggerSpec } from '../protocol/index.ts';
import { checkAppName, checkManifest, checkTriggerPlacement, decodeBundle, type TriggerChecks } from './index.ts';
import { BUCKETS_MAX, FUNCTIONS_MAX, PROBLEMS_MAX, TRIGGERS_PER_BUCKET_MAX } from './limits.ts';

/** Stands for src/trigger, which is of the same layer. */
const CHECKS: TriggerChecks = {
  checkTrigger: (spec) => {
    const { kind, run, source } = spec as Record<string, unknown>;
    if (source !== undefined) return ['source is no option.'];
    if (kind !== 'immediate' && kind !== 'redundant' && kind !== 'custom')
      return [`kind must be immediate or redundant; got ${String(kind)}.`];
    const runs = Array.isArray(run) ? run : [run];
    return runs.length > 0 && runs.every((name) => typeof name === 'string') ? [] : ['run is missing; give it.'];
  },
  functionsOf: (spec: TriggerSpec) => (typeof spec.run === 'string' ? [spec.run] : spec.run),
};

const VALID = {
  entry: 'start',
  functions: {
    start: {
      kind: 'fn',
      runtime: 'thread',
      options: { timeoutMs: 100, input: true },
      source: { file: 'app.ts', line: 3 },
    },
    count: {
      kind: 'durable',
      options: {
        retries: { max: 3, minMs: 1, maxMs: 10 },
        concurrency: 2,
        memoryMb: 16,
        pool: 'p',
        priority: -1,
        keepAlive: { ms: 5 },
        init: true,
      },
    },
  },
  buckets: {
    words: {
      on: {
        each: { kind: 'immediate', run: ['start', 'count'], source: { file: 'app.ts', line: 9 } },
        first: { kind: 'redundant', k: 1, n: 2, sources: ['start'], run: 'count' },
      },
      rerun: [
        { source: 'start', expect: 'every-object', timeoutMs: 100 },
        { source: 'count', expect: ['a', 'b'], timeoutMs: 100 },
      ],
      schema: true,
      source: { file: 'app.ts', line: 8 },
    },
    empty: {},
  },
  state: { protocols: { '': 'auto', 'cart/': 'symmetric' }, strictOrder: true, commit: 'each' },
  env: { REGION: 'eu', URL: null },
  secrets: ['API_KEY'],
  routes: [{ any: 'thing' }],
  cron: { at: ['*'] },
  source: { file: 'app.ts', line: 20 },
};

type Change = (manifest: any) => void;

/** The sentences about a valid manifest after one change, with their places. */
function after(change: Change): string[] {
  const manifest = structuredClone(VALID);
  change(manifest);
  return checkManifest(manifest, CHECKS).map(({ message, file, line }) =>
    file === undefined ? message : `${file}:${line} ${message}`,
  );
}

test('a valid manifest has no problems, as JSON too', () => {
  const manifest: Manifest = VALID as unknown as Manifest;
  assert.deepEqual(checkManifest(manifest, CHECKS), []);
  assert.deepEqual(checkManifest(JSON.parse(JSON.stringify(VALID)), CHECKS), []);
  assert.deepEqual(checkManifest({ entry: 'a', functions: { a: { kind: 'fn' } }, buckets: {} }, CHECKS), []);
});

describe('refused', () => {
  const cases: readonly (readonly [what: string, change: Change, expected: RegExp])[] = [
    [
      'an unknown target',
      (m) => (m.buckets.words.on.each.run = 'strat'),
      /^app\.ts:9 Trigger "each" of bucket "words": run: there is no function "strat"\. Did you mean "start"\?$/,
    ],
    [
      'an unknown target without a near one',
      (m) => (m.buckets.words.on.each.run = 'elsewhere'),
      /there is no function "elsewhere"; declare it or name one of: start, count\.$/,
    ],
    [
      'a target listed twice',
      (m) => (m.buckets.words.on.each.run = ['start', 'start']),
      /run has "start" twice; list it once\.$/,
    ],
    [
      'an unknown source',
      (m) => (m.buckets.words.on.first.sources = ['starts']),
      /^app\.ts:8 Trigger "first" .* sources: there is no function "starts"\. Did you mean "start"/,
    ],
    [
      'an unknown producer',
      (m) => (m.buckets.words.on.first.producers = ['counts']),
      /producers: there is no function "counts"/,
    ],
    [
      'an unknown source of a rule',
      (m) => (m.buckets.words.rerun[1].source = 'cuont'),
      /^app\.ts:8 Bucket "words": rerun\[1\]\.source: there is no function "cuont"\. Did you mean "count"/,
    ],
    [
      'an unknown entry',
      (m) => (m.entry = 'stat'),
      /^app\.ts:20 entry: there is no function "stat"\. Did you mean "start"/,
    ],
    ['no entry', (m) => delete m.entry, /entry must be the name of a function; got nothing/],
    [
      'what the trigger check says',
      (m) => (m.buckets.words.on.each.kind = 'often'),
      /^app\.ts:9 Trigger "each" of bucket "words": kind must be/,
    ],
    [
      'a trigger that is none',
      (m) => (m.buckets.words.on.each = 5),
      /must be an object with a kind and its options; got 5/,
    ],
    ['a misspelt field', (m) => (m.bukets = {}), /has no field "bukets"; its fields are .* Did you mean "buckets"\?$/],
    [
      'a misspelt field of a bucket',
      (m) => (m.buckets.words.reruns = []),
      /Bucket "words" has no field "reruns".*Did you mean "rerun"/,
    ],
    [
      'a misspelt option',
      (m) => (m.functions.start.options.timeout = 5),
      /^app\.ts:3 Function "start": there is no option "timeout".*Did you mean "timeoutMs"\?$/,
    ],
    [
      'runtime among the options',
      (m) => (m.functions.start.options.runtime = 'thread'),
      /runtime stands beside options/,
    ],
    ['an unknown kind', (m) => (m.functions.start.kind = 'function'), /kind must be 'fn' or 'durable'; got "function"/],
    ['an unknown runtime', (m) => (m.functions.start.runtime = 'docker'), /runtime must be 'thread' or 'process'/],
    [
      'a timeout of 0',
      (m) => (m.functions.start.options.timeoutMs = 0),
      /timeoutMs must be a whole number from 1 to 2147483647; got 0/,
    ],
    [
      'a timeout that is text',
      (m) => (m.functions.start.options.timeoutMs = '1s'),
      /timeoutMs must be a whole number .* got "1s"/,
    ],
    [
      'too little memory',
      (m) => (m.functions.start.options.memoryMb = 15),
      /memoryMb must be a whole number from 16 to/,
    ],
    ['half a retry', (m) => (m.functions.start.options.retries = 0.5), /retries must be a whole number from 0/],
    [
      'back-off the wrong way round',
      (m) => (m.functions.count.options.retries.minMs = 20),
      /retries has minMs 20 above maxMs 10/,
    ],
    [
      'an incomplete back-off',
      (m) => delete m.functions.count.options.retries.maxMs,
      /retries is wrong: maxMs must be/,
    ],
    [
      'no concurrency at all',
      (m) => (m.functions.count.options.concurrency = 0),
      /concurrency must be a whole number from 1/,
    ],
    ['a pool that is no name', (m) => (m.functions.count.options.pool = 'a b'), /pool must be a name/],
    [
      'a validator in the manifest',
      (m) => (m.functions.start.options.input = {}),
      /input must be true or absent in a manifest/,
    ],
    ['a function that is none', (m) => (m.functions.start = null), /Function "start" must be an object with kind/],
    ['a name that is none', (m) => (m.functions['a b'] = { kind: 'fn' }), /"a b" cannot name a function: use letters/],
    [
      'a name of every object',
      (m) => (m.functions.constructor = { kind: 'fn' }),
      /"constructor" cannot name a function: every JavaScript object/,
    ],
    [
      'a bucket of the platform',
      (m) => (m.buckets.$input = {}),
      /Bucket "\$input" cannot be declared: names that begin with \$/,
    ],
    [
      'a bucket that is none',
      (m) => (m.buckets.words = []),
      /Bucket "words" must be an object, \{\} at least; got a list of 0/,
    ],
    [
      'a trigger name that is none',
      (m) => (m.buckets.words.on[''] = { kind: 'immediate', run: 'start' }),
      /"" cannot name a trigger/,
    ],
    ['triggers in a list', (m) => (m.buckets.words.on = []), /on must be \{ trigger/],
    [
      'a rule without a timeout',
      (m) => delete m.buckets.words.rerun[0].timeoutMs,
      /rerun\[0\]\.timeoutMs must be a whole number/,
    ],
    [
      'a rule that expects nothing',
      (m) => (m.buckets.words.rerun[0].expect = []),
      /rerun\[0\]\.expect must be 'every-object' or a list/,
    ],
    ['a rule that expects a name twice', (m) => (m.buckets.words.rerun[0].expect = ['x', 'x']), /has a name twice/],
    ['rules that are no list', (m) => (m.buckets.words.rerun = {}), /rerun must be a list/],
    [
      'an unknown protocol',
      (m) => (m.state.protocols['cart/'] = 'read-optimised'),
      /must be one of .* Did you mean "read-optimized"\?$/,
    ],
    ['an unknown commit', (m) => (m.state.commit = 'all'), /state\.commit must be 'output' or 'each'/],
    ['a number in the environment', (m) => (m.env.REGION = 5), /env\."REGION" must be a text/],
    ['a name no environment has', (m) => (m.env['A=B'] = 'x'), /env: "A=B" cannot be a name here/],
    ['secrets that are no list', (m) => (m.secrets = 'API_KEY'), /secrets must be a list/],
    [
      'a place that is none',
      (m) => (m.functions.start.source.line = 0),
      /Function "start": source must be \{ file, line \}/,
    ],
    ['no functions', (m) => (m.functions = {}), /The app has no functions/],
    ['no record of functions', (m) => delete m.functions, /functions must be \{ name/],
    ['no record of buckets', (m) => delete m.buckets, /buckets must be .* \{\} if there are none; got nothing/],
    [
      'too many functions',
      (m) => fill(m.functions, FUNCTIONS_MAX + 1, { kind: 'fn' }),
      /at most 1000 are possible: split it/,
    ],
    ['too many buckets', (m) => fill(m.buckets, BUCKETS_MAX + 1, {}), /at most 1000 are possible: split it/],
    [
      'too many triggers',
      (m) => fill(m.buckets.words.on, TRIGGERS_PER_BUCKET_MAX + 1, {}),
      /at most 100 are possible: split the bucket/,
    ],
    ['something nested too deeply', (m) => (m.cron = nested(100)), /nested deeper than 32; flatten it/],
    [
      'an object that JSON would turn into text',
      (m) => (m.buckets = new Date(0)),
      /must be JSON; it holds \[object Date\]/,
    ],
    ['a list with holes', (m) => (m.buckets.words.rerun = new Array(1)), /rerun\[0\] must be \{ source, expect/],
    ['something that is not JSON', (m) => (m.routes = [1n]), /must be JSON; it holds a bigint/],
  ];
  for (const [what, change, expected] of cases) {
    test(what, () => {
      const found = after(change);
      assert.ok(
        found.some((sentence) => expected.test(sentence)),
        `one of\n${found.join('\n')}\nmatches ${expected}`,
      );
    });
  }

  test('a name that is only inherited is not known', () => {
    const entry = after((m) => (m.entry = 'toString'));
    assert.match(entry[0] ?? '', /there is no function "toString"/);
    const manifest = JSON.parse(JSON.stringify(VALID).replace('"empty":', '"__proto__":'));
    assert.match(checkManifest(manifest, CHECKS)[0]?.message ?? '', /"__proto__" cannot name a bucket/);
  });

  test('no more than so many problems are listed', () => {
    const found = after((m) => {
      for (let i = 0; i < 80; i++) m.functions[`f${i}`] = 0;
    });
    assert.equal(found.length, PROBLEMS_MAX + 1);
    assert.match(found.at(-1) ?? '', /There are 30 more problems/);
  });
});

test('names of apps', () => {
  for (const name of ['a', 'ad-events', '0x']) assert.deepEqual(checkAppName(name), []);
  for (const name of ['', 'Ad', '-a', 'a_b', 'a'.repeat(64), '__proto__', 'constructor', 5, undefined]) {
    assert.equal(checkAppName(name).length, 1, String(name));
  }
});

test('a trigger for a running app is checked like one of a manifest', () => {
  const sum: TriggerSpec = { kind: 'custom', class: 'Sum', run: 'start' };
  const bundled = { functions: { start: { kind: 'fn' as const } }, buckets: { n: { on: { sum } } } };
  const check = (spec: unknown, trigger = 't') =>
    checkTriggerPlacement({ bucket: 'b', trigger, spec }, bundled, CHECKS).map(({ message }) => message);
  assert.deepEqual(check({ kind: 'immediate', run: 'start' }), []);
  assert.match(check({ kind: 'immediate', run: 'strat' })[0] ?? '', /Did you mean "start"/);
  assert.match(check({ kind: 'immediate', run: 'start' }, 'a/b')[0] ?? '', /cannot name a trigger/);
  assert.match(check(undefined)[0] ?? '', /must be an object with a kind/);
  assert.deepEqual(check({ kind: 'custom', class: 'Sum', run: 'start' }), []);
  assert.match(check({ kind: 'custom', class: 'Smu', run: 'start' })[0] ?? '', /has Sum\. Did you mean "Sum"/);
});

describe('a bundle', () => {
  const manifest = { entry: 'a', functions: { a: { kind: 'fn' } } };
  const problemsOf = (body: unknown) => (decodeBundle(body, CHECKS).problems ?? []).map(({ message }) => message);

  test('gets the buckets that it left out', () => {
    const { bundle } = decodeBundle(
      { manifest, main: 'a/main.mjs', files: { 'a/main.mjs': '', x: { base64: 'AAA=' } } },
      CHECKS,
    );
    assert.deepEqual(bundle?.manifest, { ...manifest, buckets: {} });
    assert.equal(bundle?.main, 'a/main.mjs');
  });

  test('is refused when main is none of its files', () => {
    assert.match(
      problemsOf({ manifest, main: 'main.js', files: { 'main.mjs': '' } })[0] ?? '',
      /Did you mean "main\.mjs"/,
    );
    assert.match(problemsOf({ manifest, main: 'toString', files: {} })[0] ?? '', /there is no file "toString"/);
    assert.match(problemsOf({ manifest, files: {}, mian: 'x' })[0] ?? '', /no field "mian".*Did you mean "main"/);
    assert.match(problemsOf(undefined)[0] ?? '', /The body must be/);
    assert.match(problemsOf({ manifest, main: 'a' })[0] ?? '', /files must be/);
  });

  test('writes nothing outside its folder', () => {
    for (const path of [
      '/etc/passwd',
      '../x',
      'a/../../x',
      'a//b',
      './a',
      'a/.',
      'C:\\x',
      'a\\b',
      'a\0b',
      '',
      'constructor',
      'x'.repeat(256),
    ]) {
      assert.match(
        problemsOf({ manifest, main: 'm', files: { m: '', [path]: '' } })[0] ?? '',
        /is no path for a file/,
        path,
      );
    }
    assert.match(problemsOf({ manifest, main: 'm', files: { m: '', 'm/x': '' } })[0] ?? '', /lies below another file/);
  });

  test('holds text and bytes only', () => {
    for (const file of [
      5,
      null,
      [],
      { base64: '%' },
      { base64: 'AAA' },
      { base64: 'A===' },
      { base64: '', more: 1 },
      {},
    ]) {
      assert.match(
        problemsOf({ manifest, main: 'm', files: { m: '', x: file } })[0] ?? '',
        /must be text or \{ base64 \}/,
      );
    }
  });
});

function fill(record: Record<string, unknown>, count: number, value: unknown): void {
  for (let i = 0; i < count; i++) record[`n${i}`] = value;
}

function nested(depth: number): unknown {
  return depth === 0 ? 1 : { x: nested(depth - 1) };
}
