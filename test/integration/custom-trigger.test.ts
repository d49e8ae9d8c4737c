// Goal: a trigger class of the user's decides for each session apart, exactly once for each object, and whatever it does
// costs its own session only. Method: a real app host in this process, with real instances.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { type Ended, HostInProcess } from '../fixtures/host-in-process.ts';

const APP = `
import { app, bucket, custom, fn, immediate } from 'antrail';
class Sum {
  constructor(o) { this.above = o.above; this.sum = 0; }
  onObject(object) {
    this.sum += object.json().n;
    if (this.sum <= this.above) return;
    this.sum = 0;
    return { fire: [{}] };
  }
  snapshot() { return { sum: this.sum }; }
  restore(s) { this.sum = s.sum; }
}
class Quiet {
  onObject(object, nowMs) { return { timerAtMs: nowMs + 30 }; }
  onTimer() { return { fire: [{ group: 'late' }] }; }
  snapshot() { return null; }
  restore() {}
}
class Split {
  onObject(object) {
    if (object.group === 'drop') return { drop: [object] };
    return { fire: [{ objects: [object.id], run: object.group }] };
  }
  snapshot() { return 0; }
  restore() {}
}
class Starts {
  constructor() { this.started = []; }
  onObject() { return this.check(); }
  onSourceStarted(source) { this.started.push(source.invocation); return this.check(); }
  check() { if (this.started.length === 3 && !this.done) { this.done = true; return { fire: [{}] }; } }
  snapshot() { return { started: this.started, done: this.done ?? false }; }
  restore(s) { Object.assign(this, s); }
}
class Faulty {
  onObject(object) {
    const what = object.json();
    if (what === 'throw') throw new RangeError('cannot count this');
    if (what === 'spin') for (;;);
    if (what === 'exit') process.exit(3);
    if (what === 'memory') { let last; for (;;) last = { last }; }
    if (what === 'promise') return Promise.reject(new Error('later'));
    if (what === 'twice') return { fire: [{ objects: [object.id] }, { objects: [object.id] }] };
    if (what === 'nowhere') return { fire: [{ run: 'nobody' }] };
    if (what === 'state') this.state = new Map();
    return { fire: [{ objects: [object] }] };
  }
  snapshot() { return this.state ?? null; }
  restore() {}
}
const names = (inputs) => inputs.map((o) => o.json());
export default app('test', {
  entry: 'many',
  functions: {
    many: fn((ctx, [input]) => { for (const n of input.json()) ctx.send('numbers', { n }); }),
    total: fn((ctx, inputs) => { ctx.output(names(inputs).map(({ n }) => n)); }),
    quiet: fn((ctx, [input]) => { for (const n of input.json()) ctx.send('quiet', n); }),
    late: fn((ctx, inputs) => { ctx.output(names(inputs)); }),
    split: fn((ctx, [input]) => { for (const [group, n] of input.json()) ctx.send('split', n, { group }); }),
    left: fn((ctx, [n]) => { ctx.output(['left', n.json()]); }),
    right: fn((ctx, [n]) => { ctx.output(['right', n.json()]); }),
    begin: fn((ctx) => { for (let i = 0; i < 3; i++) ctx.call('work', i); ctx.send('starts', 'begun'); }),
    work: fn(async (ctx) => { await new Promise((r) => setTimeout(r, 5)); }),
    allStarted: fn((ctx, inputs) => { ctx.output(names(inputs)); }),
    faulty: fn((ctx, [what]) => { for (const one of what.json()) ctx.send('faulty', one); }),
    fine: fn((ctx, [what]) => { ctx.output(what.json()); }),
    large: fn((ctx, [bytes]) => { ctx.send('numbers', new Uint8Array(bytes.json())); }),
  },
  buckets: {
    numbers: bucket({ on: { sum: custom(Sum, { run: 'total', options: { above: 10 } }) } }),
    quiet: bucket({ on: { q: custom(Quiet, { run: 'late' }) } }),
    split: bucket({ on: { s: custom(Split, { run: ['left', 'right'] }) } }),
    starts: bucket({ on: { s: custom(Starts, { run: 'allStarted', sources: ['work'] }) } }),
    faulty: bucket({ on: { f: custom(Faulty, { run: 'fine' }) } }),
  },
});`;

let host: HostInProcess;
before(async () => {
  host = await HostInProcess.start(APP);
  await host.ready;
});
after(() => host.close());

function outputsOf({ outputs }: Ended): any[] {
  return outputs.map(({ bytes }) => JSON.parse(Buffer.from(bytes).toString()));
}

