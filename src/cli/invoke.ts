import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { apiPath, type RequestOptions } from '../client/index.ts';
import { type AppInfo, CONTENT_BYTES, CONTENT_JSON, isJsonType } from '../protocol/index.ts';
import type { CommandSpec, Run } from './command.ts';
import { bytes } from './text.ts';
import { collectPair, parseDurationMs, UsageError } from './usage.ts';

/** Above it fetch would give up waiting for the answer's head (5 minutes in Node 20): started, then polled instead. */
const SYNC_TIMEOUT_MS_MAX = 240_000;
const RESULT_WAIT_MS = 30_000;

export const INVOKE: CommandSpec = {
  usage: 'invoke <target> [input]',
  does: 'call a function and print its result; target is app or app/function',
  more: `Input: JSON text, @FILE or - for standard input (JSON if it parses, else bytes), or nothing.
The result is printed as JSON, or as the bytes that it is. A failure goes to standard error, with exit code 1.
Priority, delay and starts that need not survive a restart: over HTTP (?priority=5&delayMs=1000&durability=none).`,
  json: true,
  options: [
    { flags: '--async', does: 'return when it is started, with its session' },
    { flags: '--timeout <duration>', does: 'deadline of the session: 30s, 500ms, 2m', parse: parseDurationMs },
    { flags: '--idempotency-key <key>', does: 'same key and input again: the same session, not a second one' },
    { flags: '--session-tag <k=v>', does: 'tag for finding the session; repeatable', parse: collectPair },
  ],
  examples: [
    ['antrail invoke ad-events \'[{"type":"purchase"}]\'', "the app's entry function"],
    ['antrail invoke greeter/hello \'"Ada"\'', 'a string is JSON too: in double quotes'],
    ['antrail invoke images/resize @photo.jpg --timeout 30s > small.jpg', 'bytes in, bytes out'],
    ['cat events.json | antrail invoke ad-events - --async', 'from a pipe, without waiting'],
    [
      'antrail invoke billing/charge \'{"order":7}\' --idempotency-key order-7 --session-tag customer=42',
      'once, however often',
    ],
  ],
  run: invoke,
};

interface Input {
  readonly contentType: string;
  readonly content: Uint8Array;
}

async function invoke(run: Run, [target, text]: readonly string[]): Promise<undefined> {
  const input = text === undefined ? undefined : await inputOf(run, text);
  const path = await pathOfTarget(run, target ?? '');
  const { timeout, idempotencyKey, sessionTag = {} } = run.options;
  const long = timeout !== undefined && timeout > SYNC_TIMEOUT_MS_MAX;
  const request: RequestOptions = {
    query: {
      mode: run.options.async === true || long ? 'async' : 'sync',
      timeoutMs: timeout,
      tag: Object.entries(sessionTag).map(([key, value]) => `${key}=${value}`),
    },
    headers: idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey },
    // An empty input is no input.
    body: input === undefined || input.content.length === 0 ? undefined : input,
    signal: run.terminal.interrupted,
  };
  const response = await run.server.request('POST', path, request);
  await printAnswer(run, long && run.options.async !== true ? await resultOf(run, response) : response);
  return undefined;
}

async function resultOf(run: Run, started: Response): Promise<Response> {
  const { session } = (await started.json()) as { session: string };
  for (;;) {
    const response = await run.server.request('GET', apiPath('sessions', session, 'result'), {
      query: { waitMs: RESULT_WAIT_MS },
      signal: run.terminal.interrupted,
    });
    if (response.status !== 202) return response;
    await response.arrayBuffer();
  }
}

async function pathOfTarget(run: Run, target: string): Promise<string> {
  const slash = target.indexOf('/');
  if (slash === 0 || slash === target.length - 1) throw new UsageError(`"${target}" is not app or app/function`);
  if (slash !== -1) return apiPath('apps', target.slice(0, slash), 'functions', target.slice(slash + 1));
  const response = await run.server.request('GET', apiPath('apps', target), { signal: run.terminal.interrupted });
  const { manifest } = (await response.json()) as AppInfo;
  return apiPath('apps', target, 'functions', manifest.entry);
}

async function inputOf(run: Run, text: string): Promise<Input> {
  if (text === '-') return typedInput(await run.terminal.input());
  if (text.startsWith('@')) {
    const file = text.slice(1);
    return typedInput(
      await readFile(file).catch((error: NodeJS.ErrnoException) => {
        throw new UsageError(
          `cannot read ${file === '' ? 'a file without a name' : file}: ${error.code ?? error.message}`,
        );
      }),
    );
  }
  const content = Buffer.from(text);
  if (parses(content)) return { contentType: CONTENT_JSON, content };
  throw new UsageError(
    `the input is not JSON: ${text.length > 60 ? `${text.slice(0, 60)}…` : text}\n` +
      `A string is JSON in double quotes: '${JSON.stringify(text.length > 60 ? 'text' : text)}'. For a file write @FILE, for standard input -`,
  );
}

function typedInput(content: Uint8Array): Input {
  return { contentType: parses(content) ? CONTENT_JSON : CONTENT_BYTES, content };
}

function parses(content: Uint8Array): boolean {
  if (!isUtf8(content)) return false;
  try {
    JSON.parse(new TextDecoder('utf-8', { ignoreBOM: true }).decode(content));
    return true;
  } catch {
    return false;
  }
}

/** JSON with a line break at its end, laid out for people; bytes as they are, unless a terminal would suffer. */
async function printAnswer(run: Run, response: Response): Promise<void> {
  const { terminal } = run;
  if (isJsonType(response.headers.get('content-type') ?? '')) {
    const text = await response.text();
    const pretty = terminal.isTerminal && !run.json;
    await terminal.out(`${pretty ? JSON.stringify(JSON.parse(text), null, 2) : text}\n`);
    const { status } = response;
    if (status === 202 && pretty) await terminal.err(run.paint('dim', 'started; see antrail session, trace, logs\n'));
    return;
  }
  if (terminal.isTerminal) {
    const content = new Uint8Array(await response.arrayBuffer());
    const shown = isUtf8(content) && !content.includes(0) && !content.includes(0x1b);
    if (shown) await terminal.out(content);
    else await terminal.err(`${bytes(content.length)} of bytes; send them to a file with > FILE\n`);
    return;
  }
  for await (const chunk of response.body ?? []) await terminal.out(chunk as Uint8Array);
}
