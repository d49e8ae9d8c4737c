import { apiPath } from '../client/index.ts';
import type { SessionTrace } from '../protocol/index.ts';
import { type CommandSpec, look } from './command.ts';
import { traceText } from './trace-text.ts';

const ROWS_MAX = 200;

export const TRACE: CommandSpec = {
  usage: 'trace <id>',
  does: 'show what a session set off: a tree of invocations with their times',
  more: 'queued: until an attempt began; ran: until it ended. start: inline, warm, takeover, prewarmed or cold.',
  json: true,
  options: [{ flags: '--all', does: `every line, not the first ${ROWS_MAX} only` }],
  examples: [['antrail trace d1-2s-k3x9a', 'where the time went']],
  run: (run, [id]) =>
    look<SessionTrace>(run, apiPath('sessions', id, 'trace'), {}, (trace) => {
      const rowsMax = run.options.all === true ? Number.POSITIVE_INFINITY : ROWS_MAX;
      return traceText(trace, { rowsMax, columns: run.terminal.columns }, run.paint);
    }),
};
