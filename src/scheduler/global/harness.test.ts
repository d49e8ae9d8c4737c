// A coordinator over memory: virtual time, a store that outlives it, hosts whose answers the test gives.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { EpochMs, MonotonicMs } from '../../base/index.ts';
import { PlatformError, Prng } from '../../base/index.ts';
import { type DataFolder, MemoryKeyValueStore } from '../../platform/index.ts';
import type { HostRequest, HostToServer, Manifest, Payload, ServerToHost } from '../../protocol/index.ts';
import { Coordinator } from './coordinator.ts';
import { Door } from './door.ts';
import type { HostLink } from './ports.ts';
import { RecordStore } from './record-store.ts';

export function json(value: unknown): Payload {
  return { contentType: 'application/json', bytes: new TextEncoder().encode(JSON.stringify(value)) };
}

export function parsed(payload: Payload): unknown {
  return JSON.parse(new TextDecoder().decode(payload.bytes));
}

/** Lets promises settle: everything here is in memory, so a few turns are enough. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
}

class MemoryFolder implements DataFolder {
  readonly path = '/memory';
  readonly files = new Map<string, Uint8Array>();
  async write(path: string, bytes: Uint8Array): Promise<void> {
    await Promise.resolve();
    this.files.set(path, bytes.slice());
  }
  async read(path: string, range?: { start: number; end: number }): Promise<Uint8Array | undefined> {
    const bytes = this.files.get(path);
    return range === undefined ? bytes?.slice() : bytes?.slice(range.start, range.end);
  }
  async remove(path: string): Promise<void> {
    this.files.delete(path);
  }
  async list(path: string): Promise<readonly string[]> {
    const names = [...this.files.keys()].filter((name) => name.startsWith(`${path}/`));
    return names.map((name) => name.slice(path.length + 1));
  }
  async link(): Promise<void> {}
}

/** What outlives a coordinator. */
export class Disk {
  readonly store = new MemoryKeyValueStore();
  readonly folder = new MemoryFolder();
  boots = 0;
  /** While set, transactions wait: what is on disk is only what was before. */
  gate: Promise<void> | undefined;

  records(): RecordStore {
    const { store } = this;
    const gated = {
      get: (key: string) => store.get(key),
      range: (range: Parameters<typeof store.range>[0]) => store.range(range),
      transaction: async (changes: Parameters<typeof store.transaction>[0]) => {
        await this.gate;
        await store.transaction(changes);
      },
      close: () => store.close(),
    };
    return new RecordStore(gated, this.folder, this.boots);
  }
}

type Start = Extract<ServerToHost, { type: 'session-start' }>;

/** A host in the test's hands. */
export class HandHost implements HostLink {
  readonly messages: ServerToHost[] = [];
  readonly lanes = { give: () => false, learn: () => {}, done: () => {} };
  readonly requests: HostRequest[] = [];
  dead = false;
  answer: (request: HostRequest) => Promise<Partial<Extract<HostToServer, { type: 'reply' }>>> = async () => ({});

  send(message: ServerToHost): void {
    this.messages.push(message);
  }

  async request(message: HostRequest) {
    this.requests.push(message);
    const said = await this.answer(message);
    if (this.dead) throw new PlatformError('E_NODE_LOST', 'dead');
    return { reply: { type: 'reply' as const, requestId: 0, ...said }, blobs: [] };
  }

  starts(): Start[] {
    return this.messages.filter((message) => message.type === 'session-start');
  }

  lastStart(): Start {
    const start = this.starts().at(-1);
    assert.ok(start, 'a session was started');
    return start;
  }

  acks(): Extract<ServerToHost, { type: 'object-ack' }>[] {
    return this.messages.filter((message) => message.type === 'object-ack');
  }
}

export class Bench {
  readonly coordinator: Coordinator;
  readonly door: Door;
  readonly needed: string[] = [];
  readonly unused: string[] = [];
  readonly reports: string[] = [];
  manifest: Manifest;
  version = 'v1';
  nowMs = 0;
  #timers: { atMs: number; callback: () => void }[] = [];
  host: HandHost | undefined;

