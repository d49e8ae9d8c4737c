// Syntax of JSON text (RFC 8259) over UTF-8 bytes, byte by byte and resumable: no tree is built, no string is made,
// and a large text can be checked in slices. It serves bodies too large for JSON.parse and says where a text is wrong,
// which JSON.parse says differently in each version of Node.
//
// JS1. A position reported is that of the first byte that no valid text could have there: everything before it can be
//      continued to a valid text, it included cannot.

const VALUE = 0;
const VALUE_OR_END = 1;
const KEY_OR_END = 2;
const KEY = 3;
const COLON = 4;
const AFTER = 5;
const STRING = 6;
const ESCAPE = 7;
const HEX_1 = 8;
const HEX_4 = 11;
const LITERAL = 12;
const MINUS = 13;
const ZERO = 14;
const INTEGER = 15;
const POINT = 16;
const FRACTION = 17;
const EXPONENT = 18;
const EXPONENT_SIGN = 19;
const EXPONENT_DIGITS = 20;

const OBJECT = 1;
const ARRAY = 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const TRUE_REST = Buffer.from('rue');
const FALSE_REST = Buffer.from('alse');
const NULL_REST = Buffer.from('ull');

export class JsonSyntax {
  #state = VALUE;
  #stack = new Uint8Array(64);
  #depth = 0;
  #inKey = false;
  #literal: Uint8Array = NULL_REST;
  #literalAt = 0;

  /** Reads `bytes[from, to)`. @returns index of the first wrong byte (JS1), or -1. After one nothing more may be read. */
  read(bytes: Uint8Array, from: number, to: number): number {
    let state = this.#state;
    for (let i = from; i < to; i++) {
      const byte = bytes[i] as number;
      switch (state) {
        case STRING:
          if (byte === QUOTE) {
            state = this.#inKey ? COLON : AFTER;
          } else if (byte === BACKSLASH) state = ESCAPE;
          else if (byte < 0x20) return i;
          continue;
        case ESCAPE:
          if (byte === 0x75) state = HEX_1;
          else if (isEscape(byte)) state = STRING;
          else return i;
          continue;
        case LITERAL:
          if (byte !== this.#literal[this.#literalAt]) return i;
          if (++this.#literalAt === this.#literal.length) state = AFTER;
          continue;
        case MINUS:
          if (byte === 0x30) state = ZERO;
          else if (isDigit(byte)) state = INTEGER;
          else return i;
          continue;
        case POINT:
          if (!isDigit(byte)) return i;
          state = FRACTION;
          continue;
        case EXPONENT:
          if (byte === 0x2b || byte === 0x2d) state = EXPONENT_SIGN;
          else if (isDigit(byte)) state = EXPONENT_DIGITS;
          else return i;
          continue;
        case EXPONENT_SIGN:
          if (!isDigit(byte)) return i;
          state = EXPONENT_DIGITS;
          continue;
        case ZERO:
        case INTEGER:
        case FRACTION:
        case EXPONENT_DIGITS:
          if (state !== ZERO && isDigit(byte)) continue;
          if (byte === 0x2e && state <= INTEGER) {
            state = POINT;
            continue;
          }
          if ((byte === 0x65 || byte === 0x45) && state !== EXPONENT_DIGITS) {
            state = EXPONENT;
            continue;
          }
          state = AFTER;
          break;
        default:
          if (state >= HEX_1 && state <= HEX_4) {
            if (!isHex(byte)) return i;
            state = state === HEX_4 ? STRING : state + 1;
            continue;
          }
      }
      if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) continue;
      state = this.#structure(state, byte);
      if (state < 0) return i;
    }
    this.#state = state;
    return -1;
  }

  /** True when what was read is a whole text. */
  isComplete(): boolean {
    const state = this.#state;
    const number = state === ZERO || state === INTEGER || state === FRACTION || state === EXPONENT_DIGITS;
    return this.#depth === 0 && (state === AFTER || number);
  }

  /** Between tokens. @returns the next state, or -1 when the byte cannot be there. */
  #structure(state: number, byte: number): number {
    switch (state) {
      case VALUE_OR_END:
        return byte === 0x5d ? this.#leave() : this.#value(byte);
      case VALUE:
        return this.#value(byte);
      case KEY_OR_END:
        if (byte === 0x7d) return this.#leave();
        return this.#key(byte);
      case KEY:
        return this.#key(byte);
      case COLON:
        return byte === 0x3a ? VALUE : -1;
      default: {
        const inside = this.#depth === 0 ? 0 : this.#stack[this.#depth - 1];
        if (inside === OBJECT) return byte === 0x2c ? KEY : byte === 0x7d ? this.#leave() : -1;
        if (inside === ARRAY) return byte === 0x2c ? VALUE : byte === 0x5d ? this.#leave() : -1;
        return -1;
      }
    }
  }

