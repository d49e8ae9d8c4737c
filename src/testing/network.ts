// Connections between the simulated processes: streams of frames, as over a Unix socket.
//
// NE1. A connection loses nothing as long as it lives, and keeps its order; between two connections there is none.
// NE2. What was written before an end closes arrives; when it is cut, what is under way is lost, and both ends hear of it.

import { assert } from '../base/index.ts';
import type { Channel, ChannelListener, ChannelOptions } from '../platform/index.ts';
import { encodeFrame, FrameDecoder } from '../protocol/index.ts';
import type { Actor, World } from './world.ts';

export class SimNetwork {
  readonly #world: World;
  readonly #listeners = new Map<string, { actor: Actor; accept: (channel: Channel) => void }>();
  readonly #connections = new Set<Connection>();
  #addresses = 0;
  /** How long a frame is under way, at the most. */
  latencyMs = 0.2;
  /** For planted bugs: which blobs a frame really has; undefined: it is lost. */
  tamper: ((header: unknown, blobs: readonly Uint8Array[]) => readonly Uint8Array[] | undefined) | undefined;
  /** Every frame that arrives, before its receiver sees it. */
  onFrame: ((from: Actor, to: Actor, header: unknown, blobs: readonly Uint8Array[]) => void) | undefined;

  constructor(world: World) {
    this.#world = world;
  }

