// Goal: what is reported last is what was saved last. Method: real files, saved as editors do; reports are awaited, never
// slept for.

import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { type AppChange, watchApp } from './index.ts';

const appText = (name: string, lib = './lib/handler.ts') => `import { app, fn } from 'antrail';
import { handler } from '${lib}';
export default app('${name}', { entry: 'f', functions: { f: fn(handler) } });
`;

/** Reports in order; `next` waits for the one that is due. */
class Reports {
  readonly #queue: AppChange[] = [];
  #waiting: ((change: AppChange) => void) | undefined;

  push(change: AppChange): void {
    if (this.#waiting === undefined) this.#queue.push(change);
    else this.#waiting(change);
    this.#waiting = undefined;
  }

  get count(): number {
    return this.#queue.length;
  }

  next(): Promise<AppChange> {
    const first = this.#queue.shift();
    if (first !== undefined) return Promise.resolve(first);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }
}

function told(change: AppChange): string {
  return change.ok ? change.app.appName : change.error.message;
}

test('each save is reported, good or bad, and nothing else is', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'antrail-watch-'));
  const entry = join(folder, 'app.ts');
  await mkdir(join(folder, 'lib'));
  await writeFile(join(folder, 'lib/handler.ts'), 'export const handler = () => 1;\n');
  await writeFile(entry, appText('one'));
  const reports = new Reports();
  const watching = await watchApp(entry, (change) => reports.push(change));
  try {
    assert.equal(reports.count, 1, 'the first is reported before it resolves');
    const first = await reports.next();
    assert.equal(told(first), 'one');

    await writeFile(entry, appText('two'));
    assert.equal(told(await reports.next()), 'two');

    // As editors do that write beside and rename.
    await writeFile(join(folder, 'lib/.handler.swp'), 'export const handler = () => 2;\n');
    await rename(join(folder, 'lib/.handler.swp'), join(folder, 'lib/handler.ts'));
    const third = await reports.next();
    assert.ok(third.ok && first.ok && third.app.version !== first.app.version);

    await writeFile(join(folder, 'lib/handler.ts'), 'export const handler = ;\n');
    assert.match(told(await reports.next()), /^lib\/handler\.ts:1: Unexpected ";"/);
    await writeFile(join(folder, 'lib/handler.ts'), "throw new Error('top');\nexport const handler = () => 3;\n");
    assert.match(told(await reports.next()), /^lib\/handler\.ts:1: Error: top/);

    // A file, then a folder, that is not there yet.
    await writeFile(entry, appText('three', './new/er/handler.ts'));
    assert.match(told(await reports.next()), /^app\.ts:2: Could not resolve/);
    await mkdir(join(folder, 'new/er'), { recursive: true });
    await writeFile(join(folder, 'new/er/handler.ts'), 'export const handler = () => 4;\n');
    assert.equal(told(await reports.next()), 'three');

    // The same again, and a file that is none of its own: no report between this and the next.
    await writeFile(entry, appText('three', './new/er/handler.ts'));
    await writeFile(join(folder, 'notes.txt'), 'x');
    await writeFile(join(folder, 'new/er/handler.ts'), 'export const handler = () => 5;\n');
    const last = await reports.next();
    assert.ok(last.ok && String(last.app.bundle.files['main.mjs']).includes('() => 5'));

    // A folder that is replaced, as a change of branches does.
    await rm(join(folder, 'new'), { recursive: true });
    assert.match(told(await reports.next()), /Could not resolve/);
    await mkdir(join(folder, 'new/er'), { recursive: true });
    await writeFile(join(folder, 'new/er/handler.ts'), 'export const handler = () => 6;\n');
    const again = await reports.next();
    assert.ok(again.ok && String(again.app.bundle.files['main.mjs']).includes('() => 6'));
  } finally {
    await watching.close();
    await watching.close();
    assert.equal(reports.count, 0);
    await rm(folder, { recursive: true, force: true });
  }
});

test('a save during a report is not lost, and reports never overlap', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'antrail-watch-'));
  const entry = join(folder, 'app.ts');
  await writeFile(join(folder, 'handler.ts'), 'export const handler = () => 0;\n');
  await writeFile(entry, appText('x', './handler.ts'));
  const reports = new Reports();
  let saves = 0;
  let running = 0;
  const watching = await watchApp(entry, async (change) => {
    assert.equal(++running, 1);
    if (saves < 3) await writeFile(join(folder, 'handler.ts'), `export const handler = () => ${++saves};\n`);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    reports.push(change);
  });
  try {
    for (let seen = ''; !seen.includes('() => 3'); ) {
      const change = await reports.next();
      assert.ok(change.ok);
      seen = String(change.app.bundle.files['main.mjs']);
    }
  } finally {
    await watching.close();
    await rm(folder, { recursive: true, force: true });
  }
});

test('an app that is not there yet is awaited', { timeout: 60_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'antrail-watch-'));
  const entry = join(folder, 'later/app.ts');
  const reports = new Reports();
  const watching = await watchApp(entry, (change) => reports.push(change));
  try {
    assert.match(told(await reports.next()), /Could not resolve/);
    await mkdir(join(folder, 'later'));
    await writeFile(
      entry,
      "import { app, fn } from 'antrail';\nexport default app('later', { entry: 'f', functions: { f: fn(() => 1) } });\n",
    );
    let change = await reports.next();
    // An empty file may be seen first.
    if (!change.ok) change = await reports.next();
    assert.equal(told(change), 'later');
  } finally {
    await watching.close();
    await rm(folder, { recursive: true, force: true });
  }
});
