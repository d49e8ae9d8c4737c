// Goal: what the driver promises: what is kept before it is acknowledged, what survives, what a repeated request gets.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Manifest } from '../../protocol/index.ts';
import { Bench, Disk, json, MANIFEST, parsed, settle, sizes } from './harness.test.ts';
import { SESSION_RETENTION_MS } from './limits.ts';

const sync = (value: unknown) => ({
  app: 'a',
  entries: [{ function: 'f', input: json(value) }],
  mode: 'sync' as const,
});
const async = (value: unknown) => ({ ...sync(value), mode: 'async' as const });

function refusedWith(code: string, status = 0) {
  return (error: { code?: string; status?: number }) => {
    assert.equal(error.code, code);
    if (status !== 0) assert.equal(error.status, status);
    return true;
  };
}

describe('a sync start', () => {
  test('touches no disk and sets no timer, and answers with the entry’s value (CO2)', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const { session, outcome } = await bench.door.startSession(sync({ x: 1 }));
    assert.equal(bench.timerCount, 0);
    bench.end(host.lastStart(), { y: 2 });
    const got = await outcome;
    assert.deepEqual(got.ok && parsed(got.payload), { y: 2 });
    assert.deepEqual([...disk.store.range({ from: ' ', to: '~' })], []);
    assert.equal((await bench.door.getSession(session)).state, 'completed');
    assert.deepEqual((await bench.door.getSession(session)).result, { y: 2 });
  });

  test('waits for a host that is not up, and begins when it is', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const { outcome } = await bench.door.startSession(sync(1));
    assert.deepEqual(bench.needed, ['v1']);
    const host = bench.hostUp();
    bench.end(host.lastStart(), 'late');
    const got = await outcome;
    assert.equal(got.ok && parsed(got.payload), 'late');
  });

  test('ends at the first output; the session goes on', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session, outcome } = await bench.door.startSession(sync(1));
    const payload = json('first');
    const object = { bucket: '$output', name: 'o', group: '', session, ...sizes(payload) };
    bench.say({ type: 'session-output', session, run: 1, object }, payload);
    const got = await outcome;
    assert.equal(got.ok && parsed(got.payload), 'first');
    assert.equal((await bench.door.getSession(session)).state, 'running');
    bench.end(host.lastStart(), 'returned');
    assert.equal((await bench.door.getSession(session)).result, 'first');
  });

  test('names what was probably meant', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    await assert.rejects(bench.door.startSession({ ...sync(1), app: 'b' }), (error: { details?: unknown }) => {
      assert.deepEqual(error.details, { didYouMean: 'a' });
      return true;
    });
    const meant = { ...sync(1), entries: [{ function: 'colect' }] };
    await assert.rejects(bench.door.startSession(meant), refusedWith('E_FUNCTION_UNKNOWN', 404));
  });

  test('is executed again when its host dies; messages of the overtaken run change nothing', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const first = bench.hostUp();
    const { outcome } = await bench.door.startSession(sync(1));
    const overtaken = first.lastStart();
    bench.hostDown();
    const second = bench.hostUp();
    assert.equal(second.lastStart().run, 2);
    bench.end(overtaken, 'old');
    bench.end(second.lastStart(), 'new');
    const got = await outcome;
    assert.equal(got.ok && parsed(got.payload), 'new');
  });

  test('is refused while the server shuts down', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    bench.coordinator.drain();
    await assert.rejects(bench.door.startSession(sync(1)), refusedWith('E_SHUTTING_DOWN', 503));
  });
});

