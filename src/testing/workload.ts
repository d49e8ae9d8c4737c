// What clients do in one run: deploy, start, put, cancel, look, at random times.
//
// Owns: the choice of requests. Does not own: their answers (history), whether they are right (checkers).

import type { Prng } from '../base/index.ts';
import type { StartRequest, TriggerSpec } from '../protocol/index.ts';
import { type Client, isUnanswered, outcomeValue, payloadOf } from './clients.ts';
import type { Call, History } from './history.ts';
import { type AppScript, bundleOf } from './script.ts';
import type { World } from './world.ts';

export interface WorkloadOptions {
  readonly requests: number;
  /** Requests begin within this time. */
  readonly spanMs: number;
}

export class Workload {
  readonly scripts: readonly AppScript[];
  readonly #world: World;
  readonly #client: Client;
  readonly #random: Prng;
  readonly #options: WorkloadOptions;
  /** Sessions that a client has heard of. */
  readonly #known: string[] = [];
  #open = 0;

  constructor(world: World, client: Client, scripts: readonly AppScript[], options: WorkloadOptions) {
    this.#world = world;
    this.#client = client;
    this.#random = world.random('workload');
    this.scripts = scripts;
    this.#options = options;
  }

  /** No request is on its way, and none will begin. */
  get isOver(): boolean {
    return this.#open === 0;
  }

