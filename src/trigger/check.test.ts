import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkTrigger, functionsOf, isStateless, matchesName, scopeOf, type TriggerSpec } from './index.ts';

const FINE: readonly TriggerSpec[] = [
  { kind: 'immediate', run: 'f' },
  { kind: 'immediate', run: ['f', 'g'] },
  { kind: 'byName', name: 'a', run: 'f' },
  { kind: 'byName', match: 'order-', run: 'f' },
  { kind: 'byName', match: { regexp: '^a+$', flags: 'iu' }, run: 'f' },
  { kind: 'bySet', names: ['a', 'b'], run: 'f' },
  { kind: 'byBatchSize', size: 1, run: 'f' },
  { kind: 'byBatchSize', size: 10, maxWaitMs: 1_000, scope: 'session', run: 'f' },
  { kind: 'byTime', windowMs: 1, run: 'f' },
  { kind: 'byTime', cron: '*/5 * * * *', fireEmpty: true, run: 'f' },
  { kind: 'byTime', cron: '0 0 0 29 2 *', run: 'f' },
  { kind: 'redundant', k: 1, n: 1, scope: 'bucket', run: 'f' },
  { kind: 'redundant', k: 1, n: 3, sources: ['a'], cancelLosers: true, run: 'f' },
  { kind: 'dynamicJoin', run: 'f' },
  { kind: 'dynamicGroup', producers: ['p'], scope: 'session', run: 'f' },
  { kind: 'custom', class: 'Sum', options: { above: 10 }, sources: ['a'], run: 'f' },
];

test('options that are right have no problems, also through JSON', () => {
  for (const spec of FINE) assert.deepEqual(checkTrigger(JSON.parse(JSON.stringify(spec))), [], JSON.stringify(spec));
});

