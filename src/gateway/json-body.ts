// JSON bodies: checked once for syntax; on the way to a function their bytes are passed on as they came.

import { isUtf8 } from 'node:buffer';
import { PlatformError } from '../base/index.ts';
import { firstWrongUtf8, JsonSyntax, textPosition } from './json-syntax.ts';
import { JSON_PARSE_BYTES_MAX, JSON_SLICE_BYTES } from './limits.ts';

/**
 * Checks that `bytes` are JSON text in UTF-8. Bodies above JSON_PARSE_BYTES_MAX are checked in slices, between which
 * other requests get a turn; only then is there something to await.
 * @param pause resolves when others had their turn.
 * @throws E_JSON_INVALID with `position` (0-based, UTF-16 units), `line` and `column` (1-based).
 */
export function checkJson(bytes: Buffer, pause: () => Promise<void>): undefined | Promise<void> {
  if (bytes.length > JSON_PARSE_BYTES_MAX) return checkInSlices(bytes, pause);
  if (isUtf8(bytes)) {
    try {
      JSON.parse(bytes.toString('utf8'));
      return undefined;
    } catch {
      // Why and where is said below, in the same words on every version of Node.
    }
  }
  refuseWrong(bytes);
  return undefined;
}

/** The value of a JSON body. @throws E_JSON_INVALID as checkJson. */
export async function readJson(bytes: Buffer): Promise<unknown> {
  if (isUtf8(bytes)) {
    try {
      return JSON.parse(bytes.toString('utf8'));
    } catch {
      // As above.
    }
  }
  refuseWrong(bytes);
  throw new PlatformError('E_REQUEST_INVALID', `The JSON body of ${bytes.length} bytes is too large to be read here.`);
}

async function checkInSlices(bytes: Buffer, pause: () => Promise<void>): Promise<void> {
  const syntax = new JsonSyntax();
  if (!isUtf8(bytes)) return refuseWrong(bytes);
  for (let at = 0; at < bytes.length; at += JSON_SLICE_BYTES) {
    const wrong = syntax.read(bytes, at, Math.min(at + JSON_SLICE_BYTES, bytes.length));
    if (wrong >= 0) throw jsonInvalid(bytes, wrong, 'here');
    if (at + JSON_SLICE_BYTES < bytes.length) await pause();
  }
  if (!syntax.isComplete()) throw jsonInvalid(bytes, bytes.length, 'end');
}

/** Returns only when nothing is wrong. */
function refuseWrong(bytes: Buffer): void {
  const wrongUtf8 = firstWrongUtf8(bytes);
  const syntax = new JsonSyntax();
  const wrong = syntax.read(bytes, 0, wrongUtf8 < 0 ? bytes.length : wrongUtf8);
  if (wrong >= 0) throw jsonInvalid(bytes, wrong, 'here');
  if (wrongUtf8 >= 0) throw jsonInvalid(bytes, wrongUtf8, 'utf8');
  if (!syntax.isComplete()) throw jsonInvalid(bytes, bytes.length, 'end');
}

function jsonInvalid(bytes: Buffer, byteAt: number, what: 'here' | 'end' | 'utf8'): PlatformError {
  const at = textPosition(bytes, byteAt);
  const where = `position ${at.position} (line ${at.line}, column ${at.column})`;
  const detail =
    what === 'end'
      ? `The JSON text ends too early, at ${where}.`
      : what === 'utf8'
        ? `The body is not UTF-8 from ${where} on. Send other bytes as application/octet-stream.`
        : `Unexpected ${characterAt(bytes, byteAt)} in the JSON text at ${where}.`;
  return new PlatformError('E_JSON_INVALID', detail, { details: { ...at } });
}

function characterAt(bytes: Buffer, byteAt: number): string {
  const character = String.fromCodePoint(bytes.toString('utf8', byteAt, byteAt + 4).codePointAt(0) ?? 0xfffd);
  if (character === '\ufeff') return 'byte order mark';
  return JSON.stringify(character);
}
