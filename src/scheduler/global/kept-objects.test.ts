// Goal: nothing counts as kept, as a repeat or as closed before it is; a payload that several records name lives as long as
// the last of them. Method: a disk and a host in the test's hands, which fail or answer when the test says so.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PlatformError } from '../../base/index.ts';
import { OBJECT_PART_BYTES } from '../../protocol/index.ts';
import { Bench, Disk, type HandHost, json, MANIFEST, settle, sizes } from './harness.test.ts';
import { INLINE_VALUE_BYTES_MAX } from './limits.ts';

const GROUPED = {
  ...MANIFEST,
  buckets: { ...MANIFEST.buckets, g: { on: { t: { kind: 'dynamicGroup', scope: 'bucket', run: 'collect' } } } },
} as const;

/** The next write fails, later ones do not. */
function failOnce(disk: Disk): void {
  const broken = Promise.reject(new Error('disk full'));
  broken.catch(() => {});
  disk.gate = broken;
}

function persist(bench: Bench, session: string, seq: number, value: string): void {
  const payload = json(value);
  const object = { bucket: 'plain', name: 'p', group: '', session, ...sizes(payload) };
  bench.say({ type: 'object-persist', session, seq, object }, payload);
}

const START = { app: 'a', entries: [{ function: 'f', input: json(1) }], mode: 'async' as const };

async function persistedValue(bench: Bench, name: string): Promise<unknown> {
  const source = await bench.door.openObject('a', 'plain', name, undefined, { start: 0, end: 100 });
  return JSON.parse(new TextDecoder().decode(await source.read(0, source.size)));
}

describe('a persisted object', () => {
  test('whose first write failed is written by its repeat, and acknowledged only then', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const { session } = await bench.door.startSession(START);
    failOnce(disk);
    persist(bench, session, 1, 'value');
    await settle();
    assert.equal(host.acks().at(-1)?.error?.code, 'E_INTERNAL');
    disk.gate = undefined;
    persist(bench, session, 2, 'value');
    await settle();
    assert.deepEqual(host.acks().at(-1), { type: 'object-ack', session, seq: 2 });
    const next = new Bench(disk, MANIFEST);
    assert.equal(await persistedValue(next, 'p'), 'value');
  });

  test('that is on its way is not acknowledged to a second execution before it is durable', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    bench.hostUp();
    const { session } = await bench.door.startSession(START);
    let open = () => {};
    disk.gate = new Promise((resolve) => {
      open = resolve;
    });
    persist(bench, session, 1, 'first');
    bench.hostDown();
    const second = bench.hostUp();
    persist(bench, session, 1, 'second');
    await settle();
    assert.deepEqual(second.acks(), []);
    open();
    await settle();
    assert.equal(second.acks().length, 1);
    assert.equal(await persistedValue(bench, 'p'), 'first');
  });
});

describe('from outside', () => {
  async function opened(bench: Bench): Promise<string> {
    const first = { app: 'a', bucket: 'plain', name: 'opens', payload: json(0), open: true };
    return (await bench.door.putObject(first)).session;
  }

  /** Answers of the host wait for the test. */
  function held(host: HandHost): { answer: (refusal?: PlatformError) => void }[] {
    const waiting: { answer: (refusal?: PlatformError) => void }[] = [];
    host.answer = () =>
      new Promise((resolve, reject) => {
        waiting.push({ answer: (refusal) => (refusal === undefined ? resolve({}) : reject(refusal)) });
      });
    return waiting;
  }

  test('a repeat of a put that is refused takes its place instead of being a duplicate of nothing', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const session = await opened(bench);
    const waiting = held(host);
    const put = () => bench.door.putObject({ app: 'a', session, bucket: 'plain', name: 'x', payload: json(1) });
    const first = put();
    await settle();
    let answered = false;
    const repeat = put().then((said) => {
      answered = true;
      return said;
    });
    await settle();
    assert.equal(answered, false, 'the first is not kept yet');
    waiting[0]?.answer(new PlatformError('E_QUOTA_EXCEEDED', 'full'));
    await assert.rejects(first, /full/);
    await settle();
    waiting[1]?.answer();
    assert.deepEqual(await repeat, { session, duplicate: false });
  });

  test('a repeat of a put that is kept is a duplicate', async () => {
    const bench = new Bench(new Disk(), MANIFEST);
    const host = bench.hostUp();
    const session = await opened(bench);
    const waiting = held(host);
    const put = () => bench.door.putObject({ app: 'a', session, bucket: 'plain', name: 'x', payload: json(1) });
    const both = [put(), put()];
    await settle();
    waiting[0]?.answer();
    assert.deepEqual(
      (await Promise.all(both)).map(({ duplicate }) => duplicate),
      [false, true],
    );
    assert.equal(waiting.length, 1, 'the host was told once');
  });

  test('a close that is refused leaves the bucket’s groups open', async () => {
    const bench = new Bench(new Disk(), GROUPED);
    const host = bench.hostUp();
    const session = await opened(bench);
    await bench.door.putObject({ app: 'a', session, bucket: 'g', name: 'x', payload: json(1), group: 'one' });
    const starts = host.starts().length;
    host.answer = async () => {
      throw new PlatformError('E_SESSION_ENDED', 'too late');
    };
    await assert.rejects(bench.door.closeGroup(session, 'g'), /too late/);
    assert.equal(host.starts().length, starts, 'nothing has fired');
    host.answer = async () => ({});
    await bench.door.closeGroup(session, 'g');
    assert.equal(host.starts().length, starts + 1);
  });
});

