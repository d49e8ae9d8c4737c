// Objects that hosts hand in for keeping, and those that they ask for.
//
// Owns: the answers to them, and which names each session has persisted or is about to.
// Does not own: persisted objects (PersistedObjects), what bucket-scoped triggers make of an object (Firings).
//
// An object is acknowledged when it is kept (CO1), and of a session that does not run any more it is refused.

import { type ErrorData, PlatformError } from '../../base/index.ts';
import type { HostToServer } from '../../protocol/index.ts';
import type { Coordinator } from './coordinator.ts';
import type { Session, StoredObject } from './session.ts';

export type ObjectMessage = Extract<
  HostToServer,
  { type: 'bucket-object' | 'bucket-close' | 'object-persist' | 'persisted-get' }
>;

const NO_BYTES = new Uint8Array(0);

export class HostObjects {
  readonly #coordinator: Coordinator;
  /** Of each session: name → its write, until that is durable; undefined: it is. */
  readonly #persistedNames = new Map<string, Map<string, Promise<void> | undefined>>();

  constructor(coordinator: Coordinator) {
    this.#coordinator = coordinator;
  }

  receive(app: string, version: string, message: ObjectMessage, blobs: readonly Uint8Array[]): void {
    switch (message.type) {
      case 'bucket-object': {
        const object = { header: message.object, bytes: owned(blobs[0]) };
        this.#acknowledge(app, version, message, () => {
          const source = this.#senderOf(message.session);
          // What a session gives whose start was durable survives as long as it does.
          return this.#coordinator.firings.take(source, version, object, message.durable || source.spec.durable);
        });
        return;
      }
      case 'bucket-close':
        this.#acknowledge(app, version, message, () => {
          this.#senderOf(message.session);
          this.#coordinator.firings.closeGroup(app, version, message.bucket);
        });
        return;
      case 'object-persist': {
        const object = { header: message.object, bytes: owned(blobs[0]) };
        this.#acknowledge(app, version, message, () => this.#persist(app, this.#senderOf(message.session), object));
        return;
      }
      case 'persisted-get': {
        const { requestId, bucket, name } = message;
        const link = this.#coordinator.linkOf(app, version);
        this.#coordinator.persisted.get(app, bucket, name).then(
          ({ payload: { contentType, bytes }, group, session }) =>
            link?.send({ type: 'reply', requestId, payload: { contentType, size: bytes.length, group, session } }, [
              bytes,
            ]),
          (error) => link?.send({ type: 'reply', requestId, error: errorData(error) }),
        );
        return;
      }
    }
  }

  sessionEnded(id: string): void {
    this.#persistedNames.delete(id);
  }

  /** A second execution must not put an old value over what others persisted meanwhile: the first write is waited for. */
  #persist(app: string, session: Session, object: StoredObject): Promise<void> | undefined {
    const names = this.#persistedNames.get(session.id) ?? new Map<string, Promise<void> | undefined>();
    this.#persistedNames.set(session.id, names);
    const name = `${object.header.bucket}\u0000${object.header.name}`;
    if (names.has(name)) return names.get(name);
    const written = this.#coordinator.persisted.put(app, object, this.#coordinator.ports.clock.epochMs());
    names.set(name, written);
    written.then(
      () => names.set(name, undefined),
      // Nothing is there: the next one may try.
      () => names.delete(name),
    );
    return written;
  }

  #senderOf(id: string): Session {
    const session = this.#coordinator.table.get(id);
    if (session === undefined || session.phase !== 'running') {
      throw new PlatformError('E_CANCELLED', `Session '${id}' does not run any more; its sends are dropped.`);
    }
    return session;
  }

  /** Answers with `object-ack` when the work is done, or with its error. */
  #acknowledge(
    app: string,
    version: string,
    { session, seq }: { readonly session: string; readonly seq: number },
    work: () => Promise<void> | undefined | void,
  ): void {
    const link = this.#coordinator.linkOf(app, version);
    const refuse = (error: unknown) => {
      const data = errorData(error);
      if (data.code === 'E_INTERNAL')
        this.#coordinator.ports.report(`an object of session ${session} was not kept`, error);
      link?.send({ type: 'object-ack', session, seq, error: data });
    };
    let done: Promise<void> | undefined | void;
    try {
      done = work();
    } catch (error) {
      refuse(error);
      return;
    }
    if (done === undefined) link?.send({ type: 'object-ack', session, seq });
    else done.then(() => link?.send({ type: 'object-ack', session, seq }), refuse);
  }
}

/** A small part of a large receive buffer would keep all of it in memory. */
export function owned(bytes: Uint8Array | undefined): Uint8Array {
  if (bytes === undefined) return NO_BYTES;
  return bytes.byteLength * 2 < bytes.buffer.byteLength ? new Uint8Array(bytes) : bytes;
}

function errorData(error: unknown): ErrorData {
  if (error instanceof PlatformError) {
    const { code, message, details } = error;
    return Object.keys(details).length === 0 ? { code, message } : { code, message, details };
  }
  return { code: 'E_INTERNAL', message: error instanceof Error ? error.message : String(error) };
}
