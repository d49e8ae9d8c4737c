// An object of a running session, read from its host in parts.

import type { ObjectSource } from '../../protocol/index.ts';
import type { HostLink } from './ports.ts';

const NO_BYTES = new Uint8Array(0);

/** @throws E_OBJECT_UNKNOWN, E_OBJECT_GONE, E_QUOTA_EXCEEDED, E_NODE_LOST; reading it too. */
export async function openHostObject(
  link: HostLink,
  session: string,
  bucket: string,
  name: string,
  first: { start: number; end: number },
): Promise<ObjectSource> {
  const { reply, blobs } = await link.request({ type: 'object-get', session, bucket, name, ...first });
  const { payload, reader, run } = reply;
  const { contentType, size } = payload ?? { contentType: '', size: 0 };
  let here = blobs[0] ?? NO_BYTES;
  let isClosed = false;
  return {
    contentType,
    size,
    // A second run may send other bytes under the same name.
    version: `${session}.${run ?? 0}`,
    read: async (start, end) => {
      if (start === first.start && here.length > 0) {
        const part = here.subarray(0, end - start);
        here = NO_BYTES;
        return part;
      }
      if (reader === undefined) return NO_BYTES;
      return (await link.request({ type: 'object-read', reader, start, end })).blobs[0] ?? NO_BYTES;
    },
    close: () => {
      if (reader !== undefined && !isClosed) link.send({ type: 'object-close', reader });
      isClosed = true;
    },
  };
}
