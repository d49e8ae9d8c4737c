// Commands that change what runs.

import { apiPath } from '../client/index.ts';
import type { SessionRecord } from '../protocol/index.ts';
import type { CommandSpec, Run } from './command.ts';
import { printable } from './text.ts';

export const CANCEL: CommandSpec = {
  usage: 'cancel <session>',
  does: 'cancel a running session; what it already sent counts',
  json: true,
  examples: [['antrail cancel d1-2s-k3x9a', 'stop it']],
  run: async (run, [session]) => {
    const path = apiPath('sessions', session);
    // A cancelled session may be cancelled again, and one that has ended too: that is worth another word.
    const before = run.json ? undefined : await stateOf(run, path);
    const said = before === 'completed' || before === 'failed' ? `had ended already: ${before}` : undefined;
    return act(run, 'DELETE', path, () => (said === undefined ? `cancelled ${session}` : `${session} ${said}`));
  },
};

export const RETRY: CommandSpec = {
  usage: 'retry <session>',
  does: 'resume a parked session, or start an ended one again',
  json: true,
  examples: [['antrail retry d1-2s-k3x9a', 'once more']],
  run: (run, [session]) =>
    act(run, 'POST', apiPath('sessions', session, 'retry'), (now) =>
      now === session ? `resumed ${session}` : `started ${now} (retry of ${session})`,
    ),
};

export const FORK: CommandSpec = {
  usage: 'fork <session>',
  does: 'start a session again as a new one, whatever became of it',
  json: true,
  examples: [['antrail fork d1-2s-k3x9a', 'the same input in the current version']],
  run: (run, [session]) =>
    act(run, 'POST', apiPath('sessions', session, 'fork'), (now) => `started ${now} (fork of ${session})`),
};

export const REMOVE: CommandSpec = {
  usage: 'remove <app>',
  does: 'remove an app with its sessions, objects and dead letters',
  more: 'What runs of it is cancelled first. What it persisted is gone.',
  json: true,
  examples: [['antrail remove ad-events-old', 'all of it']],
  run: (run, [app]) => act(run, 'DELETE', apiPath('apps', app), () => `removed ${app}`),
};

async function stateOf(run: Run, path: string): Promise<string> {
  const response = await run.server.request('GET', path, { signal: run.terminal.interrupted });
  return ((await response.json()) as SessionRecord).state;
}

async function act(run: Run, method: string, path: string, said: (session: string) => string): Promise<undefined> {
  const response = await run.server.request(method, path, { signal: run.terminal.interrupted });
  const text = await response.text();
  if (run.json) await run.terminal.out(`${text}\n`);
  else await run.terminal.out(`${printable(said(sessionOf(text)))}\n`);
  return undefined;
}

/** Answers without a body are fine: then the session is the one that was named. */
function sessionOf(text: string): string {
  try {
    return String((JSON.parse(text) as { session?: unknown }).session ?? '');
  } catch {
    return '';
  }
}