test('a large input outlives the first of two sessions that share it', async () => {
  const disk = new Disk();
  const bench = new Bench(disk, MANIFEST);
  const host = bench.hostUp();
  const bytes = new Uint8Array(INLINE_VALUE_BYTES_MAX + 1).fill(7);
  const input = { contentType: 'application/octet-stream', bytes };
  const first = await bench.door.startSession({ ...START, entries: [{ function: 'f', input }] });
  bench.end(host.lastStart());
  await settle();
  const next = new Bench(disk, MANIFEST);
  await next.coordinator.restore();
  next.hostUp();
  const retry = await next.door.retrySession(first.session);
  const { epochMs } = next.coordinator.ports.clock;
  await next.coordinator.archive.sweep(epochMs() + 25 * 3_600_000);
  await assert.rejects(next.door.getSession(first.session), { code: 'E_SESSION_UNKNOWN' });
  const third = new Bench(disk, MANIFEST);
  await third.coordinator.restore();
  assert.equal(third.hostUp().lastStart().session, retry.session);
  assert.equal(disk.folder.files.size, 1);
});

for (const [damage, spoil] of [
  ['is missing', () => undefined],
  ['is too short', (bytes: Uint8Array) => bytes.subarray(0, 100)],
  ['has a wrong byte', (bytes: Uint8Array) => bytes.with(bytes.length - 5, 8)],
] as const) {
  test(`a session whose input ${damage} is not executed, says so, and is when it was mended`, async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    bench.hostUp();
    const bytes = new Uint8Array(INLINE_VALUE_BYTES_MAX + 1).fill(7);
    const input = { contentType: 'application/octet-stream', bytes };
    const entries = [{ function: 'f', input }];
    const { session } = await bench.door.startSession({ ...START, entries, idempotencyKey: 'once' });
    const [[file, kept]] = [...disk.folder.files] as [[string, Uint8Array]];
    const spoilt = spoil(kept);
    if (spoilt === undefined) disk.folder.files.delete(file);
    else disk.folder.files.set(file, spoilt);

    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    assert.equal(next.hostUp().starts().length, 0);
    await assert.rejects(next.door.getSession(session), { code: 'E_CHECKSUM' });
    await assert.rejects(next.door.startSession({ ...START, entries, idempotencyKey: 'once' }), { code: 'E_CHECKSUM' });

    disk.folder.files.set(file, kept);
    const third = new Bench(disk, MANIFEST);
    await third.coordinator.restore();
    assert.equal(third.hostUp().lastStart().session, session);
  });
}

test('a wrong byte of a persisted object is found by who reads that part, also after a restart', async () => {
  const disk = new Disk();
  const bench = new Bench(disk, MANIFEST);
  bench.hostUp();
  const { session } = await bench.door.startSession(START);
  const bytes = new Uint8Array(2 * OBJECT_PART_BYTES + 5).fill(7);
  const payload = { contentType: 'application/octet-stream', bytes };
  const object = { bucket: 'plain', name: 'p', group: '', session, ...sizes(payload) };
  bench.say({ type: 'object-persist', session, seq: 1, object }, payload);
  await settle();
  const [[file, kept]] = [...disk.folder.files] as [[string, Uint8Array]];
  const next = new Bench(disk, MANIFEST);
  await next.coordinator.restore();
  for (const [at, part] of [
    [OBJECT_PART_BYTES + 3, 1],
    [bytes.length - 1, 2],
  ] as const) {
    disk.folder.files.set(file, kept.with(at, 8));
    for (const one of [bench, next]) {
      const source = await one.door.openObject('a', 'plain', 'p', undefined, { start: 0, end: 100 });
      for (const n of [0, 1, 2]) {
        const read = source.read(n * OBJECT_PART_BYTES, source.size);
        if (n === part) await assert.rejects(read, { code: 'E_CHECKSUM' });
        else assert.equal((await read)[0], 7);
      }
      source.close();
    }
  }
});

describe('a start that cannot be written', () => {
  test('is taken back: whoever repeats it has it done once', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    failOnce(disk);
    await assert.rejects(bench.door.startSession(START), /disk full/);
    const { session } = host.lastStart();
    assert.ok(host.messages.some((message) => message.type === 'session-cancel' && message.session === session));
  });

  test('with a key is written by its repeat, and acknowledged only then', async () => {
    const disk = new Disk();
    const bench = new Bench(disk, MANIFEST);
    const host = bench.hostUp();
    const start = () => bench.door.startSession({ ...START, idempotencyKey: 'once' });
    failOnce(disk);
    await assert.rejects(start(), /disk full/);
    await assert.rejects(start(), /disk full/);
    disk.gate = undefined;
    const { session } = await start();
    assert.equal(host.starts().length, 1);
    const next = new Bench(disk, MANIFEST);
    await next.coordinator.restore();
    assert.equal(next.hostUp().lastStart().session, session);
  });
});