  constructor(disk: Disk, manifest: Manifest, nowMs = 0) {
    this.nowMs = nowMs;
    this.manifest = manifest;
    const prng = new Prng(7);
    this.coordinator = new Coordinator(
      {
        clock: {
          monotonicMs: () => this.nowMs as MonotonicMs,
          epochMs: () => (1_700_000_000_000 + this.nowMs) as EpochMs,
        },
        timers: {
          set: (atMs, callback) => {
            const timer = { atMs, callback };
            this.#timers.push(timer);
            return () => {
              this.#timers = this.#timers.filter((other) => other !== timer);
            };
          },
        },
        random: { uint32: () => prng.uint32(), bytes: (count) => new Uint8Array(count) },
        digest: (parts) => {
          const hash = createHash('sha256');
          for (const part of parts) hash.update(part).update('|');
          return hash.digest('hex');
        },
        records: disk.records(),
        apps: {
          current: (app) => (app === 'a' ? { version: this.version, manifest: this.manifest } : undefined),
          hasVersion: (app) => app === 'a',
          names: () => ['a'],
        },
        hosts: {
          need: (_app, version) => void this.needed.push(version),
          unused: (_app, version) => void this.unused.push(version),
        },
        report: (what, error) => void this.reports.push(`${what}: ${(error as Error).message}`),
      },
      ++disk.boots,
    );
    this.door = new Door(this.coordinator);
    this.coordinator.configure('a');
  }

  get timerCount(): number {
    return this.#timers.length;
  }

  /** The host of the current version comes up. */
  hostUp(version = this.version): HandHost {
    const host = new HandHost();
    this.host = host;
    this.coordinator.hostReady('a', version, host);
    return host;
  }

  hostDown(version = this.version): void {
    if (this.host !== undefined) this.host.dead = true;
    const error = { code: 'E_NODE_LOST' as const, message: 'killed' };
    this.coordinator.hostLost('a', version, { phase: 'ready', error });
  }

  say(message: HostToServer, blob?: Payload, version = this.version): void {
    this.coordinator.hostMessage('a', version, message, blob === undefined ? [] : [blob.bytes]);
  }

  /** The host ends a session with this value. */
  end(start: { session: string; run: number }, value: unknown = null): void {
    const payload = json(value);
    this.say(
      {
        type: 'session-ended',
        session: start.session,
        run: start.run,
        state: 'completed',
        result: { contentType: payload.contentType, size: payload.bytes.length },
        unfired: [],
        counts: { invocations: 1, attempts: 1, objects: 0, bytes: 0, firings: 0 },
        meteredMs: 1,
      },
      payload,
    );
  }

  /** The host sends an object into a bucket with a bucket-scoped trigger. */
  object(session: string, seq: number, name: string, durable: boolean): void {
    const payload = json(name);
    const header = { bucket: 'b', name, group: '', session, ...sizes(payload) };
    this.say({ type: 'bucket-object', session, seq, object: header, durable }, payload);
  }

  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    for (;;) {
      const due = this.#timers.filter(({ atMs }) => atMs <= untilMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers = this.#timers.filter((other) => other !== due);
      this.nowMs = Math.max(this.nowMs, due.atMs);
      due.callback();
    }
    this.nowMs = untilMs;
  }
}

export function sizes(payload: Payload): { contentType: string; size: number } {
  return { contentType: payload.contentType, size: payload.bytes.length };
}

export const MANIFEST: Manifest = {
  entry: 'f',
  functions: { f: { kind: 'fn' }, checked: { kind: 'fn', options: { input: true } }, collect: { kind: 'fn' } },
  buckets: {
    b: { on: { t: { kind: 'byBatchSize', size: 2, run: 'collect' } } },
    plain: {},
  },
};
