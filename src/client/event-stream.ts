// Reads `text/event-stream` and one-JSON-object-a-line streams.

import { PlatformError } from '../base/index.ts';
import { EVENT_CHARS_MAX } from './limits.ts';

export interface StreamEvent {
  /** `message` unless the server names it. */
  readonly event: string;
  readonly data: string;
  /** The last id seen so far, this event's included; empty if none. */
  readonly id: string;
}

/** Comments, unknown fields and an unfinished event at the end are skipped, as the HTML standard says. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamEvent, void, undefined> {
  let event = '';
  let data: string[] = [];
  let id = '';
  for await (const line of readLines(body)) {
    if (line === '') {
      if (data.length > 0) yield { event: event === '' ? 'message' : event, data: data.join('\n'), id };
      event = '';
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') event = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id') id = value;
  }
}

/**
 * Lines without their ends (`\n` or `\r\n`); a last one without end counts.
 * Stopping early cancels the body, and with it the request.
 * @throws E_PROTOCOL when a line exceeds EVENT_CHARS_MAX.
 */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const text = done ? decoder.decode() : decoder.decode(value, { stream: true });
      // Only the new text is searched: a long line in many chunks stays linear.
      let from = 0;
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', from)) {
        const line = rest + text.slice(from, end);
        rest = '';
        from = end + 1;
        yield line.endsWith('\r') ? line.slice(0, -1) : line;
      }
      rest += text.slice(from);
      if (rest.length > EVENT_CHARS_MAX) {
        throw new PlatformError(
          'E_PROTOCOL',
          `A line of an event stream is longer than ${EVENT_CHARS_MAX} characters.`,
        );
      }
      if (done) break;
    }
    if (rest !== '') yield rest;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