  begin(): void {
    for (const script of this.scripts) this.#do(() => this.#deploy(script));
    for (let i = 0; i < this.#options.requests; i++) {
      const atMs = 150 + this.#random.float() * this.#options.spanMs;
      const act = this.#pick();
      this.#do(async () => {
        await this.#client.pause(atMs);
        await act();
      });
    }
  }

  /** At the end: what every session that a client has heard of, or that has run, came to. */
  async look(history: History): Promise<void> {
    const sessions = new Set<string>();
    for (const { answer } of history.calls) {
      const { session } = (answer?.ok === true ? (answer.value ?? {}) : {}) as { session?: string };
      if (session !== undefined) sessions.add(session);
    }
    for (const { session } of history.executions) sessions.add(session);
    for (const session of sessions) {
      await this.#client.insist('session', { session }, (plane) => plane.getSession(session));
      await this.#result(session);
    }
  }

  #do(act: () => Promise<unknown>): void {
    this.#open++;
    act().then(
      () => this.#open--,
      (error) => this.#world.caught(error),
    );
  }

  #pick(): () => Promise<unknown> {
    const script = this.#random.pick(this.scripts);
    const share = this.#random.float();
    if (share < 0.4) return this.#start(script);
    if (share < 0.6) return this.#keyed(script);
    if (share < 0.7) return this.#put(script);
    if (share < 0.8) return this.#openSession(script);
    if (share < 0.86) return () => this.#act('cancel');
    if (share < 0.9) return () => this.#act(this.#random.float() < 0.5 ? 'retry' : 'fork');
    if (share < 0.94) return this.#redeploy(script);
    if (share < 0.97) return this.#trigger(script);
    return () => this.#lookAround(script);
  }

  #deploy(script: AppScript): Promise<Call> {
    const { app } = script;
    return this.#client.insist('deploy', { app }, (plane) => plane.deploy(app, bundleOf(script)));
  }

  #start(script: AppScript): () => Promise<unknown> {
    const random = this.#random;
    const names = Object.keys(script.functions);
    const count = random.float() < 0.15 ? 2 : 1;
    // What is not the entry gets an input, so that its start is not taken for a firing without objects.
    const entries = Array.from({ length: count }, (_, i) => {
      const name = random.float() < 0.8 ? script.entry : random.pick(names);
      const hasInput = name !== script.entry || random.float() < 0.5;
      return { function: name, ...(hasInput ? { input: payloadOf({ input: i }) } : {}) };
    });
    const mode = random.float() < 0.5 ? ('sync' as const) : ('async' as const);
    const request: StartRequest = {
      app: script.app,
      entries,
      mode,
      ...(random.float() < 0.15 ? { timeoutMs: 1 + random.int(100) } : {}),
      ...(mode === 'async' && random.float() < 0.2 ? { delayMs: random.int(200) } : {}),
      ...(mode === 'async' && random.float() < 0.15 ? { durability: 'none' as const } : {}),
    };
    return () => this.#startOnce(request);
  }

  /** The same start several times, at once and one after the other. */
  #keyed(script: AppScript): () => Promise<unknown> {
    const random = this.#random;
    const idempotencyKey = `k${random.int(6)}`;
    const body = random.float() < 0.9 ? 0 : random.int(3);
    const request: StartRequest = {
      app: script.app,
      entries: [{ function: script.entry, input: payloadOf({ body }) }],
      mode: random.float() < 0.5 ? 'sync' : 'async',
      idempotencyKey,
    };
    const times = 1 + random.int(3);
    return () => Promise.all(Array.from({ length: times }, () => this.#startOnce(request)));
  }

  async #startOnce(request: StartRequest): Promise<void> {
    const { app, mode, idempotencyKey: key, timeoutMs, delayMs, durability } = request;
    const detail = {
      app,
      mode,
      functions: request.entries.map((entry) => entry.function),
      ...(key === undefined ? {} : { key, body: new TextDecoder().decode(request.entries[0]?.input?.bytes) }),
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(delayMs === undefined ? {} : { delayMs }),
      ...(durability === undefined ? {} : { durability }),
    };
    const ask = key === undefined ? this.#client.ask.bind(this.#client) : this.#client.insist.bind(this.#client);
    const call = await ask('start', detail, async (plane) => {
      const { session, outcome } = await plane.startSession(request);
      return mode === 'async' ? { session } : { session, outcome: outcomeValue(await outcome) };
    });
    this.#hear(call);
    if (mode === 'async' && call.answer?.ok === true && this.#random.float() < 0.4) {
      await this.#client.pause(this.#random.int(300));
      await this.#result((call.answer.value as { session: string }).session);
    }
  }

  #put(script: AppScript): () => Promise<unknown> {
    const random = this.#random;
    const bucket = random.pick(Object.keys(script.buckets));
    const name = `n${random.int(4)}`;
    const body = random.float() < 0.8 ? 0 : random.int(3);
    return () => this.#putObject(script.app, bucket, name, body);
  }

  #putObject(app: string, bucket: string | undefined, name: string, body: number, session?: string, open?: boolean) {
    if (bucket === undefined) return Promise.resolve(undefined);
    const detail = {
      app,
      bucket,
      name,
      body,
      ...(session === undefined ? {} : { session }),
      ...(open ? { open } : {}),
    };
    const request = {
      app,
      bucket,
      name,
      payload: payloadOf({ by: 'outside', body }),
      ...(session === undefined ? {} : { session }),
      ...(open === true ? { open, idleTimeoutMs: 500 } : {}),
    };
    return this.#client
      .insist('put', detail, (plane) => plane.putObject(request))
      .then((call) => {
        this.#hear(call);
        return call;
      });
  }

  #openSession(script: AppScript): () => Promise<unknown> {
    const random = this.#random;
    const bucket = random.pick(Object.keys(script.buckets));
    const opener = `open${random.int(1_000)}`;
    const puts = random.int(4);
    const end = random.int(3);
    return async () => {
      const call = await this.#putObject(script.app, bucket, opener, 0, undefined, true);
      if (call?.answer?.ok !== true || bucket === undefined) return;
      const { session } = call.answer.value as { session: string };
      for (let i = 0; i < puts; i++) {
        await this.#putObject(script.app, bucket, `n${this.#random.int(4)}`, 0, session);
        await this.#client.pause(this.#random.int(20));
      }
      if (end === 0) {
        await this.#client.insist('close', { session, bucket }, (plane) => plane.closeGroup(session, bucket));
      } else if (end === 1) {
        const join = { count: this.#random.int(4) };
        await this.#client.insist('join', { session, bucket, ...join }, (plane) => plane.join(session, bucket, join));
      }
    };
  }

  async #act(what: 'cancel' | 'retry' | 'fork'): Promise<void> {
    const session = this.#known[this.#random.int(Math.max(1, this.#known.length))];
    if (session === undefined) return;
    if (what === 'cancel') {
      await this.#client.insist(what, { session }, (plane) => plane.cancelSession(session));
      return;
    }
    const call = await this.#client.ask(what, { of: session }, (plane) =>
      what === 'retry' ? plane.retrySession(session) : plane.forkSession(session),
    );
    this.#hear(call);
  }

  /** The same app with one function more: another version, whose triggers keep their names. */
  #redeploy(script: AppScript): () => Promise<unknown> {
    const functions = { ...script.functions, [`r${this.#random.int(1_000)}`]: { options: {}, steps: [] } };
    return () => this.#deploy({ ...script, functions });
  }

  #trigger(script: AppScript): () => Promise<unknown> {
    const { app } = script;
    const bucket = this.#random.pick(Object.keys(script.buckets));
    const isRemoval = this.#random.float() < 0.4;
    const spec: TriggerSpec = { kind: 'immediate', run: 'extra' };
    if (bucket === undefined) return () => Promise.resolve();
    if (isRemoval) {
      return () =>
        this.#client.insist('trigger', { app, bucket, trigger: 'late', spec: null }, (plane) =>
          plane.deleteTrigger(app, bucket, 'late'),
        );
    }
    return () =>
      this.#client.insist('trigger', { app, bucket, trigger: 'late', spec }, (plane) =>
        plane.putTrigger(app, bucket, 'late', spec),
      );
  }

  async #lookAround(script: AppScript): Promise<void> {
    const { app } = script;
    await this.#client.ask('objects', { app }, (plane) => plane.objects({ app }));
    await this.#client.ask('list', { app }, (plane) => plane.listSessions({ app, limit: 10 }));
    const session = this.#known[this.#random.int(Math.max(1, this.#known.length))];
    if (session !== undefined) await this.#client.ask('trace', { session }, (plane) => plane.trace(session));
  }

  #result(session: string): Promise<Call> {
    return this.#client.insist('result', { session }, async (plane) => {
      const outcome = await plane.sessionResult(session, 0);
      return { of: session, outcome: outcome === undefined ? null : outcomeValue(outcome) };
    });
  }

  #hear(call: Call): void {
    if (call.answer?.ok !== true || isUnanswered(call)) return;
    const { session } = call.answer.value as { session?: string };
    if (session !== undefined) this.#known.push(session);
  }
}
