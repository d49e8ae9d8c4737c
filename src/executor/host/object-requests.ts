// Objects that handlers ask for by name: those of their session, or persisted ones, which the server has.
//
// Owns: questions to the server that wait for an answer.
// Does not own: the objects (SessionMachine), their bytes (SessionBytes).

import { type ErrorData, refusalData } from '../../base/index.ts';
import { isStored, type StoredObject } from '../../bucket/index.ts';
import type { ObjectHeader, ServerToHost } from '../../protocol/index.ts';
import { keepObject } from '../../scheduler/local/index.ts';
import type { InstanceToHost } from '../shared/index.ts';
import type { Driver } from './driver.ts';
import type { RunningInstance } from './instances.ts';
import type { LentObjects } from './lent-objects.ts';
import { SERVER_REQUESTS_MAX } from './limits.ts';

type GetObject = InstanceToHost & { type: 'get-object' };
type Reply = ServerToHost & { type: 'reply' };

interface Asked {
  readonly running: RunningInstance;
  readonly message: GetObject;
}

const EMPTY = new Uint8Array(0);

export class ObjectRequests {
  readonly lent: LentObjects;
  readonly #driver: Driver;
  readonly #asked = new Map<number, Asked>();
  #nextRequest = 1;

  constructor(driver: Driver, lent: LentObjects) {
    this.#driver = driver;
    this.lent = lent;
  }

  /** Answers with `object`; from the server if the session has none of this name. */
  get(running: RunningInstance, message: GetObject): void {
    const { sessions, instances, ports } = this.#driver;
    this.#driver.drain();
    const { requestId } = message;
    const session = sessions.sessionByNo(message.sessionNo);
    const object = session === undefined ? undefined : sessions.object(session, message.bucket, message.name);
    if (object !== undefined) {
      this.#lend(running, message, object);
      return;
    }
    if (this.#asked.size >= SERVER_REQUESTS_MAX) {
      instances.post(running.slot, {
        type: 'object',
        requestId,
        error: {
          code: 'E_QUOTA_EXCEEDED',
          message: `${SERVER_REQUESTS_MAX} requests wait for the server`,
          retryAfterMs: 100,
        },
      });
      return;
    }
    const ask = this.#nextRequest++;
    this.#asked.set(ask, { running, message });
    ports.send({ type: 'persisted-get', requestId: ask, bucket: this.#bucketName(message.bucket), name: message.name });
  }

  /** The server's answer. */
  answered(reply: Reply, blobs: readonly Uint8Array[]): void {
    const asked = this.#asked.get(reply.requestId);
    if (asked === undefined) return;
    this.#asked.delete(reply.requestId);
    const { sessions, instances, bytes } = this.#driver;
    const { running } = asked;
    const { slot } = running;
    // Another instance may have its place by now.
    if (instances.at(slot) !== running) {
      for (const unused of blobs) bytes.freeBlob(unused);
      return;
    }
    const { requestId, sessionNo, bucket: index, name } = asked.message;
    const bucket = this.#bucketName(index);
    const { payload } = reply;
    if (payload === undefined || payload === null) {
      const error =
        reply.error === undefined || reply.error.code === 'E_OBJECT_UNKNOWN' ? unknown(bucket, name) : reply.error;
      instances.post(slot, { type: 'object', requestId, error });
      return;
    }
    const owner = sessions.sessionByNo(sessionNo);
    const { group = '', session = '' } = payload;
    const header: ObjectHeader = { ...payload, bucket, name, group, session };
    let got: StoredObject;
    try {
      got = bytes.objectOf(header, blobs[0] ?? EMPTY, index, owner?.id ?? '');
    } catch (refusal) {
      // The object store is full: whoever asked is told.
      instances.post(slot, { type: 'object', requestId, error: refusalData(refusal) });
      return;
    }
    if (owner === undefined) {
      bytes.discard(got);
      const error = { code: 'E_OBJECT_GONE' as const, message: 'the session has ended' };
      instances.post(slot, { type: 'object', requestId, error });
    } else {
      // It lives as long as the session that asked for it; no trigger sees it.
      keepObject(owner, got);
      bytes.added(got, owner);
      this.#lend(running, asked.message, got);
    }
  }

  /** Its bytes are in memory as long as the handler may look at them. */
  #lend(running: RunningInstance, { requestId, sessionNo }: GetObject, object: StoredObject): void {
    const { instances, spiller } = this.#driver;
    const give = () => {
      if (instances.at(running.slot) !== running) return;
      if (isStored(object.content)) this.lent.add(running, sessionNo, object);
      instances.post(running.slot, { type: 'object', requestId, object });
    };
    const waits = spiller.load([object], true, (error) => {
      if (error === undefined) give();
      else instances.post(running.slot, { type: 'object', requestId, error });
    });
    if (waits === undefined) give();
  }

  #bucketName(index: number): string {
    return this.#driver.tables.buckets[index]?.name ?? '';
  }
}

function unknown(bucket: string, name: string): ErrorData {
  return {
    code: 'E_OBJECT_UNKNOWN',
    message: `no object ${bucket}/${name}, neither in this session nor persisted`,
  };
}
