// Goal: a stack shows the author's own frames, in words of the author's files. Method: stacks as Node writes them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { userStack, withUserStack } from './user-stack.ts';

const FOLDER = '/data/apps/shop/abc';
const ROOT = '/opt/antrail/';

test('frames of the app stay, with paths from its folder; ours, those inside Node and all below them go', () => {
  const stack = [
    'RangeError: at most 3',
    'in two lines',
    '    at JSON.parse (<anonymous>)',
    '    at readFileSync (node:fs:448:20)',
    `    at pay (${FOLDER}/lib/pay.ts:5:9)`,
    `    at async <anonymous> (${FOLDER}/app.ts:11:24)`,
    `    at file://${FOLDER}/main.mjs:7:1`,
    '    at Object.send (antrail:dist/sdk/app.js:3:4)',
    '    at Runner.#invoke (/opt/antrail/src/executor/guest/runner.ts:381:12)',
    '    at Runner.#begin (file:///opt/antrail/dist/executor/guest/runner.js:365:77)',
    '    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)',
    '    at Socket.emit (node:events:524:28)',
  ].join('\n');
  assert.deepEqual(userStack(stack, FOLDER, ROOT).split('\n'), [
    'RangeError: at most 3',
    'in two lines',
    '    at JSON.parse (<anonymous>)',
    '    at readFileSync (node:fs:448:20)',
    '    at pay (lib/pay.ts:5:9)',
    '    at async <anonymous> (app.ts:11:24)',
    '    at main.mjs:7:1',
  ]);
});

test('an app inside the package keeps its frames', () => {
  const folder = '/opt/antrail/examples/.antrail/apps/demo/1';
  assert.equal(
    userStack(`Error: no\n    at f (${folder}/app.ts:1:1)`, folder, ROOT),
    'Error: no\n    at f (app.ts:1:1)',
  );
});

test('causes are shown the same way', () => {
  const cause = {
    code: 'E_FUNCTION_FAILED',
    message: 'deeper',
    stack: `Error: deeper\n    at g (${FOLDER}/b.ts:2:2)`,
  } as const;
  const error = withUserStack({ code: 'E_FUNCTION_FAILED', message: 'no', cause }, FOLDER);
  assert.equal(error.cause?.stack, 'Error: deeper\n    at g (b.ts:2:2)');
});
