// From a value of the user's to bytes, in one way for client and executor.
//
// Bytes stay bytes; everything else is what JSON.stringify makes of it, and what JSON would lose without a word is
// refused with the path to it. Every value is checked to the last leaf before it is written: mostly 5 to 30 % of the
// stringify that follows (0.06 µs for a small object, 0.8 ms for 5,000 records; a replacer costs a multiple of that).
// A small object is 0.5 µs to text; its bytes cost 1 µs more, nearly all of it the allocation of their buffer.
//
// | value                                                   | becomes                                    |
// |---------------------------------------------------------|--------------------------------------------|
// | Uint8Array (Buffer too), at the top                     | the bytes themselves, application/octet-stream |
// | undefined: at the top, in an array / as a property      | null / left out, as JSON does              |
// | Date, and whatever has toJSON()                         | what toJSON() gives; a Date its ISO string |
// | class instances                                         | their own enumerable properties            |
// | BigInt, function, symbol, NaN, Infinity, invalid Date, a cycle | refused                             |
// | Map, Set, Weak…, Promise, RegExp, Error, bytes inside a value  | refused, with what to do instead    |
//
// Not looked into: what toJSON() returns (a BigInt in it still throws, without a path).

import { PlatformError } from '../base/index.ts';
import { CONTENT_BYTES, CONTENT_JSON, type Payload } from './values.ts';

/** Deeper than this the quick walk hands over to the one that looks for cycles. */
const QUICK_DEPTH_MAX = 64;
/** Values up to one on-heap typed array are written by a loop: 0.1 µs where TextEncoder takes 1 µs (Node 20). */
const SHORT_TEXT_CHARS_MAX = 64;
/** Longer paths are cut. */
const PATH_CHARS_MAX = 500;

const textEncoder = new TextEncoder();

export interface Unserialisable {
  /** Where it is, from `root`: `input.items[3].when`. */
  readonly path: string;
  /** What it is and what to do instead: `is a BigInt: JSON has none, send it as a string`. */
  readonly what: string;
}

/**
 * Bytes and type of a value.
 *
 * A Uint8Array is handed on, not copied: the caller must not write to it until the payload was used.
 * @param root how the value is called in the message of a refusal: `input`, `result`, …
 * @throws E_VALUE_UNSERIALISABLE (usage) with `details` `{path, what}`.
 */
export function encodeValue(value: unknown, root = 'value'): Payload {
  if (value instanceof Uint8Array) return { contentType: CONTENT_BYTES, bytes: value };
  return { contentType: CONTENT_JSON, bytes: utf8(encodeJsonText(value, root)) };
}

/** The JSON text of a value that is not bytes: for callers that write it into memory of their own. */
export function encodeJsonText(value: unknown, root = 'value'): string {
  if (value === undefined) return 'null';
  if (!isOrdinary(value)) {
    const found = describeUnserialisable(value, root);
    if (found !== undefined) throw refusal(found);
  }
  try {
    const text: string | undefined = JSON.stringify(value);
    // A toJSON() that returns undefined.
    return text ?? 'null';
  } catch (thrown) {
    throw refusal({ path: root, what: `cannot be written as JSON: ${messageOf(thrown)}` }, thrown);
  }
}

/**
 * The first thing in `value` that JSON cannot carry, depth first; undefined if there is none.
 * A top-level Uint8Array is fine. Cost: about 5 times the check that encodeValue makes.
 */
export function describeUnserialisable(value: unknown, root = 'value'): Unserialisable | undefined {
  if (value instanceof Uint8Array) return undefined;
  try {
    return look(value, root, new Map());
  } catch (thrown) {
    if (thrown instanceof RangeError) return { path: root, what: 'is nested too deeply for JSON' };
    throw thrown;
  }
}

/** True when the value is made of plain objects, arrays and JSON's scalars only: what nearly every value is. */
function isOrdinary(value: unknown): boolean {
  return typeof value === 'object' ? isOrdinaryObject(value, 0) : isOrdinaryScalar(value);
}

function isOrdinaryScalar(value: unknown): boolean {
  const type = typeof value;
  return (
    type === 'string' || type === 'boolean' || type === 'undefined' || (type === 'number' && Number.isFinite(value))
  );
}

