// Goal: what failed for good is kept with what a retry needs, is retried one at a time, and goes when a retry completes (DL1
// to DL3). Method: a coordinator over memory; the host's messages are the test's.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FinalFailure, Payload } from '../../protocol/index.ts';
import { Bench, Disk, json, MANIFEST, settle, sizes } from './harness.test.ts';
import { DEAD_LETTER_INPUT_BYTES_MAX, DEAD_LETTERS_MAX } from './limits.ts';

const COUNTS = { invocations: 1, attempts: 3, objects: 0, bytes: 0, firings: 0 };
const BROKEN = { code: 'E_FUNCTION_FAILED', message: 'broken', stack: 'Error: broken\n    at f (app.ts:1:1)' } as const;
const ENTRY: FinalFailure = { invocation: '00000000000000aa', function: 'f', error: BROKEN, entry: 0, attemptCount: 3 };
const START = { app: 'a', entries: [{ function: 'f', input: json({ n: 1 }) }], mode: 'async' as const };

/** The host says that the session failed. */
function fail(
  bench: Bench,
  { session, run }: { session: string; run: number },
  failures: readonly FinalFailure[],
  blobs: readonly Payload[] = [],
  state: 'failed' | 'completed' = 'failed',
): void {
  bench.coordinator.hostMessage(
    'a',
    bench.version,
    {
      type: 'session-ended',
      session,
      run,
      state,
      ...(state === 'failed' ? { error: failures[0]?.error ?? BROKEN } : {}),
      unfired: [],
      counts: COUNTS,
      meteredMs: 1,
      ...(failures.length === 0 ? {} : { failures }),
    },
    blobs.map(({ bytes }) => bytes),
  );
}

async function ids(bench: Bench): Promise<string[]> {
  return (await bench.door.letters.list('a', 1_000)).deadLetters.map(({ id }) => id);
}

/** @returns the id of the letter that an asynchronous session leaves. */
async function letter(bench: Bench): Promise<string> {
  const host = bench.host ?? bench.hostUp();
  const { session } = await bench.door.startSession(START);
  fail(bench, host.lastStart(), [ENTRY]);
  return `${session}.${ENTRY.invocation}`;
}

describe('a dead letter', () => {
  test('tells what failed, and survives the server', async () => {
    const disk = new Disk();
    const id = await letter(new Bench(disk, MANIFEST));
    await settle();
    const bench = new Bench(disk, MANIFEST);
    await bench.coordinator.restore();
    const { deadLetters, dropped } = await bench.door.letters.list(undefined, 10);
    assert.equal(dropped, 0);
    const [session = '', invocation] = id.split('.');
    assert.deepEqual(deadLetters, [
      {
        id,
        app: 'a',
        version: 'v1',
        function: 'f',
        session,
        invocation,
        firing: null,
        error: { code: 'E_FUNCTION_FAILED', message: 'broken' },
        at: '2023-11-14T22:13:20.000Z',
        attemptCount: 3,
        retries: 0,
      },
    ]);
    const shown = await bench.door.letters.get(id);
    assert.deepEqual(shown.error, BROKEN);
    assert.deepEqual(shown.inputs[0]?.json, { n: 1 });
    assert.equal(shown.inputs[0]?.id, `a/$input/${session}/0`);
  });

  test('is unknown under any other id', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const id = await letter(bench);
    const { letters } = bench.door;
    for (const ask of [letters.get('x'), letters.retry('x'), letters.drop('x'), letters.get(`${id}0`)]) {
      await assert.rejects(ask, { code: 'E_DEAD_LETTER_UNKNOWN' });
    }
    await assert.rejects(letters.list('b', 10), { code: 'E_APP_UNKNOWN' });
  });

  test('is kept of every failure but one: the only attempt of the entry that a waiting caller had called', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const inner: FinalFailure = { ...ENTRY, invocation: '00000000000000bb', firing: 'plain/t/0' };
    const { entry: _, ...successor } = inner;
    const sync = { ...START, mode: 'sync' as const };
    for (const [failures, state, kept] of [
      [[ENTRY], 'failed', 0],
      [[{ ...ENTRY, retried: true }], 'failed', 1],
      [[successor], 'failed', 1],
      [[ENTRY, successor], 'failed', 1],
      [[ENTRY], 'completed', 1],
    ] as const) {
      await bench.door.startSession(sync);
      fail(bench, host.lastStart(), failures, [], state);
      const found = await ids(bench);
      assert.equal(found.length, kept, JSON.stringify([failures, state]));
      for (const id of found) await bench.door.letters.drop(id);
    }
    assert.deepEqual(await ids(bench), []);
  });

  test('that is dropped is gone for good', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const id = await letter(bench);
    await bench.door.letters.drop(id);
    assert.deepEqual(await ids(bench), []);
    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    assert.deepEqual(await ids(next), []);
  });

  test('goes with its app', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    await letter(bench);
    await bench.coordinator.removeApp('a');
    assert.deepEqual([...disk.store.range({ from: ' ', to: '~' })], []);
  });

  test('makes room for newer ones when there are too many, and is counted, also over a restart', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const first = await letter(bench);
    await bench.door.letters.retry(first);
    const second = await letter(bench);
    const batch = 100;
    for (let n = 0; n < DEAD_LETTERS_MAX; n += batch) {
      await bench.door.startSession(START);
      const failures = Array.from({ length: batch }, (_, i) => ({
        ...ENTRY,
        invocation: String(n + i).padStart(16, '0'),
      }));
      fail(bench, host.lastStart(), failures);
    }
    const found = await ids(bench);
    assert.equal(found.length, DEAD_LETTERS_MAX);
    assert.ok(!found.includes(second), 'the oldest has gone');
    assert.ok(bench.coordinator.letters.retryOf(first) !== undefined, 'one that is retried is not dropped');
    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    assert.equal((await next.door.letters.list('a', 10)).dropped, 2);
  });
});

