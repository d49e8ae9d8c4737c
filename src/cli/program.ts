// Commander's side of the commands, and what becomes of whatever they throw.
//
// Exit codes: 0 done, 1 failed, 2 wrong usage, 128 + n ended by signal n.

import { readFileSync } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { answerTextOf, connectServer, PlatformError, type ServerClient } from '../client/index.ts';
import { CANCEL, FORK, REMOVE, RETRY } from './act.ts';
import { BENCH } from './bench.ts';
import type { CommandOption, CommandSpec, Run } from './command.ts';
import { DEAD_LETTERS } from './dead-letters.ts';
import { DEPLOY } from './deploy.ts';
import { DEV } from './dev.ts';
import { DOCTOR } from './doctor.ts';
import { INVOKE } from './invoke.ts';
import { APP, APPS } from './look-apps.ts';
import { LOGS } from './look-logs.ts';
import { INSTANCES, LIMITS, NODES } from './look-server.ts';
import { SESSION, SESSIONS } from './look-sessions.ts';
import { TRACE } from './look-trace.ts';
import { OBJECTS } from './objects.ts';
import { errorText } from './print-error.ts';
import { SERVE } from './serve.ts';
import { startServer } from './server-door.ts';
import { Interrupted, OutputClosed, type Terminal } from './terminal.ts';
import { paintFor } from './text.ts';
import { UsageError } from './usage.ts';

/** Under the headings of `antrail --help`. */
const GROUPS: readonly (readonly [heading: string, commands: readonly CommandSpec[]])[] = [
  ['Run', [DEV, SERVE, DEPLOY, INVOKE]],
  ['Look', [APPS, APP, SESSIONS, SESSION, TRACE, LOGS, OBJECTS, INSTANCES, NODES, DEAD_LETTERS, LIMITS]],
  ['Act', [CANCEL, RETRY, FORK, REMOVE]],
  ['Check', [DOCTOR, BENCH]],
];

export const COMMANDS: readonly CommandSpec[] = GROUPS.flatMap(([, commands]) => commands);

/** What a parsed command line asks for. */
export interface Invocation {
  readonly command: CommandSpec;
  readonly args: readonly unknown[];
  readonly options: Readonly<Record<string, any>>;
}

/** Runs one command line. @returns the exit code. */
export async function main(argv: readonly string[], terminal: Terminal): Promise<number> {
  let json = false;
  try {
    let exitCode = 0;
    const program = buildProgram(terminal, async ({ command, args, options }) => {
      json = options.json === true && command.json === true;
      exitCode = (await command.run(runOf(terminal, options, json), args)) ?? 0;
    });
    await program.parseAsync(withoutHelpOfNothing(argv), { from: 'user' });
    return exitCode;
  } catch (thrown) {
    return exitCodeOf(thrown, terminal, json);
  }
}

/** @param start called when a command line was understood. */
export function buildProgram(terminal: Terminal, start: (invocation: Invocation) => Promise<void>): Command {
  const program = new Command('antrail')
    .description('Self-hosted serverless functions that are driven by data.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .option('--server <url>', 'address of the server (default: ANTRAIL_URL, else http://127.0.0.1:7070)')
    .option('--token <token>', 'token for it (default: ANTRAIL_TOKEN)')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => void terminal.out(text).catch(() => undefined),
      writeErr: (text) => void terminal.err(text),
      getOutHelpWidth: () => terminal.columns,
      getErrHelpWidth: () => terminal.columns,
      getOutHasColors: () => terminal.color,
      getErrHasColors: () => terminal.color,
    })
    .showHelpAfterError('(antrail --help lists the commands)')
    .exitOverride();
  for (const [heading, commands] of GROUPS) {
    program.commandsGroup(`${heading}:`);
    for (const spec of commands) addCommand(program, spec, start);
  }
  return program.helpCommand('help [command]', 'print help of a command');
}

function addCommand(program: Command, spec: CommandSpec, start: (invocation: Invocation) => Promise<void>): void {
  const command = program
    .command(spec.usage)
    .description(spec.does)
    .showHelpAfterError(`(antrail ${spec.usage.split(' ')[0]} --help explains it)`)
    .addHelpText('after', helpAfter(spec));
  for (const option of spec.options ?? []) command.addOption(optionOf(option));
  if (spec.json) command.option('--json', 'print the HTTP answer as it is');
  command.action(async (...given: unknown[]) => {
    // Commander hands over the arguments, then options, then the command.
    await start({ command: spec, args: given.slice(0, -2), options: command.optsWithGlobals() });
  });
}

function optionOf({ flags, does, parse }: CommandOption): Option {
  const option = new Option(flags, does);
  if (parse === undefined) return option;
  return option.argParser((text: string, before: unknown) => {
    try {
      return parse(text, before);
    } catch (thrown) {
      if (thrown instanceof UsageError) throw new InvalidArgumentError(thrown.message);
      throw thrown;
    }
  });
}

function helpAfter({ more, examples }: CommandSpec): string {
  const width = Math.max(...examples.map(([line]) => line.length));
  const lines = examples.map(([line, does]) =>
    line.length > 60 ? `  $ ${line}\n      ${does}` : `  $ ${line.padEnd(Math.min(60, width))}  ${does}`,
  );
  return `\n${more === undefined ? '' : `${more}\n\n`}Examples:\n${lines.join('\n')}`;
}

function runOf(terminal: Terminal, options: Invocation['options'], json: boolean): Run {
  let server: ServerClient | undefined;
  return {
    terminal,
    options,
    json,
    paint: paintFor(terminal.color),
    startServer,
    // Made on first use: a wrong address matters only to commands that ask a server.
    get server() {
      server ??= connectServer({
        url: options.server ?? nonEmpty(terminal.env.ANTRAIL_URL),
        token: options.token ?? nonEmpty(terminal.env.ANTRAIL_TOKEN),
      });
      return server;
    },
  };
}

async function exitCodeOf(thrown: unknown, terminal: Terminal, json: boolean): Promise<number> {
  if (thrown instanceof OutputClosed) return 0;
  if (terminal.interrupted.aborted) {
    const reason: unknown = terminal.interrupted.reason;
    return reason instanceof Interrupted ? reason.exitCode : 1;
  }
  // Commander has already said it.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
  if (thrown instanceof UsageError) {
    await terminal.err(`antrail: ${thrown.message}\n`);
    return 2;
  }
  const answer = json ? answerTextOf(thrown) : undefined;
  await terminal.err(answer === undefined ? errorText(thrown, paintFor(terminal.color)) : `${answer}\n`);
  return thrown instanceof PlatformError && thrown.code === 'E_OPTION_INVALID' ? 2 : 1;
}

/** Commander answers `--help` before it looks whether there is such a command: then the command is what is wrong. */
function withoutHelpOfNothing(argv: readonly string[]): readonly string[] {
  let at = 0;
  while (argv[at]?.startsWith('-')) at += argv[at] === '--server' || argv[at] === '--token' ? 2 : 1;
  const name = argv[at];
  const isKnown = name === undefined || name === 'help' || COMMANDS.some(({ usage }) => usage.split(' ')[0] === name);
  return isKnown ? argv : argv.filter((word) => word !== '--help' && word !== '-h');
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}

function packageVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