function isOrdinaryObject(value: object | null, depth: number): boolean {
  if (value === null) return true;
  if (depth > QUICK_DEPTH_MAX) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) {
    for (const item of value as unknown[]) {
      if (typeof item === 'object' ? !isOrdinaryObject(item, depth + 1) : !isOrdinaryScalar(item)) return false;
    }
    return true;
  }
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const key in value) {
    const item = (value as Record<string, unknown>)[key];
    if (typeof item === 'object' ? !isOrdinaryObject(item, depth + 1) : !isOrdinaryScalar(item)) return false;
  }
  return true;
}

function look(value: unknown, path: string, above: Map<object, string>): Unserialisable | undefined {
  switch (typeof value) {
    case 'bigint':
      return { path, what: 'is a BigInt: JSON has none, send it as a string' };
    case 'function':
      return { path, what: `is a function${nameOf(value)}: only data can be sent` };
    case 'symbol':
      return { path, what: 'is a symbol: only data can be sent' };
    case 'number':
      return Number.isFinite(value) ? undefined : { path, what: `is ${value}: JSON has no such number, send null` };
    case 'object':
      break;
    default:
      return undefined;
  }
  if (value === null) return undefined;
  const refused = refusedKind(value);
  if (refused !== undefined) return { path, what: refused };
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return undefined;
  const first = above.get(value);
  if (first !== undefined) return { path, what: `is ${first} again: a cycle, which JSON cannot hold` };
  above.set(value, path);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const found = look(value[i], `${path}[${i}]`, above);
      if (found !== undefined) return found;
    }
  } else {
    for (const key of Object.keys(value)) {
      const found = look((value as Record<string, unknown>)[key], pathOf(path, key), above);
      if (found !== undefined) return found;
    }
  }
  above.delete(value);
  return undefined;
}

/** Objects that JSON would turn into `{}`, into a heap of numbered properties, or into null. */
function refusedKind(value: object): string | undefined {
  if (ArrayBuffer.isView(value)) {
    return `is a ${kindOf(value)} inside a value: send bytes as an object of their own, or as base64 text`;
  }
  switch (kindOf(value)) {
    case 'Map':
      return 'is a Map: send Object.fromEntries(map) or [...map]';
    case 'Set':
      return 'is a Set: send [...set]';
    case 'Promise':
      return 'is a Promise: await it first';
    case 'Error':
      return 'is an Error, of which JSON keeps nothing: send { message: error.message }';
    case 'RegExp':
      return 'is a RegExp: send its source and flags';
    case 'WeakMap':
    case 'WeakSet':
    case 'WeakRef':
      return `is a ${kindOf(value)}: only data can be sent`;
    case 'ArrayBuffer':
    case 'SharedArrayBuffer':
      return `is a ${kindOf(value)}: send new Uint8Array(buffer)`;
    case 'Date':
      return Number.isNaN(Number(value)) ? 'is an invalid Date' : undefined;
    default:
      return undefined;
  }
}

/** By tag, not by instanceof: values may come from another realm. */
function kindOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1);
}

function pathOf(parent: string, key: string): string {
  const path = /^[A-Za-z_$][\w$]*$/.test(key) ? `${parent}.${key}` : `${parent}[${JSON.stringify(key)}]`;
  return path.length > PATH_CHARS_MAX ? `${path.slice(0, PATH_CHARS_MAX)}…` : path;
}

function nameOf(value: unknown): string {
  const name = (value as { name?: unknown }).name;
  return typeof name === 'string' && name !== '' ? ` (${name})` : '';
}

function refusal({ path, what }: Unserialisable, cause?: unknown): PlatformError {
  return new PlatformError('E_VALUE_UNSERIALISABLE', `${path} ${what}`, {
    details: { path, what },
    ...(cause === undefined ? {} : { cause }),
  });
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function utf8(text: string): Uint8Array {
  if (text.length > SHORT_TEXT_CHARS_MAX) return textEncoder.encode(text);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit > 0x7f) return textEncoder.encode(text);
    bytes[i] = unit;
  }
  return bytes;
}
