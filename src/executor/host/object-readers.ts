// Objects of running sessions that the server reads in parts, for somebody who may be slow.
//
// Owns: readers that are open. One keeps the object that it reads, whatever becomes of the session.
// Does not own: where the bytes are (SessionBytes), when the next part is asked for (the server, as its client takes them).

import { type ErrorData, refusalData } from '../../base/index.ts';
import { sizeOf } from '../../bucket/index.ts';
import { type HostToServer, OBJECT_PART_BYTES, type ServerToHost } from '../../protocol/index.ts';
import type { Driver } from './driver.ts';
import { READERS_MAX } from './limits.ts';
import type { ObjectReader } from './spiller.ts';

type Reply = Omit<HostToServer & { type: 'reply' }, 'type' | 'requestId'>;

export class ObjectReaders {
  readonly #driver: Driver;
  readonly #open = new Map<number, ObjectReader>();
  #nextReader = 1;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  open({ requestId, session: id, bucket: bucketName, name, start, end }: ServerToHost & { type: 'object-get' }): void {
    const { sessions, tables, bytes } = this.#driver;
    const session = sessions.session(id);
    const bucket = tables.bucketByName.get(bucketName);
    if (session === undefined) {
      this.#refuse(requestId, { code: 'E_OBJECT_GONE', message: `session ${id} has ended: its objects were freed` });
      return;
    }
    const object = bucket === undefined ? undefined : sessions.object(session, bucket.index, name);
    if (object === undefined) {
      this.#refuse(requestId, {
        code: 'E_OBJECT_UNKNOWN',
        message: `no object ${bucketName}/${name} in session ${id}`,
      });
      return;
    }
    const size = sizeOf(object);
    const wantedEnd = Math.min(end, size);
    const partEnd = Math.min(wantedEnd, start + OBJECT_PART_BYTES);
    const isMore = partEnd < wantedEnd;
    if (isMore && this.#open.size >= READERS_MAX) {
      this.#refuse(requestId, {
        code: 'E_QUOTA_EXCEEDED',
        message: `${READERS_MAX} objects of this app are being read, which is the limit: read again later`,
        retryAfterMs: 1_000,
      });
      return;
    }
    const reader = bytes.reader(object);
    const number = this.#nextReader++;
    if (isMore) this.#open.set(number, reader);
    const payload = { contentType: object.contentType, size };
    const more = { payload, run: session.run, ...(isMore ? { reader: number } : {}) };
    this.#answer(requestId, reader, Math.min(start, partEnd), partEnd, more, !isMore);
  }

  read({ requestId, reader: number, start, end }: ServerToHost & { type: 'object-read' }): void {
    const reader = this.#open.get(number);
    if (reader === undefined) {
      this.#refuse(requestId, { code: 'E_OBJECT_GONE', message: 'this reader was closed' });
      return;
    }
    this.#answer(requestId, reader, start, Math.min(end, start + OBJECT_PART_BYTES), {}, false);
  }

  close(number: number): void {
    this.#open.get(number)?.close();
    this.#open.delete(number);
  }

  #answer(requestId: number, reader: ObjectReader, start: number, end: number, reply: Reply, isLast: boolean): void {
    void reader
      .read(start, end)
      .then(
        (part) => this.#driver.ports.send({ type: 'reply', requestId, ...reply }, [part]),
        (thrown) => {
          if (reply.reader !== undefined) this.close(reply.reader);
          this.#refuse(requestId, refusalData(thrown));
        },
      )
      .finally(() => {
        if (isLast) reader.close();
      });
  }

  #refuse(requestId: number, error: ErrorData): void {
    this.#driver.ports.send({ type: 'reply', requestId, error });
  }
}