describe('an async start', () => {
  test('is on disk before it is acknowledged (CO1), and executed again by the next server', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    bench.hostUp();
    let open = () => {};
    disk.gate = new Promise((resolve) => {
      open = resolve;
    });
    let acknowledged = false;
    const started = bench.door.startSession(async('kept')).then((one) => {
      acknowledged = true;
      return one;
    });
    await settle();
    assert.equal(acknowledged, false, 'not before it is durable');
    open();
    const { session } = await started;
    assert.match(session, /^d1-/);

    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    const host = next.hostUp();
    assert.equal(host.lastStart().session, session);
    assert.equal(host.lastStart().durable, true);
    next.end(host.lastStart(), 'done');
    await settle();

    const third = new Bench(disk, MANIFEST);
    await third.coordinator.restore();
    assert.equal(third.hostUp().starts().length, 0, 'it has ended');
    const got = await third.door.sessionResult(session, 0);
    assert.equal(got?.ok === true && parsed(got.payload), 'done');
    const { sessions } = await third.door.listSessions({ app: 'a', limit: 10 });
    assert.deepEqual(
      sessions.map((one) => [one.session, one.state, one.result]),
      [[session, 'completed', 'done']],
    );
  });

  test('an ephemeral one of an earlier server is lost, not unknown', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    bench.hostUp();
    const { session } = await bench.door.startSession({ ...async(1), durability: 'none' });
    assert.match(session, /^e1-/);
    const next = new Bench(disk, MANIFEST);
    await assert.rejects(next.door.getSession(session), refusedWith('E_SESSION_LOST', 404));
    await assert.rejects(next.door.getSession('e2-0-0'), refusedWith('E_SESSION_UNKNOWN', 404));
    await assert.rejects(next.door.getSession('nonsense'), refusedWith('E_SESSION_UNKNOWN', 404));
  });

  test('with delayMs begins then, also after a restart', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    await bench.door.startSession({ ...async(1), delayMs: 1_000 });
    bench.advance(400);
    assert.equal(host.starts().length, 0);
    const next = new Bench(disk, MANIFEST, bench.nowMs);
    await next.coordinator.restore();
    const nextHost = next.hostUp();
    next.advance(599);
    assert.equal(nextHost.starts().length, 0);
    next.advance(1);
    assert.equal(nextHost.starts().length, 1);
    bench.advance(600);
    assert.equal(host.starts().length, 1);
  });

  test('with timeoutMs ends then, also after a restart; a repeat with its key gets the same answer', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    bench.hostUp();
    const request = { ...async(1), timeoutMs: 1_000, idempotencyKey: 'k' };
    const { session } = await bench.door.startSession(request);
    const delayed = await bench.door.startSession({ ...async(2), timeoutMs: 1_000, delayMs: 600 });
    bench.advance(400);
    const next = new Bench(disk, MANIFEST, bench.nowMs);
    await next.coordinator.restore();
    const host = next.hostUp();
    assert.equal(host.lastStart().deadlineInMs, 600, 'the host is told what is left');
    next.advance(599);
    assert.equal((await next.door.getSession(session)).state, 'running');
    next.advance(1);
    const again = await next.door.startSession(request);
    const outcome = await again.outcome;
    assert.equal(again.session, session);
    assert.equal(outcome.ok === false && outcome.error.code, 'E_TIMEOUT');
    assert.equal(host.lastStart().session, delayed.session);
    assert.equal(host.lastStart().deadlineInMs, 1_000, 'a delayed one has its time from when it begins');
  });

  test('its input is validated at the door', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    host.answer = async () => {
      throw Object.assign(new Error('too small'), { code: 'E_INPUT_INVALID' });
    };
    const request = { ...async(1), entries: [{ function: 'checked', input: json(1) }] };
    await assert.rejects(bench.door.startSession(request), refusedWith('E_INPUT_INVALID'));
    assert.equal(host.starts().length, 0);
  });

  test('records go after their retention, with outputs and key', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession({ ...async(1), idempotencyKey: 'k' });
    const payload = json(1);
    const object = { bucket: '$output', name: 'o', group: '', session, ...sizes(payload) };
    bench.say({ type: 'session-output', session, run: 1, object }, payload);
    bench.end(host.lastStart());
    await settle();
    const { epochMs } = bench.coordinator.ports.clock;
    assert.equal(await bench.coordinator.archive.sweep(epochMs() + SESSION_RETENTION_MS - 1), 0);
    assert.equal(await bench.coordinator.archive.sweep(epochMs() + SESSION_RETENTION_MS + 1), 1);
    assert.deepEqual([...disk.store.range({ from: ' ', to: '~' })], []);
  });
});

