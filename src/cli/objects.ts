// Objects: how many bytes where, which triggers wait for more, and what is persisted.

import { apiPath } from '../client/index.ts';
import type { AppObjects, AppObjectsDetail, PersistedInfo, WaitingTrigger } from '../protocol/index.ts';
import { type CommandSpec, look, type Run } from './command.ts';
import { orNothing } from './look-server.ts';
import { age, bytes } from './text.ts';
import { UsageError } from './usage.ts';

const ACTIONS = ['usage', 'list', 'delete'];

interface Answer {
  readonly apps: readonly (AppObjects & Partial<AppObjectsDetail>)[];
  readonly waits?: readonly WaitingTrigger[];
}

export const OBJECTS: CommandSpec = {
  usage: 'objects [action] [app] [bucket] [name]',
  does: 'how many objects each app holds, and where; list and delete persisted ones',
  more:
    'Actions: usage (if none is given), list <app> <bucket>, delete <app> <bucket> <name>. List and delete are about\n' +
    'persisted objects; those of a session go with it.',
  json: true,
  options: [
    { flags: '--app <app>', does: 'of this app only' },
    { flags: '--sessions', does: 'bytes of each session' },
    { flags: '--waits', does: 'triggers that hold objects and wait for more' },
    { flags: '--prefix <text>', does: 'with list: names that begin with this' },
    { flags: '--cursor <cursor>', does: 'with list: of the answer before' },
  ],
  examples: [
    ['antrail objects --app ad-events', 'memory, spilled and persisted bytes'],
    ['antrail objects --waits', 'what waits half-filled'],
    ['antrail objects list hello greetings', 'what is persisted in a bucket'],
  ],
  run: async (run, args) => {
    const [action = 'usage', app, bucket, name] = args as (string | undefined)[];
    if (!ACTIONS.includes(action)) throw new UsageError(`"${action}" is none of ${ACTIONS.join(', ')}`);
    if (action === 'usage') return usage(run);
    if (app === undefined || bucket === undefined || (action === 'delete') !== (name !== undefined)) {
      throw new UsageError(
        `say which: antrail objects ${action} <app> <bucket>${action === 'delete' ? ' <name>' : ''}`,
      );
    }
    if (action === 'list') return list(run, app, bucket);
    const path = apiPath('apps', app, 'buckets', bucket, 'objects', name as string);
    const response = await run.server.request('DELETE', path, { signal: run.terminal.interrupted });
    const text = await response.text();
    await run.terminal.out(run.json ? `${text}\n` : `deleted ${bucket}/${name} of ${app}\n`);
    return undefined;
  },
};

function usage(run: Run): Promise<undefined> {
  const { app, sessions, waits } = run.options;
  const query = {
    app,
    ...(sessions === true ? { detail: 'true' } : {}),
    ...(waits === true ? { waits: 'true' } : {}),
  };
  return look<Answer>(run, '/v1/objects', query, (answer) => {
    if (waits === true) return waitsText(answer.waits ?? [], run);
    return sessions === true ? sessionsText(answer, run) : appsText(answer, run);
  });
}

function list(run: Run, app: string, bucket: string): Promise<undefined> {
  const { prefix, cursor } = run.options;
  const path = apiPath('apps', app, 'buckets', bucket, 'objects');
  return look<{ objects: PersistedInfo[]; cursor?: string }>(
    run,
    path,
    { prefix, cursor },
    ({ objects, cursor: next }) => {
      const text = orNothing(objects, 'No persisted objects.', [
        { title: 'name', value: (one) => one.name, color: () => 'bold' },
        { title: 'size', value: ({ size }) => bytes(size), align: 'right' },
        { title: 'type', value: ({ contentType }) => contentType },
        { title: 'persisted', value: ({ at }) => age(at) },
        { title: 'session', value: ({ session }) => session },
      ])(run.paint);
      return next === undefined ? text : `${text}more: --cursor ${next}\n`;
    },
  );
}

function appsText({ apps }: Answer, { paint }: Run): string {
  return orNothing(apps, 'No objects.', [
    { title: 'app', value: ({ app }) => app, color: () => 'bold' },
    { title: 'objects', value: ({ objects }) => objects, align: 'right' },
    { title: 'sessions', value: ({ sessions }) => sessions, align: 'right' },
    { title: 'memory', value: ({ memoryBytes }) => bytes(memoryBytes), align: 'right' },
    { title: 'spilled', value: ({ spilledBytes }) => bytes(spilledBytes), align: 'right' },
    { title: 'persisted', value: ({ persistedBytes }) => bytes(persistedBytes), align: 'right' },
  ])(paint);
}

function sessionsText({ apps }: Answer, { paint }: Run): string {
  const rows = apps.flatMap(({ app, bySession = [], held }) => [
    ...bySession.map((row) => ({ app, ...row })),
    ...(held === undefined || held.objects === 0
      ? []
      : [{ app, session: '(held by triggers)', objects: held.objects, memoryBytes: held.bytes, spilledBytes: 0 }]),
  ]);
  return orNothing(rows, 'No objects.', [
    { title: 'app', value: ({ app }) => app, color: () => 'bold' },
    { title: 'session', value: ({ session }) => session },
    { title: 'objects', value: ({ objects }) => objects, align: 'right' },
    { title: 'memory', value: ({ memoryBytes }) => bytes(memoryBytes), align: 'right' },
    { title: 'spilled', value: ({ spilledBytes }) => bytes(spilledBytes), align: 'right' },
  ])(paint);
}

function waitsText(waits: readonly WaitingTrigger[], { paint }: Run): string {
  return orNothing(waits, 'No trigger waits for more objects.', [
    { title: 'app', value: ({ app }) => app, color: () => 'bold' },
    { title: 'session', value: ({ session }) => session ?? '(bucket scope)' },
    { title: 'trigger', value: ({ bucket, trigger }) => `${bucket}/${trigger}` },
    { title: 'holds', value: ({ held }) => held, align: 'right' },
    { title: 'waits for', value: ({ waitsFor }) => waitsFor },
  ])(paint);
}
