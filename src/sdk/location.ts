// Where a builder was called, so that a refused deploy can name file and line.

import type { SourceLocation } from '../protocol/index.ts';

/** Set to true on `globalThis` where bundles are loaded to be run: instances must not pay for locations. */
export const NO_LOCATIONS = Symbol.for('antrail.noLocations');

interface V8Error {
  captureStackTrace?: (target: object, above: unknown) => void;
  stackTraceLimit?: number;
}

/**
 * The frame that called `builder`, as V8 reports it: through the source map where Node applies one, else a line of the
 * bundle. In a bundle the SDK and the app are one file, so the frame is found by function, not by file.
 */
export function locate(builder: unknown): SourceLocation | undefined {
  if ((globalThis as Record<symbol, unknown>)[NO_LOCATIONS] === true) return undefined;
  const v8 = Error as V8Error;
  if (v8.captureStackTrace === undefined) return undefined;
  const limit = v8.stackTraceLimit;
  const holder: { stack?: unknown } = {};
  try {
    v8.stackTraceLimit = 1;
    v8.captureStackTrace(holder, builder);
    // Formatted lazily: read it while the limit stands.
    return typeof holder.stack === 'string' ? firstFrame(holder.stack) : undefined;
  } finally {
    if (limit === undefined) delete v8.stackTraceLimit;
    else v8.stackTraceLimit = limit;
  }
}

/** File and line of the first frame of a V8 stack text that has any. */
export function firstFrame(stack: string): SourceLocation | undefined {
  return framesOf(stack)[0];
}

export function framesOf(stack: string): SourceLocation[] {
  const frames: SourceLocation[] = [];
  for (const line of stack.split('\n')) {
    const text = line.trim();
    if (!text.startsWith('at ')) continue;
    const open = text.endsWith(')') ? text.indexOf(' (') : -1;
    const place = open === -1 ? text.slice(3).replace(/^async /, '') : text.slice(open + 2, -1);
    const match = /^(.+?):(\d+)(?::\d+)?$/.exec(place);
    if (match === null || place.startsWith('eval at ')) continue;
    frames.push({ file: pathOf(match[1] ?? ''), line: Number(match[2]) });
  }
  return frames;
}

function pathOf(file: string): string {
  if (!file.startsWith('file://')) return file;
  try {
    return decodeURIComponent(file.slice('file://'.length));
  } catch {
    return file.slice('file://'.length);
  }
}