describe('an idempotency key', () => {
  const keyed = (value: unknown, mode: 'sync' | 'async' = 'sync') => ({ ...sync(value), mode, idempotencyKey: 'k' });

  test('joins the running session, two requests at once too, and refuses another body', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const [one, two] = await Promise.all([bench.door.startSession(keyed(1)), bench.door.startSession(keyed(1))]);
    assert.equal(one?.session, two?.session);
    assert.equal(host.starts().length, 1);
    await assert.rejects(bench.door.startSession(keyed(2)), refusedWith('E_IDEMPOTENCY_MISMATCH', 409));
    bench.end(host.lastStart(), 'same');
    const values = [];
    for (const { outcome } of [one, two]) {
      const got = await outcome;
      values.push(got.ok && parsed(got.payload));
    }
    assert.deepEqual(values, ['same', 'same']);
  });

  test('gives the same bytes after the end, after a restart, and is free after the window', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const first = await bench.door.startSession(keyed(1));
    bench.end(host.lastStart(), { random: 42 });
    await first.outcome;
    const next = new Bench(disk, MANIFEST, 10);
    await next.coordinator.restore();
    const nextHost = next.hostUp();
    const again = await next.door.startSession(keyed(1));
    assert.equal(again.session, first.session);
    const got = await again.outcome;
    assert.deepEqual(got.ok && parsed(got.payload), { random: 42 });
    await assert.rejects(next.door.startSession(keyed(2)), refusedWith('E_IDEMPOTENCY_MISMATCH'));
    assert.equal(nextHost.starts().length, 0);
    next.nowMs += SESSION_RETENTION_MS + 1;
    const fresh = await next.door.startSession(keyed(2));
    assert.notEqual(fresh.session, first.session);
  });

  test('the answer waits until its record is durable (CO1)', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const { outcome } = await bench.door.startSession(keyed(1));
    let open = () => {};
    disk.gate = new Promise((resolve) => {
      open = resolve;
    });
    bench.end(host.lastStart(), 1);
    let answered = false;
    void outcome.then(() => {
      answered = true;
    });
    await settle();
    assert.equal(answered, false);
    open();
    assert.equal((await outcome).ok, true);
  });
});