describe('a retry', () => {
  test('runs with the same inputs in a session that names its cause, and the letter goes when it completes', async () => {
    const disk = new Disk();
    const id = await letter(new Bench(disk, MANIFEST));
    await settle();
    const bench = new Bench(disk, MANIFEST);
    await bench.coordinator.restore();
    const host = bench.hostUp();
    const { session } = await bench.door.letters.retry(id);
    assert.deepEqual((await bench.door.getSession(session)).causes, [id.split('.')[0]]);
    const start = host.lastStart();
    assert.equal(start.session, session);
    assert.equal(start.entries[0]?.function, 'f');
    assert.equal(start.entries[0]?.inputs[0]?.session, session);
    assert.deepEqual((await bench.door.letters.list('a', 10)).deadLetters[0]?.retrySession, session);
    bench.end(start);
    assert.deepEqual(await ids(bench), []);
    await assert.rejects(bench.door.letters.retry(id), { code: 'E_DEAD_LETTER_UNKNOWN' });
  });

  test('of a firing gets the objects that came with the failure', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(START);
    const payload = json('fired');
    const inputs = [{ bucket: 'plain', name: 'x', group: 'g', session, ...sizes(payload) }];
    const failure = { invocation: '00000000000000cc', function: 'collect', error: BROKEN, firing: 'plain/t/x', inputs };
    fail(bench, host.lastStart(), [failure], [payload], 'completed');
    const shown = await bench.door.letters.get(`${session}.00000000000000cc`);
    assert.deepEqual(shown.inputs[0], {
      id: `a/plain/${session}/x`,
      bucket: 'plain',
      name: 'x',
      group: 'g',
      ...sizes(payload),
      json: 'fired',
    });
    await bench.door.letters.retry(shown.id);
    assert.deepEqual(host.lastStart().entries, [{ function: 'collect', inputs }]);
  });

  test('is one at a time, also when it is asked for twice at once or after a restart (DL2)', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const id = await letter(bench);
    const both = await Promise.all([bench.door.letters.retry(id), bench.door.letters.retry(id)]);
    assert.equal(both[0].session, both[1].session);
    assert.deepEqual(await bench.door.letters.retry(id), both[0]);
    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    const host = next.hostUp();
    assert.deepEqual(await next.door.letters.retry(id), both[0]);
    assert.equal(host.starts().length, 1);
    next.end(host.lastStart());
    assert.deepEqual(await ids(next), []);
  });

  test('that fails leaves the letter with the new error; one that is cancelled leaves it as it was', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const id = await letter(bench);
    const first = await bench.door.letters.retry(id);
    fail(bench, host.lastStart(), [{ ...ENTRY, error: { ...BROKEN, message: 'still' }, attemptCount: 2 }]);
    const [again, ...others] = (await bench.door.letters.list('a', 10)).deadLetters;
    assert.deepEqual(others, [], 'the retry has no letter of its own');
    assert.deepEqual(
      [again?.id, again?.error.message, again?.attemptCount, again?.retries, again?.retrySession],
      [id, 'still', 5, 1, undefined],
    );
    const second = await bench.door.letters.retry(id);
    assert.notEqual(second.session, first.session);
    const cancelled = bench.door.cancelSession(second.session);
    await settle();
    bench.end(host.lastStart());
    await cancelled;
    assert.equal((await bench.door.letters.get(id)).error.message, 'still');
    assert.equal((await bench.door.letters.get(id)).retries, 1);
  });

  test('whose successor fails is done: the successor has a letter of its own', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const id = await letter(bench);
    const { session } = await bench.door.letters.retry(id);
    const failure = {
      invocation: '00000000000000dd',
      function: 'collect',
      error: BROKEN,
      firing: 'plain/t/0',
      inputs: [],
    };
    fail(bench, host.lastStart(), [failure]);
    assert.deepEqual(await ids(bench), [`${session}.00000000000000dd`]);
  });

  test('runs in the current version', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const id = await letter(bench);
    bench.version = 'v2';
    bench.coordinator.configure('a');
    const host = bench.hostUp('v2');
    const { session } = await bench.door.letters.retry(id);
    assert.equal(host.lastStart().session, session);
    bench.manifest = { ...MANIFEST, functions: { collect: { kind: 'fn' } } };
    fail(bench, host.lastStart(), [ENTRY]);
    await assert.rejects(bench.door.letters.retry(id), { code: 'E_FUNCTION_UNKNOWN' });
  });

  test('of what a trigger gave up is refused: there is no invocation', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const { session } = await bench.door.startSession(START);
    const what = { id: 'b.t.1', app: 'a', version: 'v1', session, path: 'b/t', error: BROKEN, atMs: 1 };
    const written = bench.coordinator.ports.records.write(bench.coordinator.letters.changesOfTrigger(what));
    bench.coordinator.letters.follow(written);
    await assert.rejects(bench.door.letters.retry('b.t.1'), { code: 'E_OBJECT_GONE' });
  });

  test('of what was too large to be kept is refused, and says what to do', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const bytes = new Uint8Array(DEAD_LETTER_INPUT_BYTES_MAX + 1);
    const input = { contentType: 'application/octet-stream', bytes };
    const { session } = await bench.door.startSession({ ...START, entries: [{ function: 'f', input }] });
    fail(bench, host.lastStart(), [ENTRY]);
    const id = `${session}.${ENTRY.invocation}`;
    assert.equal((await bench.door.letters.get(id)).inputsKept, false);
    await assert.rejects(bench.door.letters.retry(id), { code: 'E_OBJECT_GONE' });
    assert.equal((await bench.door.retrySession(session)).session, host.lastStart().session);
  });

  test('of a session that failed as a whole begins all of it again', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession({
      ...START,
      entries: [
        { function: 'f', input: json(1) },
        { function: 'collect', input: json(2) },
      ],
      timeoutMs: 50,
    });
    bench.advance(50);
    fail(bench, host.lastStart(), []);
    assert.deepEqual(await ids(bench), [session]);
    assert.equal((await bench.door.letters.get(session)).error.code, 'E_TIMEOUT');
    await bench.door.letters.retry(session);
    assert.deepEqual(
      host.lastStart().entries.map((entry) => entry.function),
      ['f', 'collect'],
    );
    bench.end(host.lastStart());
    assert.deepEqual(await ids(bench), []);
  });
});
