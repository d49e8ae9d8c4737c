import { apiPath } from '../client/index.ts';
import type { SessionRecord, SessionState } from '../protocol/index.ts';
import { type CommandSpec, look } from './command.ts';
import {
  age,
  bytes,
  type Color,
  count,
  duration,
  facts,
  isoMs,
  type Paint,
  printable,
  shorten,
  table,
} from './text.ts';
import { oneOf, parseCount, UsageError } from './usage.ts';

const RESULT_CHARS_MAX = 2_000;
const CAUSES_SHOWN_MAX = 5;
const STATES = ['running', 'completed', 'failed', 'cancelled', 'parked'] as const satisfies readonly SessionState[];

export const STATE_COLORS: Readonly<Record<string, Color>> = {
  running: 'blue',
  completed: 'green',
  failed: 'red',
  cancelled: 'yellow',
  parked: 'magenta',
};

export const SESSIONS: CommandSpec = {
  usage: 'sessions',
  does: 'list sessions, newest first',
  json: true,
  options: [
    { flags: '--app <app>', does: 'of this app only' },
    { flags: '--state <state>', does: STATES.join(', '), parse: oneOf(STATES) },
    { flags: '--tag <k=v>', does: 'with this tag', parse: pairText },
    { flags: '--limit <n>', does: 'how many at most', parse: parseCount },
    { flags: '--cursor <cursor>', does: 'go on where an earlier list ended' },
  ],
  examples: [
    ['antrail sessions --app ad-events --state failed', 'what failed'],
    ['antrail sessions --tag customer=42 --limit 5', 'the latest of one customer'],
  ],
  run: (run) => {
    const { app, state, tag, limit, cursor } = run.options;
    return look<{ sessions: SessionRecord[]; cursor?: string }>(
      run,
      '/v1/sessions',
      { app, state, tag, limit, cursor },
      (answer) => sessionsText(answer, run.paint),
    );
  },
};

export const SESSION: CommandSpec = {
  usage: 'session <id>',
  does: 'show a session: state, result or error, what it is made of',
  json: true,
  examples: [['antrail session d1-2s-k3x9a', 'how it ended']],
  run: (run, [id]) => look<SessionRecord>(run, apiPath('sessions', id), {}, (record) => sessionText(record, run.paint)),
};

function sessionsText(answer: { sessions: readonly SessionRecord[]; cursor?: string }, paint: Paint): string {
  if (answer.sessions.length === 0) return 'No sessions.\n';
  const list = table(
    answer.sessions,
    [
      { title: 'session', value: ({ session }) => session },
      { title: 'app', value: ({ app }) => app },
      { title: 'function', value: (row) => row.function },
      { title: 'state', value: ({ state }) => state, color: ({ state }) => STATE_COLORS[state] },
      { title: 'started', value: ({ startedAt }) => age(startedAt) },
      { title: 'took', value: tookText, align: 'right' },
      { title: 'invocations', value: ({ counts }) => counts?.invocations, align: 'right' },
      { title: 'tags', value: ({ tags }) => tagsText(tags) },
      { title: 'error', value: ({ error }) => (error === undefined ? '' : shorten(error.message, 60)) },
    ],
    paint,
  );
  return answer.cursor === undefined ? list : `${list}${paint('dim', `more: --cursor ${answer.cursor}`)}\n`;
}

function sessionText(record: SessionRecord, paint: Paint): string {
  const { state, counts, error, unfired = [], causes = [] } = record;
  const more = (record.causesCount ?? causes.length) - CAUSES_SHOWN_MAX;
  let text = facts(
    [
      ['session', paint('bold', record.session)],
      ['state', paint(STATE_COLORS[state] ?? 'bold', state)],
      ['function', `${record.app}/${record.function}`],
      ['version', record.version],
      ['started', `${record.startedAt} (${age(record.startedAt)})`],
      ['took', tookText(record)],
      ['metered', record.meteredMs === undefined ? undefined : duration(record.meteredMs)],
      ['made of', counts === undefined ? undefined : countsText(counts)],
      ['tags', tagsText(record.tags)],
      ['retry of', record.retryOf],
      ['fork of', record.forkOf],
      ['caused by', causes.slice(0, CAUSES_SHOWN_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '')],
    ],
    paint,
  );
  if (record.result !== undefined) {
    text += `${paint('dim', 'result')}\n${indent(shortenLines(JSON.stringify(record.result, null, 2)))}`;
  }
  if (error !== undefined) {
    text += `${paint('dim', 'error')}\n${indent(`${paint('red', error.code)} ${printable(error.message)}`)}`;
    if (error.stack !== undefined) text += indent(printable(error.stack));
    for (let cause = error.cause; cause !== undefined; cause = cause.cause) {
      text += indent(printable(`caused by: ${cause.message}`));
    }
  }
  for (const { bucket, trigger, held, waitsFor } of unfired) {
    text += `${paint('yellow', 'unfired')}  ${printable(`${bucket}/${trigger} held ${count(held, 'object')}: ${waitsFor}`)}\n`;
  }
  return text;
}

function countsText({ invocations, attempts, objects, bytes: size, firings }: SessionRecord['counts']): string {
  return [
    count(invocations, 'invocation'),
    count(attempts, 'attempt'),
    count(objects, 'object'),
    bytes(size),
    count(firings, 'firing'),
  ].join(', ');
}

function tookText({ startedAt, endedAt }: SessionRecord): string {
  return endedAt === undefined || endedAt === null ? '' : duration(isoMs(endedAt) - isoMs(startedAt));
}

function tagsText(tags: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(tags ?? {})
    .map(([key, value]) => printable(`${key}=${value}`))
    .join(' ');
}

function shortenLines(text: string): string {
  const shown = text.length <= RESULT_CHARS_MAX ? text : `${text.slice(0, RESULT_CHARS_MAX)}…`;
  return printable(shown);
}

function indent(text: string): string {
  return `${text.replace(/^/gm, '  ')}\n`;
}

function pairText(text: string): string {
  if (!/^[^=]+=/.test(text)) throw new UsageError(`"${text}" is not k=v`);
  return text;
}