describe('objects for bucket-scoped triggers', () => {
  test('are acknowledged, counted once, and fire a session that names its causes', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(sync(1));
    bench.object(session, 0, 'x', false);
    bench.object(session, 1, 'x', false);
    assert.equal(host.starts().length, 1);
    bench.object(session, 2, 'y', false);
    assert.deepEqual(
      host.acks().map(({ seq, error }) => [seq, error]),
      [
        [0, undefined],
        [1, undefined],
        [2, undefined],
      ],
    );
    const fired = host.lastStart();
    assert.deepEqual(
      fired.entries.map((entry) => entry.inputs.map(({ name }) => name)),
      [['x', 'y']],
    );
    assert.match(fired.session, /^e/);
    assert.deepEqual((await bench.door.getSession(fired.session)).causes, [session]);
  });

  test('of a durable session survive until consumed; the firing’s session does too', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    bench.hostUp();
    const { session } = await bench.door.startSession(async(1));
    bench.object(session, 0, 'x', true);
    await settle();
    assert.equal(bench.host?.acks().length, 1);

    // The server dies; the producer is executed again and sends the same object.
    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    const host = next.hostUp();
    assert.deepEqual(
      host.starts().map((start) => start.session),
      [session],
    );
    next.object(session, 0, 'x', true);
    next.object(session, 1, 'y', true);
    await settle();
    assert.deepEqual(
      host.acks().map(({ seq }) => seq),
      [0, 1],
    );
    const fired = host.lastStart();
    assert.match(fired.session, /^d/);
    assert.deepEqual(
      fired.entries[0]?.inputs.map(({ name }) => name),
      ['x', 'y'],
    );
    next.end(host.starts()[0] as never, null);
    await settle();

    // The server dies again before the firing has ended.
    const third = new Bench(disk, MANIFEST);
    await third.coordinator.restore();
    const thirdHost = third.hostUp();
    assert.deepEqual(
      thirdHost.starts().map((start) => start.session),
      [fired.session],
    );
    assert.deepEqual(
      thirdHost.lastStart().entries[0]?.inputs.map(({ name }) => name),
      ['x', 'y'],
    );
    third.end(thirdHost.lastStart());
    await settle();
    const left = Array.from(disk.store.range({ from: ' ', to: '~' }), ([key]) => key[0]).sort();
    assert.deepEqual(left, ['s', 's', 'x', 'x'], 'two ended records and their index; nothing held or marked');
  });

  test('that a trigger with a snapshot holds are counted once after a restart, also when their session has ended', async () => {
    const manifest: Manifest = {
      ...MANIFEST,
      buckets: { b: { on: { t: { kind: 'redundant', k: 3, n: 4, scope: 'bucket', run: 'collect' } } } },
    };
    const disk = new Disk();
    const bench = new Bench(disk, manifest);
    const host = bench.hostUp();
    await bench.door.startSession(async(1));
    const given = host.lastStart();
    bench.object(given.session, 0, 'x', true);
    await settle();
    bench.end(given);
    // That the session is forgotten is on disk with the next object.
    const other = await bench.door.startSession(async(1));
    bench.object(other.session, 0, 'y', true);
    await settle();

    const next = new Bench(disk, manifest);
    await next.coordinator.restore();
    const nextHost = next.hostUp();
    next.coordinator.checkInvariants();
    assert.equal(next.coordinator.triggers.heldOf('a').objects, 2);
    next.object(other.session, 1, 'z', true);
    await settle();
    assert.deepEqual(
      nextHost.lastStart().entries[0]?.inputs.map(({ name }) => name),
      ['x', 'y', 'z'],
    );
  });

  test('leave no mark on disk, also when the disk is slower than the session', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    await bench.door.startSession(async(1));
    const given = host.lastStart();
    let open = () => {};
    disk.gate = new Promise((resolve) => {
      open = resolve;
    });
    bench.object(given.session, 0, 'x', true);
    bench.end(given);
    await settle();
    open();
    await settle();
    assert.equal(bench.coordinator.ports.records.keys('h/').length, 1);
    assert.deepEqual(bench.coordinator.ports.records.keys('k/'), []);
  });

  test('of which some are not durable stay on disk until the firing has ended', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const kept = await bench.door.startSession(async(1));
    const passing = await bench.door.startSession(sync(1));
    bench.object(kept.session, 0, 'x', true);
    bench.object(passing.session, 0, 'y', false);
    await settle();
    const fired = host.lastStart();
    assert.match(fired.session, /^e/);
    assert.equal(bench.coordinator.ports.records.keys('h/').length, 1);
    bench.end(fired);
    await settle();
    assert.equal(bench.coordinator.ports.records.keys('h/').length, 0);
  });

  test('persisted objects: newest wins, and a second execution does not put an old value over a new one', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    bench.hostUp();
    const { session } = await bench.door.startSession(sync(1));
    const persist = (seq: number, by: string, value: unknown) => {
      const payload = json(value);
      const object = { bucket: 'plain', name: 'n', group: '', session: by, ...sizes(payload) };
      bench.say({ type: 'object-persist', session: by, seq, object }, payload);
    };
    persist(0, session, 'first');
    const other = await bench.door.startSession(sync(1));
    persist(0, other.session, 'second');
    await settle();
    bench.hostDown();
    bench.hostUp();
    persist(0, session, 'first');
    await settle();
    assert.equal(bench.host?.acks().length, 1);
    const open = (name: string) => bench.door.openObject('a', 'plain', name, undefined, { start: 0, end: 8 });
    const got = await open('n');
    assert.equal(new TextDecoder().decode(await got.read(0, got.size)), '"second"');
    assert.equal(new TextDecoder().decode(await got.read(1, 4)), 'sec');
    assert.equal(got.size, 8);
    await assert.rejects(open('no'), refusedWith('E_OBJECT_UNKNOWN', 404));
    assert.equal(bench.coordinator.persisted.bytesOf('a'), 8);
  });
});

