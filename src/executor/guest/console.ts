import { format } from 'node:util';
import type { Runner } from './runner.ts';

const LEVELS = { debug: 'debug', log: 'info', info: 'info', warn: 'warn', error: 'error', trace: 'debug' } as const;

/**
 * What user code prints becomes log lines of the invocation that runs; with several at once, of none, since who printed
 * is not known. What libraries write to the streams themselves still comes as lines of the instance.
 */
export function captureConsole(runner: Runner): void {
  for (const [method, level] of Object.entries(LEVELS)) {
    (globalThis.console as unknown as Record<string, unknown>)[method] = (...parts: unknown[]) =>
      runner.log(level, format(...parts), undefined, undefined);
  }
}