test('each wrong option is told with its name and what to do', () => {
  const wrong: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /A trigger must be an object with a kind/],
    [[], /A trigger must be an object with a kind/],
    [{ run: 'f' }, /kind must be one of immediate, .*; got nothing/],
    [{ kind: 'bySett', names: ['a'], run: 'f' }, /Did you mean bySet\?/],
    [{ kind: 'toString', run: 'f' }, /kind must be one of/],
    [{ kind: 'immediate' }, /run is missing/],
    [{ kind: 'immediate', run: [] }, /run must not be empty/],
    [{ kind: 'immediate', run: ['f', 'f'] }, /run has "f" twice/],
    [{ kind: 'immediate', run: 'no spaces' }, /run must be a list of function names/],
    [{ kind: 'immediate', run: 5 }, /run must be a function's name or a list of them; got 5/],
    [{ kind: 'immediate', run: 'f', scope: 'session' }, /there is no option scope; the options are run/],
    [{ kind: 'byName', run: 'f' }, /give name, or match/],
    [{ kind: 'byName', name: 'a', match: 'b', run: 'f' }, /exclude each other/],
    [{ kind: 'byName', name: '', run: 'f' }, /name must be an object's name/],
    [{ kind: 'byName', match: '', run: 'f' }, /use immediate/],
    [{ kind: 'byName', match: { regexp: '(', flags: '' }, run: 'f' }, /is not a regular expression: /],
    [{ kind: 'byName', match: { regexp: 'a', flags: 'qq' }, run: 'f' }, /is not a regular expression: /],
    [{ kind: 'byName', match: { regexp: 'a' }, run: 'f' }, /must be a prefix or \{ regexp, flags \}/],
    [{ kind: 'byName', match: null, run: 'f' }, /must be a prefix or \{ regexp, flags \}/],
    [{ kind: 'bySet', run: 'f' }, /names is missing/],
    [{ kind: 'bySet', names: [], run: 'f' }, /names must not be empty/],
    [{ kind: 'bySet', names: ['a', 'a'], run: 'f' }, /names has "a" twice/],
    [{ kind: 'bySet', names: ['a', ''], run: 'f' }, /names must be a list of object names, but has ""/],
    [{ kind: 'byBatchSize', run: 'f' }, /size is missing/],
    [{ kind: 'byBatchSize', size: 0, run: 'f' }, /size must be a whole number from 1 to 1000000; got 0/],
    [{ kind: 'byBatchSize', size: 1.5, run: 'f' }, /size must be a whole number/],
    [{ kind: 'byBatchSize', size: '3', run: 'f' }, /size must be a whole number .*; got "3"/],
    [{ kind: 'byBatchSize', size: 2, maxWaitMs: Number.NaN, run: 'f' }, /maxWaitMs must be .*; got NaN/],
    [{ kind: 'byBatchSize', size: 2, maxWait: 5, run: 'f' }, /no option maxWait; .* Did you mean maxWaitMs\?/],
    [{ kind: 'byBatchSize', size: 2, scope: 'app', run: 'f' }, /scope must be 'session' or 'bucket'/],
    [{ kind: 'byTime', run: 'f' }, /give windowMs or cron/],
    [{ kind: 'byTime', windowMs: 1, cron: '* * * * *', run: 'f' }, /exclude each other/],
    [{ kind: 'byTime', windowMs: 0, run: 'f' }, /windowMs must be a whole number from 1/],
    [{ kind: 'byTime', cron: '* * *', run: 'f' }, /cron must be a cron expression of five fields/],
    [{ kind: 'byTime', cron: '@daily', run: 'f' }, /cron must be a cron expression of five fields/],
    [{ kind: 'byTime', cron: '61 * * * *', run: 'f' }, /cron must be a cron expression .*: CronPattern/],
    [{ kind: 'byTime', cron: '0 0 30 2 *', run: 'f' }, /cron never runs/],
    [{ kind: 'byTime', windowMs: 1, fireEmpty: 'yes', run: 'f' }, /fireEmpty must be true or false/],
    [{ kind: 'byTime', windowMs: 1, fireEmpty: true, scope: 'session', run: 'f' }, /fireEmpty needs scope 'bucket'/],
    [{ kind: 'redundant', run: 'f' }, /k is missing/],
    [{ kind: 'redundant', k: 3, n: 2, run: 'f' }, /k must be at most n/],
    [{ kind: 'redundant', k: 1, n: 2, cancelLosers: true, run: 'f' }, /cancelLosers needs sources/],
    [
      { kind: 'redundant', k: 1, n: 2, cancelLosers: true, sources: ['a', 'f'], run: ['g', 'f'] },
      /"f" is a source and runs with the first k/,
    ],
    [
      { kind: 'redundant', k: 1, n: 2, cancelLosers: true, sources: ['a'], scope: 'bucket', run: 'f' },
      /cancelLosers needs scope 'session'/,
    ],
    [{ kind: 'dynamicJoin', run: 'f', count: 3 }, /no option count/],
    [
      { kind: 'dynamicGroup', producers: ['p'], scope: 'bucket', run: 'f' },
      /producers needs scope 'session'.*ctx\.closeGroup/,
    ],
    [{ kind: 'custom', run: 'f' }, /class is missing/],
    [{ kind: 'custom', class: 'a b', run: 'f' }, /class must be the name of a class/],
    [{ kind: 'custom', class: 'A', sources: ['a'], scope: 'bucket', run: 'f' }, /sources needs scope 'session'/],
    [{ kind: 'custom', class: 'A', options: 'x'.repeat(70_000), run: 'f' }, /options must have at most 65536/],
    [{ kind: 'dynamicGroup', producers: 'p', run: 'f' }, /producers must be a list of function names; got "p"/],
  ];
  for (const [spec, problem] of wrong) {
    const problems = checkTrigger(spec);
    assert.ok(
      problems.some((sentence) => problem.test(sentence)),
      `${JSON.stringify(spec)}: ${JSON.stringify(problems)}`,
    );
    for (const sentence of problems) assert.match(sentence, /[.?]$/);
  }
});

test('all problems are told at once', () => {
  assert.equal(checkTrigger({ kind: 'redundant', k: 0, n: 'x', size: 3 }).length, 4);
});

test('scopes have the default of their kind', () => {
  const scopes = FINE.filter((spec) => !('scope' in spec)).map((spec) => [spec.kind, scopeOf(spec)] as const);
  for (const [kind, scope] of scopes) {
    assert.equal(scope, kind === 'byBatchSize' || kind === 'byTime' ? 'bucket' : 'session');
  }
  assert.equal(scopeOf({ kind: 'byBatchSize', size: 1, scope: 'session', run: 'f' }), 'session');
});

test('what can be told from the name alone is told the same each time', () => {
  const byExpression: TriggerSpec = { kind: 'byName', match: { regexp: 'a', flags: 'gy' }, run: 'f' };
  for (const _ of [1, 2, 3]) assert.equal(matchesName(byExpression, 'ab'), true);
  assert.equal(matchesName({ kind: 'byName', name: 'a', run: 'f' }, 'ab'), false);
  assert.equal(matchesName({ kind: 'byName', match: 'a', run: 'f' }, 'ab'), true);
  assert.equal(matchesName({ kind: 'immediate', run: 'f' }, 'x'), true);
  assert.deepEqual(
    FINE.filter(isStateless).map(({ kind }) => kind),
    ['immediate', 'immediate', 'byName', 'byName', 'byName'],
  );
  assert.deepEqual(functionsOf({ kind: 'immediate', run: 'f' }), ['f']);
});