describe('an object from outside', () => {
  const put = (name: string, value: unknown, session?: string) => ({
    app: 'a',
    bucket: 'plain',
    name,
    payload: json(value),
    ...(session === undefined ? {} : { session }),
  });

  test('opens a session with it; the same again is a duplicate, other bytes a conflict', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const first = await bench.door.putObject(put('n', 1));
    assert.equal(first.duplicate, false);
    assert.deepEqual(host.lastStart().entries, []);
    assert.deepEqual(
      host.lastStart().objects?.map(({ name }) => name),
      ['n'],
    );
    assert.deepEqual(await bench.door.putObject(put('n', 1)), { session: first.session, duplicate: true });
    await assert.rejects(bench.door.putObject(put('n', 2)), refusedWith('E_OBJECT_EXISTS', 409));
    await assert.rejects(bench.door.putObject({ ...put('n', 1), bucket: 'plan' }), refusedWith('E_BUCKET_UNKNOWN'));

    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    assert.deepEqual(
      next
        .hostUp()
        .lastStart()
        .objects?.map(({ name }) => name),
      ['n'],
    );
    assert.deepEqual(await next.door.putObject(put('n', 1)), { session: first.session, duplicate: true });
  });

  test('into a session goes to its host, and to the next one when it dies', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(sync(1));
    assert.deepEqual(await bench.door.putObject(put('n', 1, session)), { session, duplicate: false });
    assert.deepEqual(await bench.door.putObject(put('n', 1, session)), { session, duplicate: true });
    await assert.rejects(bench.door.putObject(put('n', 2, session)), refusedWith('E_OBJECT_EXISTS'));
    assert.deepEqual(
      host.requests.map(({ type }) => type),
      ['session-put'],
    );
    bench.hostDown();
    const second = bench.hostUp();
    assert.deepEqual(
      second.lastStart().objects?.map(({ name }) => name),
      ['n'],
    );
    bench.end(second.lastStart());
    await assert.rejects(bench.door.putObject(put('m', 1, session)), refusedWith('E_SESSION_ENDED', 409));
    assert.deepEqual(await bench.door.putObject(put('n', 1, session)), { session, duplicate: true });
  });

  test('is kept when the host dies before it answers', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(sync(1));
    let answer = () => {};
    host.answer = () =>
      new Promise((resolve) => {
        answer = () => resolve({});
      });
    const putting = bench.door.putObject(put('n', 1, session));
    await settle();
    bench.hostDown();
    answer();
    assert.deepEqual((await putting).session, session);
    assert.deepEqual(
      bench
        .hostUp()
        .lastStart()
        .objects?.map(({ name }) => name),
      ['n'],
    );
  });

  test('drives bucket-scoped triggers, counted once', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const x = await bench.door.putObject({ ...put('x', 1), bucket: 'b' });
    bench.object(x.session, 0, 'x', true); // the host sends it on, as it does with every object
    await bench.door.putObject({ ...put('y', 1), bucket: 'b' });
    await settle();
    const fired = host.starts().filter((start) => start.entries[0]?.function === 'collect');
    assert.deepEqual(
      fired.map((start) => start.entries[0]?.inputs.map(({ name }) => name)),
      [['x', 'y']],
    );
  });

  test('are given to bucket-scoped triggers once, also when their session ends before they are answered', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(async(1));
    const given = host.lastStart();
    host.answer = async () => {
      bench.object(session, 0, 'n', true);
      bench.end(given);
      return {};
    };
    await bench.door.putObject({ ...put('n', 'n', session), bucket: 'b' });
    await settle();
    assert.equal(bench.coordinator.triggers.heldOf('a').objects, 1);
  });

  test('leave nothing on disk when they end their session before they are answered', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.putObject({ ...put('n', 1), open: true });
    host.answer = async () => {
      bench.end(host.lastStart());
      return {};
    };
    await bench.door.closeGroup(session, 'plain');
    await settle();
    assert.equal((await bench.door.getSession(session)).state, 'completed');
    assert.deepEqual(bench.coordinator.ports.records.keys('e/'), []);
  });

  test('closes and joins are told again to the next host', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    bench.hostUp();
    const { session } = await bench.door.putObject({ ...put('n', 1), open: true });
    await bench.door.join(session, 'plain', { count: 3 });
    await bench.door.closeGroup(session, 'plain');
    bench.hostDown();
    const host = bench.hostUp();
    assert.deepEqual(
      host.requests.map(({ type }) => type),
      ['session-join', 'session-close'],
    );
    assert.deepEqual(host.lastStart().open, { idleTimeoutMs: 600_000 });
  });
});

