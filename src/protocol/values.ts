// Values on the wire: bytes stay bytes, everything else is JSON text.

export const CONTENT_JSON = 'application/json';
export const CONTENT_BYTES = 'application/octet-stream';

/** Bytes with their type. JSON values travel as JSON text; nobody between sender and receiver decodes them. */
export interface Payload {
  readonly contentType: string;
  readonly bytes: Uint8Array;
}

export interface PayloadHeader {
  readonly contentType: string;
  readonly size: number;
}

export interface ObjectHeader extends PayloadHeader {
  readonly bucket: string;
  readonly name: string;
  /** '' if none. */
  readonly group: string;
  /** The session that made it: differs from the session that it is given to for firings of bucket scope. */
  readonly session: string;
}

/** True for `application/json` with or without parameters. */
export function isJsonType(contentType: string): boolean {
  return contentType === CONTENT_JSON || contentType.toLowerCase().startsWith('application/json;');
}
