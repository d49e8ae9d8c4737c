// Goal: the suite measures everything that it promises, on any machine. Method: its quick form against a real server; no
// figure is judged, because machines that run tests do other things too.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isReached, SUITES, TARGETS } from '../index.ts';

const SIZES = ['10B', '1KB', '10KB', '100KB', '1MB', '10MB', '100MB'];
const FAN_SIZES = ['10B', '1KB', '100KB', '1MB', '10MB'];
const WITH_RATIO = [
  'hop-inline',
  'hop-inline-async',
  'hop-instance',
  'hop-instance-gaps',
  'chain-1000-per-hop',
  'handoff-100MB-vs-1KB',
  'fanin-100000-per-branch',
  'http-invoke-latency',
  'http-invoke-throughput',
];
const NAMES = [
  'R',
  'raw-message-gaps',
  ...WITH_RATIO,
  'send-inline',
  'chain-1000-whole-per-hop',
  ...SIZES.flatMap((size) => [`handoff-${size}`, `handoff-${size}-filled`]),
  ...[1, 10, 1_000].map((branches) => `fanin-${branches}-per-branch`),
  ...['server', 'host'].flatMap((process) => [`fanin-1000-${process}-memory`, `fanin-100000-${process}-memory`]),
  ...['fanout', 'fanin'].flatMap((fan) =>
    [2, 4, 8, 16].flatMap((width) =>
      FAN_SIZES.flatMap((size) => ['internal', 'external'].map((part) => `${fan}-${width}-${size}-${part}`)),
    ),
  ),
  'http-client-latency',
  'http-client-throughput',
  'fastify-echo-latency',
  'fastify-echo-throughput',
  ...[10, 100, 1_000, 10_000].map((objects) => `window-handover-${objects}`),
];

test('a quick run of `interaction` gives every figure, once and finite', async () => {
  const { interaction } = SUITES;
  assert.ok(interaction !== undefined);
  const report = await interaction({ quick: true, signal: new AbortController().signal });
  assert.deepEqual(JSON.parse(JSON.stringify(report)), report, 'a report is plain data');
  assert.deepEqual(Object.keys(report), ['suite', 'host', 'startedAt', 'metrics']);
  assert.equal(report.suite, 'interaction');
  assert.equal(new Date(report.startedAt).toISOString(), report.startedAt);
  assert.ok(report.host.cpus > 0 && report.host.memoryBytes > 0);
  assert.equal(report.host.node, process.version);

  const { metrics } = report;
  assert.deepEqual(metrics.map(({ name }) => name).sort(), NAMES.sort());
  assert.deepEqual(
    metrics.slice(0, 2).map(({ name }) => name),
    ['R', 'raw-message-gaps'],
    'baselines come first',
  );
  for (const metric of metrics) {
    const { name, value, unit, p99, baseline, ratio, ...rest } = metric;
    assert.deepEqual(rest, {}, `${name} has only what the format names`);
    assert.ok(Number.isFinite(value) && value > 0, `${name} is ${value}`);
    assert.match(unit, /^(µs|ms|MiB|requests\/s)$/);
    if (p99 !== undefined) assert.ok(p99 >= value, `${name}: p99 ${p99} is below the median ${value}`);
    assert.equal(ratio !== undefined, WITH_RATIO.includes(name), `${name}: ratio`);
    if (ratio !== undefined) assert.equal(ratio, value / (baseline as number), name);
  }
  for (const [name, target] of Object.entries(TARGETS.interaction ?? {})) {
    const metric = metrics.find((one) => one.name === name);
    assert.ok(metric !== undefined && typeof isReached(metric, target) === 'boolean', `${name} has a target`);
  }
});

test('an interrupted run closes what it started and says why it ended', async () => {
  const stop = new AbortController();
  stop.abort(new Error('interrupted'));
  await assert.rejects(async () => SUITES.interaction?.({ quick: true, signal: stop.signal }), /interrupted/);
});
