// Goal: no invocation and no wake is lost with an instance that dies, starts or stands still. Method: a real host whose
// instances are the test's own hands on the shared memory; every case was found by the simulator first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ByteReader, Slab } from '../../bucket/index.ts';
import type { HostToServer, Manifest } from '../../protocol/index.ts';
import { ABORT_GRACE_MS } from '../../scheduler/local/index.ts';
import {
  Bells,
  EventRingWriter,
  HOST_BELL,
  type InstanceBoot,
  type InstanceToHost,
  readTicket,
  type Ticket,
  Tickets,
  type WordWaits,
  writeStarted,
} from '../shared/index.ts';
import { Host } from './host.ts';
import { WATCH_MS } from './limits.ts';
import type { HostThreadOptions } from './ports.ts';

const MANIFEST: Manifest = {
  entry: 'f',
  functions: { f: { kind: 'fn', options: { timeoutMs: 1_000, concurrency: 4 } } },
  buckets: {},
};

class Hands {
  readonly boot: InstanceBoot;
  readonly tickets: Tickets;
  readonly ring: EventRingWriter;
  readonly #options: HostThreadOptions;
  readonly #bells: Bells;
  woken = 0;
  isTerminated = false;

  constructor(options: HostThreadOptions, waits: WordWaits) {
    this.#options = options;
    this.boot = options.data as InstanceBoot;
    this.tickets = new Tickets(this.boot.pools[this.boot.pool]?.tickets as SharedArrayBuffer, this.boot.slot + 2);
    this.#bells = new Bells(this.boot.bells, waits);
    this.ring = new EventRingWriter(this.boot.ring, () => assert.fail('the ring is large enough'));
  }

  sleep(): void {
    this.#bells.sleep(
      this.boot.slot,
      () => false,
      () => this.woken++,
    );
  }

  ready(): void {
    this.#options.onMessage({ type: 'ready', loadMs: 0, initMs: 0 } satisfies InstanceToHost);
  }

  claim(): { ticket: Ticket; slot: number } {
    const claimed = this.tickets.claim(() => true);
    assert.ok(claimed !== undefined, 'there is an offer');
    return { ticket: readTicket(new ByteReader(claimed.body)), slot: claimed.slot };
  }

  begin(atMs: number): void {
    const { ticket, slot } = this.claim();
    writeStarted(this.ring, ticket, 0, atMs);
    this.tickets.done(slot);
  }

  ringHost(): void {
    this.#bells.ring(HOST_BELL);
  }

  stopped(sessionNo: number): void {
    this.#options.onMessage({ type: 'stopped', sessionNo } satisfies InstanceToHost);
  }

  die(): void {
    this.#options.onExit(1, new Error('killed'));
  }

  terminate(): void {
    this.isTerminated = true;
  }
}

class Bench {
  readonly host: Host;
  readonly instances: Hands[] = [];
  readonly sent: HostToServer[] = [];
  nowMs = 1_000;
  #timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  #sessions = 0;

  constructor(instancesMax = 2) {
    const sleepers = new Map<number, (() => void)[]>();
    const waits: WordWaits = {
      wait: (_words, index, _value, wake) => void sleepers.set(index, [...(sleepers.get(index) ?? []), wake]),
      notify: (_words, index) => {
        const wakes = sleepers.get(index) ?? [];
        sleepers.delete(index);
        for (const wake of wakes) queueMicrotask(wake);
      },
      block: () => assert.fail('nobody waits'),
    };
    const limits = { objectBytesMax: 2 ** 20, objectOverBytesMax: 2 ** 20, spillBytesMax: 2 ** 20 };
    this.host = new Host(
      {
        app: 'a',
        version: 'v',
        node: 'local',
        folder: '/',
        main: '',
        socket: '',
        token: '',
        env: {},
        secrets: {},
        limits: { ...limits, instancesMax, inlineBytesMax: 16_384, verifyObjects: false },
      },
      MANIFEST,
      {
        monotonicMs: () => this.nowMs,
        epochMs: () => this.nowMs,
        setTimer: (atMs, callback) => {
          const timer = { atMs, callback };
          this.#timers.push(timer);
          return () => {
            this.#timers = this.#timers.filter((other) => other !== timer);
          };
        },
        afterTurn: (callback) => queueMicrotask(callback),
        seed: 1,
        clockOriginMs: 0,
        startThread: (options) => {
          const hands = new Hands(options, waits);
          this.instances.push(hands);
          return { post: () => {}, terminate: () => hands.terminate() };
        },
        waits,
        send: (message) => void this.sent.push(message),
        exit: () => assert.fail('the host goes on'),
      },
    );
    this.host.start();
  }

  /** The i-th that was started. */
  instance(i: number): Hands {
    const hands = this.instances[i];
    assert.ok(hands !== undefined, `instance ${i} was started`);
    return hands;
  }

