// Goal: word count ends with the right table and every firing once when its host, or one of its instances, is killed in the
// middle. Method: the example over a real server, process and threads; the kill comes when some mappers have ended and others
// have not, which the trace tells.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { countInOneThread, textOfMobyDick } from '../../examples/word-count/moby-dick.ts';
import { Served, until } from '../fixtures/served.ts';

const WORD_COUNT = new URL('../../../examples/word-count/app.ts', import.meta.url).pathname;

/** The example under another name, with something before each mapper's work. */
const wordCount = (name: string, beforeMap: string) => `
import { app, fn } from 'antrail';
import { buckets, collectTables, mapChunk, reducePartition, splitText } from ${JSON.stringify(WORD_COUNT)};

export default app('${name}', {
  entry: 'split',
  functions: {
    split: fn<any>((ctx, [text]) => splitText(ctx, text)),
    map: fn(async (ctx, [chunk]) => { ${beforeMap} mapChunk(ctx, chunk); }),
    reduce: fn<any>((ctx, pairs) => reducePartition(ctx, pairs)),
    collect: fn<any>((ctx, tables) => collectTables(ctx, tables)),
  },
  buckets,
});`;

const text = textOfMobyDick().slice(0, 150_000);

let server: Served;
before(async () => {
  server = await Served.start();
});
after(() => server.close());

async function countsOf(session: string, expectedInvocations: number): Promise<void> {
  assert.deepEqual((await server.result(session)).json, countInOneThread(text));
  assert.equal((await server.ended(session)).state, 'completed');
  const { invocations } = (await server.get(`/v1/sessions/${session}/trace`)).json;
  assert.equal(invocations.length, expectedInvocations);
  const firings = invocations.map((one: { firing: string; function: string }) => `${one.firing} ${one.function}`);
  assert.equal(new Set(firings).size, firings.length, 'every firing once');
}

test('the app host is killed in the middle of word count', async () => {
  await server.deploy(wordCount('killed-host', 'await new Promise((resolve) => setTimeout(resolve, 150));'));
  const session = await server.start('killed-host/split', Buffer.from(text));
  const mappersEnded = async () => {
    const { invocations = [] } = (await server.get(`/v1/sessions/${session}/trace`)).json;
    const mappers = invocations.filter((one: { function: string }) => one.function === 'map');
    return mappers.filter((one: { attempts: { outcome: string }[] }) => one.attempts.at(-1)?.outcome === 'ok').length;
  };
  await until(async () => (await mappersEnded()) > 0, 'a mapper has ended');
  assert.equal((await server.get(`/v1/sessions/${session}`)).json.state, 'running');
  process.kill(await server.host('killed-host'), 'SIGKILL');
  await countsOf(session, 1 + 12 + 6 + 1);
});

test('instances end in the middle of word count', async () => {
  // Every third mapper takes its instance with it, once.
  const die = 'if (ctx.attempt === 1 && Number.parseInt(ctx.invocation.slice(-2), 16) % 3 === 0) process.exit(1);';
  await server.deploy(wordCount('killed-instance', die));
  const session = await server.start('killed-instance/split', Buffer.from(text));
  await countsOf(session, 1 + 12 + 6 + 1);
});
