// Goal: what failed for good can be looked at, tried again and dropped, whatever happened to the server and the app since.
// Method: a real server that is killed, an app that is mended, over HTTP and the command line.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Served, until } from '../fixtures/served.ts';

const APP = `
import { app, bucket, fn, immediate, TerminalError } from 'antrail';

export default app('letters', {
  entry: 'split',
  functions: {
    split: fn((ctx, [list]) => { for (const item of list.json<string[]>()) ctx.send('items', item); }),
    risky: fn((ctx, [item]) => {
      try {
        if (item.json() !== 'good') throw new RangeError('no ' + item.json());
      } catch (cause) {
        throw new Error('cannot take it', { cause });
      }
      ctx.send('taken', item.json(), { name: ctx.session, persist: true });
    }, { retries: { max: 2, minMs: 1, maxMs: 5 } }),
    hopeless: fn(() => { throw new TerminalError('never'); }, { retries: 5 }),
  },
  buckets: { items: bucket({ on: { each: immediate({ run: 'risky' }) } }), taken: bucket({}) },
});
`;
const MENDED = APP.replace("!== 'good'", "=== 'hopeless'");

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

async function letters(query = ''): Promise<any[]> {
  return (await server.get(`/v1/dead-letters${query}`)).json.deadLetters;
}

test('a letter tells error, causes, stack, attempts and inputs, and survives a kill of the server', async () => {
  const session = await server.start('letters/split', ['good', 'bad']);
  const record = await server.ended(session);
  assert.equal(record.state, 'failed');
  assert.equal(record.counts.attempts, 1 + 1 + 3);
  await server.kill();
  await server.begin();
  const [head, ...others] = await letters('?app=letters');
  assert.deepEqual(others, []);
  const { json: letter } = await server.get(`/v1/dead-letters/${head.id}`);
  assert.equal(letter.session, session);
  assert.equal(letter.function, 'risky');
  assert.match(letter.firing, /^items\/each\//);
  assert.equal(letter.error.code, 'E_FUNCTION_FAILED');
  assert.match(letter.error.stack, /^Error: cannot take it\n\s+at .*app\.ts:12:/);
  assert.equal(letter.error.cause.message, 'no bad');
  assert.match(letter.error.cause.stack, /app\.ts:10:/);
  assert.deepEqual(
    letter.attempts.map((one: { n: number; outcome: string }) => [one.n, one.outcome]),
    [1, 2, 3].map((n) => [n, 'error']),
  );
  for (const { startedAt, endedAt } of letter.attempts) assert.ok(Date.parse(startedAt) <= Date.parse(endedAt));
  assert.equal(letter.inputs[0].json, 'bad');
  assert.equal(letter.inputs[0].bucket, 'items');
});

test('a failed retry leaves the letter with the new error, and one on a mended version makes it go', async () => {
  const [{ id, session: failed }] = await letters();
  const retries = await Promise.all([1, 2].map(() => server.ask('POST', `/v1/dead-letters/${id}/retry`)));
  assert.deepEqual(
    retries.map(({ status }) => status),
    [202, 202],
  );
  assert.equal(retries[0]?.json.session, retries[1]?.json.session, 'it is tried once at a time');
  await server.ended(retries[0]?.json.session);
  const [again] = await letters();
  assert.deepEqual([again.id, again.retries, again.attemptCount], [id, 1, 6]);
  await server.deploy(MENDED);
  const { json } = await server.ask('POST', `/v1/dead-letters/${id}/retry`);
  const record = await server.ended(json.session);
  assert.equal(record.state, 'completed', JSON.stringify(record));
  assert.deepEqual(record.causes, [failed]);
  assert.deepEqual(await letters(), []);
  const kept = await server.get(`/v1/apps/letters/buckets/taken/objects/${json.session}`);
  assert.equal(kept.json, 'bad', 'the retry had the input of the failed invocation');
  for (const path of [`/v1/dead-letters/${id}`, `/v1/dead-letters/${id}/retry`]) {
    const gone = await server.ask(path.endsWith('retry') ? 'POST' : 'GET', path);
    assert.equal(gone.status, 404);
    assert.equal(gone.json.code, 'E_DEAD_LETTER_UNKNOWN');
  }
});

test('a TerminalError is given up at once; a dropped letter is gone, also after a kill', async () => {
  const session = await server.start('letters/hopeless');
  assert.equal((await server.ended(session)).counts.attempts, 1);
  const [letter] = await letters();
  assert.equal(letter.session, session);
  assert.equal((await server.ask('DELETE', `/v1/dead-letters/${letter.id}`)).status, 202);
  assert.equal((await server.ask('DELETE', `/v1/dead-letters/${letter.id}`)).status, 404);
  await server.kill();
  await server.begin();
  assert.deepEqual(await letters(), []);
});

test('a failing function is in the log, each attempt, with the stack of its author’s file', async () => {
  const session = await server.start('letters/split', ['hopeless']);
  await server.ended(session);
  const entries = await until(async () => {
    const text = (await server.get('/v1/logs', { query: { app: 'letters', session } })).bytes.toString().trim();
    const lines = text.split('\n').map((line) => (line === '' ? undefined : JSON.parse(line)));
    return lines.length >= 3 ? lines : undefined;
  }, 'its attempts are logged');
  assert.deepEqual(
    entries.map((entry) => [entry.level, entry.function, entry.fields.attempt]),
    [
      ['warn', 'risky', 1],
      ['warn', 'risky', 2],
      ['error', 'risky', 3],
    ],
  );
  assert.match(
    entries[2].message,
    /^Error: cannot take it\n\s+at .*app\.ts:12:[\s\S]*caused by: RangeError: no hopeless\n/,
  );
});

test('what a handler ran into tells where in its file, and logs of an app that is not there say so', async () => {
  await server.deploy(`import { app, fn } from 'antrail';
export default app('typo', {
  entry: 'f',
  functions: {
    f: fn((ctx) => {
      ctx.send('no-such-bucket', 1);
    }),
  },
  buckets: {},
});`);
  const { json } = await server.call('typo/f');
  assert.equal(json.code, 'E_BUCKET_UNKNOWN');
  assert.match(json.stack, /app\.ts:6:/);
  const logs = await server.get('/v1/logs', { query: { app: 'typpo' } });
  assert.equal(logs.status, 404);
  assert.equal(logs.json.code, 'E_APP_UNKNOWN');
  assert.equal(logs.json.didYouMean, 'typo');
});
