import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { CommandSpec } from './command.ts';
import type { Terminal } from './terminal.ts';
import { parseCount, parsePort } from './usage.ts';

export const DEFAULT_HOST = '127.0.0.1';
export const DEFAULT_PORT = 7070;

export const SERVE: CommandSpec = {
  usage: 'serve',
  does: 'run the server',
  more:
    'The first signal to stop lets running work end, the second ends at once.\n' +
    'The file behind --config is one JSON object. Of the limits that `antrail limits` shows it may set bodyBytesMax,\n' +
    'objectBytesMax, objectOverBytesMax, spillBytesMax, persistedBytesMax, persistedRetentionMs, inlineBytesMax,\n' +
    'instancesMax and queueMax. Besides: weights ({"app": 2}: twice the share of others), allowedHosts (host names that\n' +
    'requests may name), verifyObjects (true: checks that no object is changed after it was sent, as `antrail dev` does).',
  options: [
    { flags: '--data <dir>', does: 'where it keeps everything (default: ~/.antrail)' },
    { flags: '--port <n>', does: `0 takes a free one (default: ${DEFAULT_PORT})`, parse: parsePort },
    { flags: '--host <host>', does: `address to listen on (default: ${DEFAULT_HOST})` },
    { flags: '--config <file>', does: 'further settings' },
    { flags: '--worker-nodes <n>', does: 'worker nodes on this machine; this release has one', parse: parseCount },
  ],
  examples: [
    ['antrail serve', 'on port 7070, data in ~/.antrail'],
    ['antrail serve --port 0 --data ./data', 'on a free port'],
  ],
  run: async ({ terminal, options, startServer }) => {
    const server = await startServer({
      dataDir: options.data === undefined ? defaultDataDir() : resolve(options.data),
      host: options.host ?? DEFAULT_HOST,
      port: options.port ?? DEFAULT_PORT,
      ...(options.config === undefined ? {} : { configFile: resolve(options.config) }),
      ...(options.workerNodes === undefined ? {} : { workerNodes: options.workerNodes }),
    });
    await say(terminal, `antrail listening on ${server.url}\n`);
    if ((options.workerNodes ?? 1) > 1) {
      await terminal.err('antrail: this release has one worker node: --worker-nodes changes nothing\n');
    }
    await interruption(terminal);
    await server.close();
    return undefined;
  },
};

export function defaultDataDir(): string {
  return join(homedir(), '.antrail');
}

/** A server outlives whoever reads what it prints. */
export function say(terminal: Terminal, text: string): Promise<void> {
  return terminal.out(text).catch(() => undefined);
}

/** Resolves at the first signal to stop. */
export function interruption({ interrupted }: Terminal): Promise<void> {
  return new Promise((done) => {
    if (interrupted.aborted) done();
    else interrupted.addEventListener('abort', () => done(), { once: true });
  });
}