  /** @param bytes its input, large enough for the object store. */
  session(number = this.#sessions++, bytes?: Uint8Array): void {
    const session = `e1-${number}-1`;
    const header = { bucket: '$input', name: 'input', group: '', contentType: 'application/octet-stream' };
    const entries = [
      { function: 'f', inputs: bytes === undefined ? [] : [{ ...header, session, size: bytes.length }] },
    ];
    this.host.receive(
      { type: 'session-start', session, run: 1, entries, priority: 0, durable: false },
      bytes === undefined ? [] : [bytes],
    );
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 20; i++) await Promise.resolve();
    this.host.checkInvariants();
  }

  /** Time passes, in steps of the host's own timers. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.nowMs = Math.max(this.nowMs, due.atMs);
      due.callback();
      await this.settle();
    }
    this.nowMs = untilMs;
  }
}

async function twoSleeping(): Promise<{ bench: Bench; first: Hands; second: Hands }> {
  const bench = new Bench();
  const first = bench.instance(0);
  first.sleep();
  first.ready();
  const second = bench.instance(1);
  second.sleep();
  second.ready();
  await bench.settle();
  return { bench, first, second };
}

test('what an instance had claimed and not begun when it died is on offer again', async () => {
  const { bench, first, second } = await twoSleeping();
  bench.session();
  await bench.settle();
  first.claim();
  first.die();
  await bench.settle();
  assert.equal(second.woken, 1, 'the other one is woken for it');
  second.begin(bench.nowMs);
});

test('what it had begun when it died, and not yet taken out of its slot, is tried once more, not twice', async () => {
  const { bench, first, second } = await twoSleeping();
  bench.session();
  await bench.settle();
  writeStarted(first.ring, first.claim().ticket, 0, bench.nowMs);
  first.die();
  await bench.settle();
  assert.equal(second.claim().ticket.attempt, 2);
  assert.equal(second.tickets.readyCount, 0, 'it is on offer once');
});

test('a wake that went to one that died goes to another', async () => {
  const { bench, first, second } = await twoSleeping();
  bench.session();
  await bench.settle();
  assert.deepEqual([first.woken, second.woken], [1, 0]);
  first.die();
  await bench.settle();
  assert.equal(second.woken, 1);
});

test('what is put on offer before an instance is ready wakes it when it is', async () => {
  const bench = new Bench(1);
  const only = bench.instance(0);
  only.sleep();
  bench.session();
  await bench.settle();
  assert.equal(only.woken, 0, 'nobody may wake it yet');
  only.ready();
  await bench.settle();
  assert.equal(only.woken, 1);
});

test('an instance that begins something without an end before it has told anything is timed out', async () => {
  const bench = new Bench(1);
  const only = bench.instance(0);
  bench.session();
  await bench.settle();
  only.begin(bench.nowMs);
  only.ready();
  await bench.pass(2 * WATCH_MS + 1_000);
  assert.ok(bench.sent.some((message) => message.type === 'session-ended' && message.error?.code === 'E_TIMEOUT'));
  await bench.pass(ABORT_GRACE_MS + 2 * WATCH_MS);
  assert.ok(only.isTerminated);
});

test('with concurrency, an instance none of whose attempts stops is replaced; with one that has time left it is not', async () => {
  const bench = new Bench(1);
  const only = bench.instance(0);
  bench.session();
  bench.session();
  await bench.settle();
  only.begin(bench.nowMs);
  only.ready();
  only.ringHost();
  await bench.pass(800);
  only.begin(bench.nowMs);
  only.ringHost();
  await bench.pass(ABORT_GRACE_MS + 500);
  assert.ok(!only.isTerminated, 'the second attempt has time left');
  await bench.pass(1_000);
  assert.ok(only.isTerminated);
});

test('a session that has ended, and whose overtaken handler still runs, does not begin again when it is given again', async () => {
  const { bench, first, second } = await twoSleeping();
  bench.session(0);
  await bench.settle();
  first.begin(bench.nowMs);
  first.ringHost();
  await bench.pass(1_000 + WATCH_MS);
  assert.equal(bench.sent.filter(({ type }) => type === 'session-ended').length, 1, 'it was timed out');
  assert.ok(!first.isTerminated, 'its handler has time to stop');
  bench.session(0);
  await bench.settle();
  assert.equal(second.tickets.readyCount, 0);
});

test('the objects of a cancelled session stay while an instance may still begin something of it', async () => {
  const { bench, first, second } = await twoSleeping();
  const used = new Slab(first.boot.slab, 1);
  const before = used.usedBytes;
  bench.session(0, new Uint8Array(100_000).fill(7));
  await bench.settle();
  const { ticket, slot } = first.claim();
  bench.host.receive(
    { type: 'session-cancel', session: 'e1-0-1', error: { code: 'E_CANCELLED', message: 'enough' } },
    [],
  );
  await bench.settle();
  second.stopped(ticket.sessionNo);
  assert.ok(used.usedBytes > before, 'the first instance has not said that it begins nothing');
  writeStarted(first.ring, ticket, 0, bench.nowMs);
  first.tickets.done(slot);
  first.stopped(ticket.sessionNo);
  await bench.settle();
  assert.ok(used.usedBytes > before, 'it had begun a handler, which reads');
  first.die();
  await bench.settle();
  assert.equal(used.usedBytes, before);
});

test('a host whose first instance dies before it is ready starts another', async () => {
  const bench = new Bench();
  bench.instance(0).die();
  await bench.settle();
  await bench.pass(1_000);
  bench.instance(1).ready();
  assert.ok(bench.sent.some(({ type }) => type === 'ready'));
});
