import { crc32 } from 'node:zlib';

/** Never 0, which stands for none. */
export function checksumOf(bytes: Uint8Array): number {
  return crc32(bytes) >>> 0 || 1;
}