describe('acting on sessions', () => {
  test('a cancelled one ends as cancelled, repeatably', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session, outcome } = await bench.door.startSession(sync(1));
    const cancelling = bench.door.cancelSession(session);
    await settle();
    assert.equal(host.messages.at(-1)?.type, 'session-cancel');
    const got = await outcome;
    assert.equal(got.ok === false && got.error.code, 'E_CANCELLED');
    bench.end(host.lastStart(), 'too late');
    await cancelling;
    assert.equal((await bench.door.getSession(session)).state, 'cancelled');
    await bench.door.cancelSession(session);
  });

  test('retry and fork start new sessions with the same input', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(sync({ again: true }));
    bench.end(host.lastStart());
    const retried = await bench.door.retrySession(session);
    assert.notEqual(retried.session, session);
    assert.equal((await bench.door.getSession(retried.session)).retryOf, session);
    const forked = await bench.door.forkSession(session);
    assert.equal((await bench.door.getSession(forked.session)).forkOf, session);
    assert.equal(host.lastStart().entries[0]?.inputs[0]?.session, forked.session);
  });

  test('outputs are followed in order, replayed from a number, and deduplicated over executions', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    bench.hostUp();
    const { session } = await bench.door.startSession(sync(1));
    const output = (run: number, name: string) => {
      const payload = json(name);
      const object = { bucket: '$output', name, group: '', session, ...sizes(payload) };
      bench.say({ type: 'session-output', session, run, object }, payload);
    };
    const seen: string[] = [];
    const following = (async () => {
      for await (const { n, name } of bench.door.outputs(session, 0, new AbortController().signal))
        seen.push(`${n}${name}`);
    })();
    await settle();
    output(1, 'a');
    await settle();
    bench.hostDown();
    const host = bench.hostUp();
    output(2, 'a');
    output(2, 'b');
    bench.end(host.lastStart());
    await following;
    assert.deepEqual(seen, ['1a', '2b']);
    const rest: string[] = [];
    for await (const { name } of bench.door.outputs(session, 1, new AbortController().signal)) rest.push(name);
    assert.deepEqual(rest, ['b']);
  });

  test('the list goes from new to old, by filter and cursor, over live, ended and durable ones', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const ids: string[] = [];
    for (let i = 0; i < 9; i++) {
      bench.advance(10);
      const request = i % 3 === 0 ? async(i) : sync(i);
      ids.unshift((await bench.door.startSession({ ...request, tags: { odd: String(i % 2) } })).session);
      if (i < 7) bench.end(host.lastStart(), i);
      await settle();
    }
    const got: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await bench.door.listSessions({ limit: 2, ...(cursor === undefined ? {} : { cursor }) });
      got.push(...page.sessions.map(({ session }) => session));
      cursor = page.cursor;
    } while (cursor !== undefined);
    assert.deepEqual(got, ids);
    const running = await bench.door.listSessions({ limit: 100, state: 'running' });
    assert.deepEqual(
      running.sessions.map(({ session }) => session),
      ids.slice(0, 2),
    );
    const odd = await bench.door.listSessions({ limit: 100, tag: ['odd', '1'], state: 'completed' });
    assert.equal(odd.sessions.length, 3);
  });

  test('a failed session that nobody waits for is a dead letter', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(async(1));
    const { run } = host.lastStart();
    const counts = { invocations: 1, attempts: 1, objects: 0, bytes: 0, firings: 0 };
    const error = { code: 'E_FUNCTION_FAILED' as const, message: 'broken' };
    bench.say({ type: 'session-ended', session, run, state: 'failed', error, unfired: [], counts, meteredMs: 1 });
    const { deadLetters } = await bench.door.letters.list('a', 10);
    assert.deepEqual(
      deadLetters.map((letter) => [letter.id, letter.session, letter.error.message]),
      [[session, session, 'broken']],
    );
  });
});

test('an old version is let go when its last session has ended', async () => {
  const bench = new Bench(new Disk(), MANIFEST);
  const host = bench.hostUp();
  const { session } = await bench.door.startSession(sync(1));
  bench.version = 'v2';
  bench.coordinator.configure('a');
  assert.deepEqual(bench.unused, []);
  bench.coordinator.hostMessage(
    'a',
    'v1',
    {
      type: 'session-ended',
      session,
      run: host.lastStart().run,
      state: 'completed',
      unfired: [],
      counts: { invocations: 1, attempts: 1, objects: 0, bytes: 0, firings: 0 },
      meteredMs: 1,
    },
    [],
  );
  assert.deepEqual(bench.unused, ['v1']);
});

test('deleting an app cancels its sessions and leaves nothing on disk', async () => {
  const disk = new Disk();
  const bench = new Bench(disk, MANIFEST);
  const host = bench.hostUp();
  const { session } = await bench.door.startSession(async(1));
  bench.object(session, 0, 'x', true);
  await settle();
  const removing = bench.coordinator.removeApp('a');
  await settle();
  bench.end(host.lastStart());
  await removing;
  assert.deepEqual(
    Array.from(disk.store.range({ from: ' ', to: '~' }), ([key]) => key),
    [],
  );
});