test('a sum over a threshold fires with all that was held; the rest is unfired', async () => {
  const ended = await host.run('many', [4, 5, 6, 1, 2, 9, 3]);
  assert.equal(ended.message.state, 'completed');
  assert.deepEqual(outputsOf(ended).sort(), [
    [1, 2, 9],
    [4, 5, 6],
  ]);
  const [unfired, ...more] = ended.message.unfired;
  assert.deepEqual([unfired?.bucket, unfired?.trigger, unfired?.held, more.length], ['numbers', 'sum', 1, 0]);
  assert.match(unfired?.waitsFor ?? '', /class Sum has not fired/);
  assert.equal(ended.message.counts.firings, 2);
});

test('sessions at once do not mix', async () => {
  const inputs = Array.from({ length: 40 }, (_, i) => Array.from({ length: 30 }, (_, k) => ((i * 7 + k * 3) % 5) + 1));
  const all = await Promise.all(inputs.map((input) => host.run('many', input)));
  for (const [i, ended] of all.entries()) {
    const expected: number[][] = [];
    let group: number[] = [];
    for (const n of inputs[i] ?? []) {
      group.push(n);
      if (group.reduce((a, b) => a + b) <= 10) continue;
      expected.push(group);
      group = [];
    }
    assert.deepEqual(outputsOf(ended).sort(), expected.sort(), `session ${i}`);
    assert.equal(ended.message.unfired[0]?.held ?? 0, group.length);
  }
});

test('a timer is served while objects are held, and the session waits for it', async () => {
  const ended = await host.run('quiet', [1, 2, 3]);
  assert.deepEqual(outputsOf(ended), [[1, 2, 3]]);
  assert.deepEqual(ended.message.unfired, []);
});

test('a firing names its functions, and what is dropped never fires', async () => {
  const ended = await host.run('split', [
    ['left', 1],
    ['drop', 2],
    ['right', 3],
  ]);
  assert.deepEqual(outputsOf(ended).sort(), [
    ['left', 1],
    ['right', 3],
  ]);
  assert.deepEqual(ended.message.unfired, []);
});

test('a class hears once of each start of its sources', async () => {
  const ended = await host.run('begin');
  assert.deepEqual(outputsOf(ended), [['begun']]);
});

for (const [what, code, message] of [
  ['throw', 'E_FUNCTION_FAILED', /trigger f gave up object \S+ of bucket faulty: class Faulty: cannot count this/],
  ['promise', 'E_FUNCTION_FAILED', /onObject returns a promise/],
  ['twice', 'E_FUNCTION_FAILED', /fires object \S+, which it does not hold/],
  ['nowhere', 'E_FUNCTION_FAILED', /run names nobody, but the trigger's run has fine only/],
  ['state', 'E_VALUE_UNSERIALISABLE', /snapshot\(\) is a Map/],
  ['exit', 'E_FUNCTION_FAILED', /exit code 3/],
  ['memory', 'E_FUNCTION_FAILED', /out of memory/],
] as const) {
  test(`a class that fails by ${what} fails its session, and no other`, async () => {
    const beside = host.run('many', [11]);
    const ended = await host.run('faulty', [what]);
    assert.equal(ended.message.state, 'failed');
    assert.equal(ended.message.error?.code, code);
    assert.match(ended.message.error?.message ?? '', message);
    if (what === 'throw')
      assert.match(
        ended.message.error?.stack ?? '',
        /^RangeError: cannot count this\n {4}at Faulty\.onObject \(main\.mjs:\d+/,
      );
    assert.deepEqual(outputsOf(await beside), [[11]]);
    assert.match(ended.message.unfired[0]?.waitsFor ?? '', /does not fire: class Faulty failed/);
  });
}

test('what a class decided before it failed counts', async () => {
  const ended = await host.run('faulty', ['a', 'b', 'throw', 'c']);
  assert.equal(ended.message.state, 'completed');
  assert.deepEqual(outputsOf(ended).sort(), ['a', 'b']);
  assert.match(ended.message.failures?.[0]?.error.message ?? '', /cannot count this/);
});

test('a class that does not come to an end fails its session', { timeout: 60_000 }, async () => {
  const ended = await host.run('faulty', ['spin']);
  assert.equal(ended.message.state, 'failed');
  assert.equal(ended.message.error?.code, 'E_TIMEOUT');
});

test('a value above the limit is not seen', async () => {
  const ended = await host.run('large', 70_000);
  assert.match(ended.message.error?.message ?? '', /has 70000 bytes: a trigger sees values up to 65536/);
});

test('a session that is cancelled while its class is asked ends at once', async () => {
  const { session, ended } = host.begin([['faulty', ['spin']]]);
  await host.request({ type: 'stats-get' });
  host.send({ type: 'session-cancel', session, error: { code: 'E_CANCELLED', message: 'enough' } });
  assert.equal((await ended).message.state, 'cancelled');
});
