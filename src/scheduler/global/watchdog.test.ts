// Goal: a live session that cannot go on is parked, says why, and goes on when somebody asks; nothing else is touched.
// Method: a coordinator over memory; its host forgets a session, or says that it cannot go on.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Bench, Disk, json, MANIFEST, parsed, settle } from './harness.test.ts';
import { WATCHDOG_MS } from './limits.ts';

const sync = { app: 'a', entries: [{ function: 'f', input: json(1) }], mode: 'sync' as const };
const async = { ...sync, mode: 'async' as const };

async function look(bench: Bench): Promise<void> {
  bench.advance(WATCHDOG_MS);
  await settle();
}

/** The host answers that it does not have these. */
function forgetful(bench: Bench, unknown: () => readonly string[]) {
  const host = bench.hostUp();
  host.answer = async (request) => (request.type === 'sessions-check' ? { unknown: unknown() } : {});
  return host;
}

test('a session that its host does not have is parked at the second look, told apart, and resumed', async () => {
  const bench = new Bench(new Disk(), MANIFEST);
  await bench.coordinator.restore();
  const lost: string[] = [];
  const host = forgetful(bench, () => lost);
  const kept = await bench.door.startSession(async);
  const { session, outcome } = await bench.door.startSession(sync);
  lost.push(session);
  await look(bench);
  assert.equal((await bench.door.getSession(session)).state, 'running', 'once may be chance');
  await look(bench);
  const record = await bench.door.getSession(session);
  assert.equal(record.state, 'parked');
  assert.equal(record.error?.code, 'E_PARKED');
  assert.match(record.error?.message ?? '', /its app host does not have it/);
  const told = await outcome;
  assert.equal(told.ok === false && told.error.code, 'E_PARKED', 'its caller is not left waiting');
  const result = await bench.door.sessionResult(session, 1_000);
  assert.equal(result?.ok === false && result.error.code, 'E_PARKED');
  for (const [state, ids] of [
    ['parked', [session]],
    ['running', [kept.session]],
  ] as const) {
    const { sessions } = await bench.door.listSessions({ limit: 10, state });
    assert.deepEqual(
      sessions.map((one) => one.session),
      ids,
    );
  }
  assert.match(bench.reports.join(), /is parked/);

  lost.length = 0;
  assert.deepEqual(await bench.door.retrySession(session), { session });
  const start = host.lastStart();
  assert.deepEqual([start.session, start.run], [session, 2]);
  assert.equal((await bench.door.getSession(session)).state, 'running');
  bench.end({ session, run: 1 }, 'of the execution before');
  bench.end(start, 'resumed');
  const end = await bench.door.sessionResult(session, 0);
  assert.equal(end?.ok === true && parsed(end.payload), 'resumed');
});

test('a session that ended while it was asked for is left alone', async () => {
  const bench = new Bench(new Disk(), MANIFEST);
  await bench.coordinator.restore();
  const lost: string[] = [];
  const host = forgetful(bench, () => lost);
  const { session } = await bench.door.startSession(async);
  lost.push(session);
  await look(bench);
  bench.advance(WATCHDOG_MS);
  bench.end(host.lastStart(), 'done');
  await settle();
  assert.equal((await bench.door.getSession(session)).state, 'completed');
});

test('a session that its host gives up as stuck is parked; one executed again meanwhile is not', async () => {
  const bench = new Bench(new Disk(), MANIFEST);
  bench.hostUp();
  const { session } = await bench.door.startSession(async);
  const parked = (run: number) =>
    bench.say({
      type: 'session-ended',
      session,
      run,
      state: 'parked',
      error: { code: 'E_PARKED', message: 'The session cannot go on: f is queued.' },
      unfired: [],
      counts: { invocations: 1, attempts: 0, objects: 0, bytes: 0, firings: 0 },
      meteredMs: 0,
    });
  bench.hostDown();
  const host = bench.hostUp();
  parked(1);
  assert.equal((await bench.door.getSession(session)).state, 'running');
  parked(2);
  assert.equal((await bench.door.getSession(session)).state, 'parked');
  bench.hostDown();
  assert.equal((await bench.door.getSession(session)).state, 'parked', 'a lost host does not concern it');
  const next = bench.hostUp();
  assert.equal(next.starts().length, 0);
  await bench.door.retrySession(session);
  bench.end(next.lastStart(), 1);
  assert.equal((await bench.door.getSession(session)).state, 'completed');
  assert.equal(host.starts().length, 1);
});

test('a parked session can be cancelled, ends at its deadline, and is executed again after a restart', async () => {
  const disk = new Disk();
  const bench = new Bench(disk, MANIFEST);
  await bench.coordinator.restore();
  const lost: string[] = [];
  forgetful(bench, () => lost);
  const ids: string[] = [];
  for (const timeoutMs of [3 * WATCHDOG_MS, 100 * WATCHDOG_MS, 100 * WATCHDOG_MS]) {
    ids.push((await bench.door.startSession({ ...async, timeoutMs })).session);
  }
  lost.push(...ids);
  await look(bench);
  await look(bench);
  await look(bench);
  const [first = '', second = '', third = ''] = ids;
  assert.equal((await bench.door.getSession(first)).error?.code, 'E_TIMEOUT');
  await bench.door.cancelSession(second);
  assert.equal((await bench.door.getSession(second)).state, 'cancelled');
  assert.equal((await bench.door.getSession(third)).state, 'parked');
  const next = new Bench(disk, MANIFEST);
  await next.coordinator.restore();
  assert.deepEqual(
    next
      .hostUp()
      .starts()
      .map((start) => start.session),
    [third],
  );
});
