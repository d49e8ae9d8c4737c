// Invocations that failed for good: looking at them, trying them again, dropping them.

import { apiPath, PlatformError } from '../client/index.ts';
import type { DeadLetter, DeadLetterHead, DeadLetterInput } from '../protocol/index.ts';
import { type CommandSpec, look, type Run } from './command.ts';
import { errorDataText } from './print-error.ts';
import { age, bytes, count, duration, facts, isoMs, type Paint, printable, shorten, table } from './text.ts';
import { UsageError } from './usage.ts';

const ACTIONS = ['list', 'show', 'retry', 'drop'];
const INPUT_CHARS_MAX = 2_000;

interface Letters {
  readonly deadLetters: readonly DeadLetterHead[];
  readonly dropped: number;
}

export const DEAD_LETTERS: CommandSpec = {
  usage: 'dead-letters [action] [id]',
  does: 'list, show, retry or drop invocations that failed for good',
  more:
    'Actions: list (if none is given), show <id>, retry <id>, drop <id>; retry and drop also take --app <app> --all.\n' +
    'A retry runs in a session of its own, on the current version. When it completes the letter is gone; when it\n' +
    'fails the letter stays with the new error. With --json, retry and drop of several print one answer a line.',
  json: true,
  options: [
    { flags: '--app <app>', does: 'of this app only' },
    { flags: '--all', does: 'with retry or drop: every letter of --app' },
  ],
  examples: [
    ['antrail dead-letters', 'what was given up'],
    ['antrail dead-letters show d1-2s-k3x9a.8f14e45fceea167a', 'error, attempts and inputs of one'],
    ['antrail dead-letters retry d1-2s-k3x9a.8f14e45fceea167a', 'once more, with the same inputs'],
    ['antrail dead-letters drop --app ad-events --all', 'forget them'],
  ],
  run: async (run, args) => {
    const [action = 'list', id] = args as [string?, string?];
    const { app, all } = run.options;
    if (!ACTIONS.includes(action)) throw new UsageError(`"${action}" is none of ${ACTIONS.join(', ')}`);
    const isAct = action === 'retry' || action === 'drop';
    if (all === true && (!isAct || app === undefined || id !== undefined)) {
      throw new UsageError('--all goes with retry or drop and --app <app>, without an id');
    }
    if (action === 'list') {
      if (id !== undefined) throw new UsageError(`list takes no id: antrail dead-letters show ${id}`);
      return look<Letters>(run, '/v1/dead-letters', { app }, (letters) => listText(letters, run.paint));
    }
    if (all !== true && id === undefined) {
      throw new UsageError(`say which: antrail dead-letters ${action} <id>${isAct ? ', or --app <app> --all' : ''}`);
    }
    if (action === 'show') {
      return look<DeadLetter>(run, apiPath('dead-letters', id as string), {}, (letter) => showText(letter, run.paint));
    }
    const ids = all === true ? await idsOf(run, app) : [id as string];
    if (ids.length === 0 && !run.json) await run.terminal.out('No dead letters.\n');
    for (const one of ids) {
      try {
        await act(run, action, one);
      } catch (thrown) {
        // Somebody else dealt with it, or it made room, since the list was made.
        if (all !== true || !(thrown instanceof PlatformError) || thrown.code !== 'E_DEAD_LETTER_UNKNOWN') throw thrown;
      }
    }
    return undefined;
  },
};

async function idsOf(run: Run, app: string): Promise<string[]> {
  const response = await run.server.request('GET', '/v1/dead-letters', {
    query: { app },
    signal: run.terminal.interrupted,
  });
  return ((await response.json()) as Letters).deadLetters.map((letter) => letter.id);
}

