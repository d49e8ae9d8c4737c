import type { Log } from '../../sdk/index.ts';
import type { Attempt } from './attempt.ts';
import type { Runner } from './runner.ts';

/** `ctx.log`; without an attempt: of `init`. */
export function createLog(runner: Runner, attempt: Attempt | undefined): Log {
  const info: Log['info'] = (message, fields) => runner.log('info', message, fields, attempt);
  return Object.assign((message: string, fields?: Readonly<Record<string, unknown>>) => info(message, fields), {
    debug: (message: string, fields?: Readonly<Record<string, unknown>>) =>
      runner.log('debug', message, fields, attempt),
    info,
    warn: (message: string, fields?: Readonly<Record<string, unknown>>) => runner.log('warn', message, fields, attempt),
    error: (message: string, fields?: Readonly<Record<string, unknown>>) =>
      runner.log('error', message, fields, attempt),
  });
}