  listen(actor: Actor, accept: (channel: Channel) => void): ChannelListener {
    const address = `sim:${++this.#addresses}`;
    this.#listeners.set(address, { actor, accept });
    return {
      address,
      close: async () => {
        this.#listeners.delete(address);
        for (const one of [...this.#connections]) if (one.ends[1].actor === actor) one.ends[1].close();
      },
    };
  }

  connect(actor: Actor, address: string, options: ChannelOptions): Promise<Channel> {
    const world = this.#world;
    return new Promise((resolve, reject) => {
      const refused = () =>
        world.soon(actor, this.latencyMs, 'connection refused', () =>
          reject(new Error(`nobody listens at ${address}`)),
        );
      const { actor: server } = this.#listeners.get(address) ?? {};
      if (server === undefined || !server.alive) {
        refused();
        return;
      }
      const connection = new Connection(world, this, actor, server, options);
      this.#connections.add(connection);
      world.soon(server, this.latencyMs, `connection from ${actor.name}`, () => {
        const listener = this.#listeners.get(address);
        if (listener === undefined || !connection.isOpen) {
          connection.cut();
          refused();
          return;
        }
        listener.accept(connection.ends[1]);
        world.soon(actor, this.latencyMs, 'connected', () => {
          if (!connection.isOpen) {
            reject(new Error('the connection was closed before it was there'));
            return;
          }
          connection.isEstablished = true;
          resolve(connection.ends[0]);
        });
      });
    });
  }

  /** The actor is dead: what it had not written is lost. */
  died(actor: Actor): void {
    for (const one of [...this.#connections]) for (const end of one.ends) if (end.actor === actor) end.died();
  }

  /** Cuts one of the connections. @returns whether there was one. */
  cutOne(pick: (count: number) => number): boolean {
    const all = [...this.#connections].filter((one) => one.isOpen && one.isEstablished);
    const one = all[pick(Math.max(1, all.length))];
    one?.cut();
    return one !== undefined;
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }
}

class Connection {
  /** Who connected, and who listens. */
  readonly ends: readonly [End, End];
  /** Both ends know of it. */
  isEstablished = false;
  readonly #network: SimNetwork;

  constructor(world: World, network: SimNetwork, client: Actor, server: Actor, options: ChannelOptions) {
    this.#network = network;
    const a = new End(world, network, this, client, options);
    const b = new End(world, network, this, server, { blobBytesMax: Number.MAX_SAFE_INTEGER });
    a.peer = b;
    b.peer = a;
    this.ends = [a, b];
  }

  get isOpen(): boolean {
    return this.ends.every((end) => end.isOpen);
  }

  cut(): void {
    this.#network.forget(this);
    for (const end of this.ends) end.broken();
  }
}

class End implements Channel {
  readonly actor: Actor;
  peer: End | undefined;
  readonly #world: World;
  readonly #network: SimNetwork;
  readonly #connection: Connection;
  readonly #decoder: FrameDecoder;
  #outbox: { readonly parts: readonly Uint8Array[]; readonly onWritten: (() => void) | undefined }[] = [];
  #closers: ((error?: Error) => void)[] = [];
  #receive: ((header: unknown, blobs: readonly Uint8Array[]) => void) | undefined;
  #flushing = false;
  #lastArrivalMs = 0;
  isOpen = true;
  #cut = false;

  constructor(world: World, network: SimNetwork, connection: Connection, actor: Actor, options: ChannelOptions) {
    this.#world = world;
    this.#network = network;
    this.#connection = connection;
    this.actor = actor;
    this.#decoder = new FrameDecoder(options);
  }

  send(header: unknown, blobs: readonly Uint8Array[] = [], onWritten?: () => void): void {
    if (!this.isOpen || !this.actor.alive) {
      onWritten?.();
      return;
    }
    this.#world.touch(this.actor);
    // Bytes of the blobs are taken when they are written, not before: whoever changes them too early is found out.
    this.#outbox.push({ parts: encodeFrame(header, blobs), onWritten });
    if (this.#flushing) return;
    this.#flushing = true;
    this.#world.soon(this.actor, WRITE_MS, '', () => this.#flush());
  }

  onMessage(receive: (header: unknown, blobs: readonly Uint8Array[]) => void): void {
    this.#receive = receive;
  }

  onClose(callback: (error?: Error) => void): void {
    this.#closers.push(callback);
  }

  close(): void {
    if (!this.isOpen) return;
    this.#flush();
    this.isOpen = false;
    this.#tellClosed(undefined);
    this.peer?.peerClosed(this.#lastArrivalMs);
  }

  get bufferedBytes(): number {
    return 0;
  }

  /** The process is gone: what the system took is delivered. */
  died(): void {
    this.#outbox = [];
    if (!this.isOpen) return;
    this.isOpen = false;
    this.#network.forget(this.#connection);
    this.peer?.peerClosed(this.#lastArrivalMs);
  }

  broken(): void {
    this.#cut = true;
    if (!this.isOpen) return;
    this.isOpen = false;
    for (const { onWritten } of this.#outbox.splice(0)) this.#later(onWritten);
    this.#tellClosed(new Error('the connection was cut'));
  }

  peerClosed(afterMs: number): void {
    this.#world.at(this.actor, afterMs + TINY_MS, '', () => {
      if (!this.isOpen) return;
      this.#flush();
      this.isOpen = false;
      this.#network.forget(this.#connection);
      this.#tellClosed(undefined);
    });
  }

  #flush(): void {
    this.#flushing = false;
    if (!this.isOpen) return;
    for (const { parts, onWritten } of this.#outbox.splice(0)) {
      const bytes = Buffer.concat(parts);
      this.#later(onWritten);
      const { peer } = this;
      assert(peer !== undefined, 'a connection has two ends');
      const arrivesMs = this.#world.nowMs + this.#world.schedule.float() * this.#network.latencyMs;
      this.#lastArrivalMs = Math.max(arrivesMs, this.#lastArrivalMs + TINY_MS);
      this.#world.at(peer.actor, this.#lastArrivalMs, '', () => peer.arrive(this.actor, bytes));
    }
  }

  arrive(from: Actor, bytes: Buffer): void {
    if (!this.isOpen || this.#cut) return;
    this.#decoder.push(bytes, ({ header, blobs: sent }) => {
      const { tamper } = this.#network;
      const blobs = tamper === undefined ? sent : tamper(header, sent);
      if (blobs === undefined) return;
      this.#world.note(`${from.name} -> ${this.actor.name} ${summaryOf(header)}`);
      this.#network.onFrame?.(from, this.actor, header, blobs);
      if (this.isOpen) this.#receive?.(header, blobs);
    });
  }

  #later(onWritten: (() => void) | undefined): void {
    if (onWritten !== undefined) this.#world.soon(this.actor, WRITE_MS, '', onWritten);
  }

  #tellClosed(error: Error | undefined): void {
    if (!this.actor.alive) return;
    this.#world.soon(this.actor, WRITE_MS, `connection to ${this.peer?.actor.name} closed`, () => {
      for (const callback of this.#closers.splice(0)) callback(error);
    });
  }
}

/** From a call to the system's taking the bytes. */
const WRITE_MS = 0.05;
const TINY_MS = 1e-6;

/** One line of the trace; nothing in it may differ between two runs. */
function summaryOf(header: unknown): string {
  const { type, session, run, requestId, state, seq, instance } = header as Record<string, unknown>;
  const rest = [session, run, requestId, state, seq, instance].filter((one) => one !== undefined);
  return `${type} ${rest.join(' ')}`;
}
