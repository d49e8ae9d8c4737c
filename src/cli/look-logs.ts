import type { LogEntry } from '../protocol/index.ts';
import type { CommandSpec } from './command.ts';
import { type Color, type Paint, printable } from './text.ts';
import { parseCount } from './usage.ts';

const LEVEL_COLORS: Readonly<Record<string, Color>> = { debug: 'dim', info: 'cyan', warn: 'yellow', error: 'red' };

const NO_LINES = 'No log lines. Functions write them with console.log and ctx.log.';

export const LOGS: CommandSpec = {
  usage: 'logs [app]',
  does: 'print log lines of apps',
  more: 'Lines are what functions write with console.log and ctx.log; their times are UTC.',
  json: true,
  options: [
    { flags: '-f, --follow', does: 'go on with new lines' },
    { flags: '--session <id>', does: 'of this session only' },
    { flags: '--tail <n>', does: 'begin with the last n of the kept lines', parse: parseCount },
  ],
  examples: [
    ['antrail logs ad-events -f', 'watch an app'],
    ['antrail logs --session d1-2s-k3x9a', 'what one session wrote'],
    ['antrail logs --json --tail 100', 'one JSON object a line'],
  ],
  run: async (run, [app]) => {
    const { follow, session, tail } = run.options;
    const { interrupted } = run.terminal;
    let isEmpty = true;
    try {
      for await (const line of run.server.logLines({ app, session, follow, tail }, interrupted)) {
        isEmpty = false;
        await run.terminal.out(run.json ? `${line}\n` : logLine(JSON.parse(line) as LogEntry, run.paint));
      }
    } catch (thrown) {
      // Ctrl-C is how following ends.
      if (!(follow && interrupted.aborted)) throw thrown;
    }
    if (isEmpty && follow !== true && !run.json) await run.terminal.err(`${NO_LINES}\n`);
    return undefined;
  },
};

/** `12:03:04.123 warn ad-events/lookup d1-2s-k3x9a  the message {"its":"fields"}` */
export function logLine(entry: LogEntry, paint: Paint): string {
  const where = entry.function === undefined ? entry.app : `${entry.app}/${entry.function}`;
  const fields =
    entry.fields === undefined || Object.keys(entry.fields).length === 0 ? '' : JSON.stringify(entry.fields);
  return `${[
    paint('dim', entry.at.replace(/^.*T([\d:.]+)Z$/, '$1')),
    paint(LEVEL_COLORS[entry.level] ?? 'bold', printable(entry.level).padEnd(5)),
    printable(where),
    entry.session === undefined ? '' : paint('dim', printable(entry.session)),
    ` ${printable(entry.message)}`,
    fields === '' ? '' : paint('dim', printable(fields)),
  ]
    .filter((part) => part !== '')
    .join(' ')}\n`;
}