  #value(byte: number): number {
    if (byte === QUOTE) {
      this.#inKey = false;
      return STRING;
    }
    if (byte === 0x7b) return this.#enter(OBJECT, KEY_OR_END);
    if (byte === 0x5b) return this.#enter(ARRAY, VALUE_OR_END);
    if (byte === 0x2d) return MINUS;
    if (byte === 0x30) return ZERO;
    if (isDigit(byte)) return INTEGER;
    if (byte === 0x74) return this.#begin(TRUE_REST);
    if (byte === 0x66) return this.#begin(FALSE_REST);
    if (byte === 0x6e) return this.#begin(NULL_REST);
    return -1;
  }

  #key(byte: number): number {
    if (byte !== QUOTE) return -1;
    this.#inKey = true;
    return STRING;
  }

  #begin(rest: Uint8Array): number {
    this.#literal = rest;
    this.#literalAt = 0;
    return LITERAL;
  }

  #enter(kind: number, next: number): number {
    if (this.#depth === this.#stack.length) {
      const wider = new Uint8Array(this.#stack.length * 2);
      wider.set(this.#stack);
      this.#stack = wider;
    }
    this.#stack[this.#depth++] = kind;
    return next;
  }

  #leave(): number {
    this.#depth--;
    return AFTER;
  }
}

/**
 * Where UTF-8 ends to be UTF-8 (overlong forms, surrogates and values above U+10FFFF are none).
 * @returns index of the first byte of the first sequence that is wrong, or -1.
 */
export function firstWrongUtf8(bytes: Uint8Array): number {
  for (let i = 0; i < bytes.length; ) {
    const lead = bytes[i] as number;
    if (lead < 0x80) {
      i++;
      continue;
    }
    const length = lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) === 0xe0 ? 3 : lead >= 0xf0 && lead <= 0xf4 ? 4 : 0;
    if (length === 0 || i + length > bytes.length) return i;
    const second = bytes[i + 1] as number;
    const low = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
    const high = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
    if (second < low || second > high) return i;
    for (let k = 2; k < length; k++) if (((bytes[i + k] as number) & 0xc0) !== 0x80) return i;
    i += length;
  }
  return -1;
}

export interface TextPosition {
  /** 0-based, in UTF-16 units, as strings of JavaScript count. */
  readonly position: number;
  /** Both 1-based. */
  readonly line: number;
  readonly column: number;
}

/** @param byteAt index into `bytes`, all of it before being valid UTF-8. */
export function textPosition(bytes: Uint8Array, byteAt: number): TextPosition {
  let position = 0;
  let line = 1;
  let lineBegin = 0;
  for (let i = 0; i < byteAt; i++) {
    const byte = bytes[i] as number;
    if ((byte & 0xc0) === 0x80) continue;
    position += byte >= 0xf0 ? 2 : 1;
    if (byte === 0x0a) {
      line++;
      lineBegin = position;
    }
  }
  return { position, line, column: position - lineBegin + 1 };
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number): boolean {
  return isDigit(byte) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
}

/** `"` `\` `/` `b` `f` `n` `r` `t` */
function isEscape(byte: number): boolean {
  return (
    byte === QUOTE ||
    byte === BACKSLASH ||
    byte === 0x2f ||
    byte === 0x62 ||
    byte === 0x66 ||
    byte === 0x6e ||
    byte === 0x72 ||
    byte === 0x74
  );
}
