// Goal: every example in the help is a command line that the program understands. Method: parse them, run nothing.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildProgram, COMMANDS, type Invocation } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Words as a shell would make them: quotes, no variables; what follows a redirection is the shell's. */
function shellWords(line: string): string[] {
  const piped = line.split(' | ').at(-1) ?? '';
  const words: readonly string[] = piped.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  const end = words.indexOf('>');
  return (end === -1 ? words : words.slice(0, end)).map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, '$1$2'));
}

async function parse(words: readonly string[]): Promise<Invocation> {
  let said = '';
  const terminal: Terminal = {
    env: {},
    isTerminal: false,
    color: false,
    columns: 100,
    interrupted: new AbortController().signal,
    out: async () => undefined,
    err: async (text) => {
      said += text;
    },
    input: async () => new Uint8Array(0),
  };
  let parsed: Invocation | undefined;
  try {
    await buildProgram(terminal, async (invocation) => {
      parsed = invocation;
    }).parseAsync(words, { from: 'user' });
  } catch (thrown) {
    assert.fail(`antrail ${words.join(' ')}: ${said || thrown}`);
  }
  assert.ok(parsed, `antrail ${words.join(' ')} starts nothing`);
  return parsed;
}

test('every help example is understood, and starts the command that it explains', async () => {
  for (const spec of COMMANDS) {
    assert.ok(spec.examples.length > 0, `${spec.usage} has no example`);
    for (const [line, does] of spec.examples) {
      const [program, ...words] = shellWords(line);
      assert.equal(program, 'antrail', line);
      assert.ok(does.length > 0);
      const { command, args, options } = await parse(words);
      assert.equal(command, spec, line);
      assert.ok(args.length <= spec.usage.split(' ').length - 1);
      for (const name of line.match(/(?<= )--[a-z-]+/g) ?? []) {
        const key = name.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase());
        assert.notEqual(options[key], undefined, `${line}: ${name}`);
      }
    }
  }
});

test('options are the same before and behind the command', async () => {
  for (const words of [
    ['--server', 'http://x', 'apps', '--json'],
    ['apps', '--json', '--server', 'http://x'],
  ]) {
    const { options } = await parse(words);
    assert.equal(options.server, 'http://x');
    assert.equal(options.json, true);
  }
});

test('repeated pairs are collected, and a value may begin with a dash', async () => {
  const { options, args } = await parse(['invoke', 'a/f', '-5', '--session-tag', 'a=1', '--session-tag', 'b=-']);
  assert.deepEqual({ ...options.sessionTag }, { a: '1', b: '-' });
  assert.equal(args[1], '-5');
  assert.equal((await parse(['invoke', 'a/f', '-'])).args[1], '-');
});
