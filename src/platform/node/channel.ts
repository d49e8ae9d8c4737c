// Channels over Unix sockets: frames of one turn of the event loop are collected and written at once.

import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { encodeFrame, FrameDecoder } from '../../protocol/index.ts';
import type { Channel, ChannelListener, ChannelOptions } from '../ports.ts';

/** `sun_path` holds 108 bytes on Linux and 104 elsewhere, the closing zero included. */
const SOCKET_PATH_BYTES_MAX = 103;
/** Above this the channel stops reading, because every message read may ask for more to be written. */
const UNSENT_BYTES_MAX = 64 * 1024 * 1024;

/** Frames of one turn are copied together up to this: a write for each costs more than the copy. */
const COALESCED_BYTES_MAX = 64 * 1024;

/** @param folder where the socket is put, unless its path would be too long: then a private folder for temporary files. */
export async function listenForChannels(
  folder: string,
  options: ChannelOptions,
  onChannel: (channel: Channel) => void,
): Promise<ChannelListener> {
  let address = join(folder, 'hosts.sock');
  let temporary: string | undefined;
  if (Buffer.byteLength(address) > SOCKET_PATH_BYTES_MAX) {
    temporary = await mkdtemp(join(tmpdir(), 'antrail-'));
    address = join(temporary, 'hosts.sock');
  }
  await rm(address, { force: true });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    onChannel(new SocketChannel(socket, options));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
  await chmod(address, 0o600);
  let closing: Promise<void> | undefined;
  const close = async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of sockets) socket.destroy();
    await closed;
    await rm(temporary === undefined ? address : dirname(address), { recursive: true, force: true });
  };
  return {
    address,
    close: () => {
      closing ??= close();
      return closing;
    },
  };
}

export function connectChannel(address: string, options: ChannelOptions): Promise<Channel> {
  return new Promise((resolve, reject) => {
    const socket = createConnection(address);
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(new SocketChannel(socket, options));
    });
  });
}

class SocketChannel implements Channel {
  readonly #socket: Socket;
  #outbox: Uint8Array[] = [];
  #outboxBytes = 0;
  /** Who wants to know when the first so many parts of the outbox are written. */
  #written: { readonly parts: number; readonly callback: () => void }[] = [];
  #flushing = false;
  #closed = false;
  #error: Error | undefined;
  #receive: ((header: unknown, blobs: readonly Uint8Array[]) => void) | undefined;

  constructor(socket: Socket, options: ChannelOptions) {
    this.#socket = socket;
    const decoder = new FrameDecoder(options);
    const onFrame = (frame: { header: unknown; blobs: readonly Uint8Array[] }) => {
      if (!this.#closed) this.#receive?.(frame.header, frame.blobs);
    };
    socket.on('data', (chunk) => {
      if (this.#closed) return;
      try {
        decoder.push(chunk, onFrame);
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'E_PROTOCOL')) throw error;
        socket.destroy(error);
      }
    });
    socket.on('error', (error) => {
      this.#error = error;
    });
    socket.on('drain', () => socket.resume());
  }

  send(header: unknown, blobs: readonly Uint8Array[] = [], onWritten?: () => void): void {
    if (this.#closed || this.#socket.destroyed) {
      onWritten?.();
      return;
    }
    const parts = encodeFrame(header, blobs);
    for (const part of parts) {
      this.#outbox.push(part);
      this.#outboxBytes += part.length;
    }
    if (onWritten !== undefined) this.#written.push({ parts: this.#outbox.length, callback: onWritten });
    if (!this.#flushing) {
      this.#flushing = true;
      // After the callbacks of everything that arrived together: a write for each would cost more than the wait.
      setImmediate(flush, this);
    }
  }

  onMessage(receive: (header: unknown, blobs: readonly Uint8Array[]) => void): void {
    this.#receive = receive;
  }

  onClose(callback: (error?: Error) => void): void {
    this.#socket.once('close', () => {
      this.#closed = true;
      callback(this.#error);
    });
  }

  close(): void {
    if (this.#closed) return;
    this.flush();
    this.#closed = true;
    // The peer may hold its end open for ever: what was written is given to it, then this end is gone.
    this.#socket.end(() => this.#socket.destroy());
  }

  get bufferedBytes(): number {
    return this.#socket.writableLength;
  }

  /** For the module's own tick only. */
  flush(): void {
    this.#flushing = false;
    const parts = this.#outbox;
    if (parts.length === 0 || this.#socket.destroyed) return;
    const written = this.#written;
    this.#outbox = [];
    this.#written = [];
    // The socket calls back with an error, too, when it is destroyed before.
    const callbackOf = (index: number) => written.find((one) => one.parts === index + 1)?.callback;
    if (parts.length === 1) {
      this.#socket.write(parts[0] as Uint8Array, callbackOf(0));
    } else if (written.length === 0 && this.#outboxBytes <= COALESCED_BYTES_MAX) {
      this.#socket.write(Buffer.concat(parts, this.#outboxBytes));
    } else {
      this.#socket.cork();
      for (let i = 0; i < parts.length; i++) {
        this.#socket.write(parts[i] as Uint8Array, written.length === 0 ? undefined : callbackOf(i));
      }
      this.#socket.uncork();
    }
    this.#outboxBytes = 0;
    if (this.#socket.writableLength > UNSENT_BYTES_MAX) this.#socket.pause();
  }
}

function flush(channel: SocketChannel): void {
  channel.flush();
}