async function act(run: Run, action: string, id: string): Promise<void> {
  const [method, path] =
    action === 'retry' ? ['POST', apiPath('dead-letters', id, 'retry')] : ['DELETE', apiPath('dead-letters', id)];
  const response = await run.server.request(method as string, path as string, { signal: run.terminal.interrupted });
  const text = await response.text();
  if (run.json) await run.terminal.out(`${text}\n`);
  else if (action === 'drop') await run.terminal.out(`dropped ${printable(id)}\n`);
  else {
    const { session } = JSON.parse(text) as { session: string };
    await run.terminal.out(`started ${printable(session)} (retry of ${printable(id)})\n`);
  }
}

function listText({ deadLetters, dropped }: Letters, paint: Paint): string {
  const more = dropped > 0 ? paint('dim', `${count(dropped, 'older one')} made room for newer ones`) : '';
  if (deadLetters.length === 0) return `No dead letters.\n${more === '' ? '' : `${more}\n`}`;
  const list = table(
    deadLetters,
    [
      { title: 'id', value: ({ id }) => id },
      { title: 'app', value: ({ app }) => app },
      { title: 'function', value: (row) => row.function },
      { title: 'failed', value: ({ at }) => age(at) },
      { title: 'attempts', value: ({ attemptCount }) => attemptCount, align: 'right' },
      { title: 'retried', value: ({ retries, retrySession }) => retriedText(retries, retrySession) },
      { title: 'error', value: ({ error }) => shorten(`${error.code} ${error.message}`, 70), color: () => 'red' },
    ],
    paint,
  );
  return more === '' ? list : `${list}${more}\n`;
}

function retriedText(retries: number, retrySession: string | undefined): string {
  if (retrySession !== undefined) return 'now';
  return retries === 0 ? '' : `${retries} ×`;
}

function showText(letter: DeadLetter, paint: Paint): string {
  const { error, attempts, inputs } = letter;
  let text = facts(
    [
      ['dead letter', paint('bold', letter.id)],
      letter.function === '' ? ['app', letter.app] : ['function', `${letter.app}/${letter.function}`],
      ['version', letter.version],
      ['session', letter.session],
      ['invocation', letter.invocation],
      ['firing', letter.firing ?? undefined],
      ['failed', `${letter.at} (${age(letter.at)})`],
      ['attempts', String(letter.attemptCount)],
      ['retries', letter.retries === 0 ? undefined : String(letter.retries)],
      ['retried now', letter.retrySession],
    ],
    paint,
  );
  text += `${paint('dim', 'error')}\n${indent(errorDataText(error, paint))}`;
  text += table(
    attempts,
    [
      { title: 'attempt', value: ({ n }) => n, align: 'right' },
      { title: 'outcome', value: ({ outcome }) => outcome },
      { title: 'started', value: ({ startedAt }) => startedAt },
      {
        title: 'took',
        value: ({ startedAt, endedAt }) => (endedAt === null ? '' : duration(isoMs(endedAt) - isoMs(startedAt))),
        align: 'right',
      },
      { title: 'start', value: ({ start }) => start },
      { title: 'instance', value: ({ instance }) => instance },
    ],
    paint,
  );
  for (const input of inputs) {
    text += `${paint('dim', 'input')}  ${printable(input.id)}  ${bytes(input.size)}\n${inputText(input)}`;
  }
  if (letter.invocation === '' && letter.firing !== null)
    text += `${paint('yellow', 'a trigger gave it up: mend its class, deploy it, and send the object again')}\n`;
  else if (!letter.inputsKept)
    text += `${paint('yellow', 'its inputs were too large to be kept: retry its session instead')}\n`;
  return text;
}

function inputText({ json, base64 }: DeadLetterInput): string {
  const shown = json === undefined ? base64 : JSON.stringify(json, null, 2);
  if (shown === undefined) return '';
  return indent(printable(shown.length <= INPUT_CHARS_MAX ? shown : `${shown.slice(0, INPUT_CHARS_MAX)}…`));
}

function indent(text: string): string {
  return `${text.replace(/^/gm, '  ')}\n`;
}
