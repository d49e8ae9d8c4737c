// Goal: what ran in an ended session can be looked at after its app host, its version or the server is gone.
// Method: a real server; hosts and the server are killed, the app is deployed anew.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isAlive, Served, until } from '../fixtures/served.ts';

const APP = `
import { app, bucket, fn, immediate } from 'antrail';
export default app('traced', {
  entry: 'split',
  functions: {
    split: fn((ctx, [n]) => { for (let i = 0; i < n.json<number>(); i++) ctx.send('parts', i); }),
    part: fn((ctx, [one]) => { ctx.log('part ' + one.json()); }, { retries: 1 }),
  },
  buckets: { parts: bucket({ on: { each: immediate({ run: 'part' }) } }) },
});`;

let server: Served;
before(async () => {
  server = await Served.start();
  await server.deploy(APP);
});
after(() => server.close());

interface Traced {
  readonly function: string;
  readonly firing: string | null;
  readonly in: readonly string[];
  readonly attempts: readonly { readonly outcome: string }[];
}

/** @returns the invocations; as it was ended, nothing of it runs any more. */
async function traceOf(session: string): Promise<Traced[]> {
  const { status, json } = await server.get(`/v1/sessions/${session}/trace`);
  assert.equal(status, 200, JSON.stringify(json));
  assert.equal(json.session, session);
  return json.invocations;
}

function check(invocations: readonly Traced[], parts: number): void {
  assert.equal(invocations.length, 1 + parts);
  assert.equal(invocations[0]?.function, 'split');
  for (const one of invocations)
    assert.deepEqual(
      one.attempts.map(({ outcome }) => outcome),
      ['ok'],
    );
  for (const one of invocations.slice(1)) assert.match(one.firing ?? '', /^parts\/each\//);
}

async function killHost(): Promise<void> {
  const pid = await server.host('traced');
  process.kill(pid, 'SIGKILL');
  await until(() => !isAlive(pid), 'the host is gone');
  await until(() => server.hosts('traced').some((host) => host.pid !== pid), 'another is there');
}

test('the trace of an asynchronous session is there at once after a kill of its host, and of the server', async () => {
  const session = await server.start('traced/split', 3);
  await server.ended(session);
  const before = await traceOf(session);
  check(before, 3);
  await killHost();
  assert.deepEqual(await traceOf(session), before);
  await server.kill();
  await server.begin();
  assert.deepEqual(await traceOf(session), before);
});

test('the trace of a synchronous call is handed over soon, and outlives its host and its version', async () => {
  const { session } = await server.call('traced/split', 2);
  await server.ended(session);
  check(await traceOf(session), 2);
  await until(async () => {
    const metrics = (await server.get('/metrics')).bytes.toString();
    return /^antrail_traces_kept 1$/m.test(metrics);
  }, 'it was handed over');
  await killHost();
  check(await traceOf(session), 2);

  const last = (await server.call('traced/split', 1)).session;
  const { json } = await server.get('/v1/apps/traced');
  await server.deploy(APP.replace("'part '", "'new part '"));
  await until(() => server.hosts('traced').every(({ version }) => version !== json.version), 'the old host ends');
  check(await traceOf(last), 1);
});
