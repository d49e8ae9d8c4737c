// Goal: `npm start` serves the examples until Ctrl-C and says plainly what is wrong. Method: its program as a process.

import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { connect, connectServer } from 'antrail/client';
import { ROOT } from '../../examples/server.ts';

let dataDir: string;
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'antrail-start-'));
});
after(() => rm(dataDir, { recursive: true, force: true }));

class Program {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly exit: Promise<unknown>;
  out = '';
  err = '';

  constructor(...args: readonly string[]) {
    const file = join(ROOT, 'dist-test/examples/start.js');
    this.child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
    });
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
    });
    this.exit = once(this.child, 'close').then(([code]) => code);
  }

  /** Its first line's address. */
  async url(): Promise<string> {
    for (;;) {
      const match = /listening on (http:\/\/[^,\s]+)[\s\S]*Ctrl-C/.exec(this.out);
      if (match?.[1] !== undefined) return match[1];
      const code = await Promise.race([this.exit, once(this.child.stdout, 'data').then(() => undefined)]);
      if (code !== undefined) throw new Error(`exit code ${code}: ${this.err}`);
    }
  }
}

test('it serves all examples, and ends with 0 at Ctrl-C, even when that arrives twice', async () => {
  const program = new Program('--port', '0', '--data', dataDir);
  try {
    const url = await program.url();
    const { apps } = await connectServer({ url }).apps();
    assert.deepEqual(
      apps.map(({ app }) => app),
      [
        'ad-events',
        'conditional',
        'custom-trigger',
        'dynamic-map',
        'finra-audit',
        'hello',
        'media-review',
        'redundant-inference',
        'resize',
        'risk-query',
        'sort',
        'video',
        'word-count',
      ],
    );
    const hello = connect<typeof import('../../examples/hello/app.ts').default>({ app: 'hello', url });
    assert.equal(await hello.invoke('greet'), 'HELLO, WORLD!');

    const second = new Program('--port', new URL(url).port, '--data', join(dataDir, 'other'));
    assert.equal(await second.exit, 1);
    assert.match(second.err, new RegExp(`${new URL(url).port}`), 'it names the port that is taken');
    assert.doesNotMatch(second.err, /\n\s+at /, 'no stack');

    program.child.kill('SIGINT');
    program.child.kill('SIGINT');
    assert.equal(await program.exit, 0, program.err);
  } finally {
    program.child.kill('SIGKILL');
  }
});

test('wrong options are shown the usage, and end it with 2', async () => {
  for (const args of [
    ['--port', '70000'],
    ['--prot', '1'],
  ]) {
    const program = new Program(...args);
    assert.equal(await program.exit, 2);
    assert.match(program.err, /^usage: npm start/);
  }
});
