// Goal: a quick run of each suite gives every figure that the design names, once and finite. How large they are says nothing
// here: other things run on this machine.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReached, type Report, SUITES, TARGETS } from './index.ts';

const NAMED: Readonly<Record<string, readonly string[]>> = {
  overload: ['accepted-finished', 'refusal-p99-ms', 'throughput-vs-peak'],
  faults: ['function-rule-p99-vs-median', 'workflow-rule-p99-vs-median', 'no-rule-p99-vs-median'],
  idle: ['idle-cpu-percent'],
  soak: ['rss-growth'],
};

function figureOf({ metrics }: Report, name: string): number {
  const [one, ...more] = metrics.filter((metric) => metric.name === name);
  assert.ok(one !== undefined && more.length === 0, `${name} is there once`);
  return one.value;
}

async function quick(suite: string): Promise<Report> {
  const run = SUITES[suite];
  assert.ok(run !== undefined);
  const report = await run({ quick: true, signal: new AbortController().signal });
  assert.deepEqual(JSON.parse(JSON.stringify(report)), report, 'a report is plain data');
  for (const { name, value } of report.metrics) assert.ok(Number.isFinite(value) && value >= 0, `${name} is ${value}`);
  for (const name of NAMED[suite] ?? []) figureOf(report, name);
  for (const [name, target] of Object.entries(TARGETS[suite] ?? {})) {
    const metric = report.metrics.find((one) => one.name === name);
    assert.ok(metric !== undefined && typeof isReached(metric, target) === 'boolean', `${name} has a target`);
  }
  return report;
}

const linux = process.platform === 'linux' ? {} : { skip: 'reads /proc' };

test('overload: whatever was accepted was answered rightly', linux, async () => {
  const report = await quick('overload');
  assert.equal(figureOf(report, 'accepted-finished'), 1);
  assert.ok(figureOf(report, 'accepted') > 0);
});

test('idle: ten apps are up', linux, async () => {
  assert.equal(figureOf(await quick('idle'), 'apps'), 10);
});

test('soak: every session answered rightly, each process was looked at', linux, async () => {
  const report = await quick('soak');
  assert.equal(figureOf(report, 'sessions'), 20_000);
  assert.ok(figureOf(report, 'rss-growth-server') > 0 && figureOf(report, 'rss-growth-host') > 0);
});

test('faults: every session ends exactly once, and with a rule per function is answered', async () => {
  const report = await quick('faults');
  assert.equal(figureOf(report, 'function-rule-answered'), 1);
  for (const rule of ['function-rule', 'workflow-rule', 'no-rule']) {
    assert.equal(figureOf(report, `${rule}-ended-once`), 1, rule);
  }
});
