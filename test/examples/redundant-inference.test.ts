// Goal: the answer is that of the first three copies, however long the fourth takes, and the fourth is told to stop. Method:
// each request has one copy that would sleep for a minute; a real server; scores are computed here from the image.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'antrail/client';
import type { Inference } from '../../examples/redundant-inference/app.ts';
import { classify, LABELS, SIDE, stragglerOf, tensorOf } from '../../examples/redundant-inference/model.ts';
import { parsePpm, syntheticPpm } from '../../examples/resize/image.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/redundant-inference/app.ts');
});
after(() => server?.close());

const client = () =>
  connect<typeof import('../../examples/redundant-inference/app.ts').default>({
    app: 'redundant-inference',
    url: server.url,
  });

test('the slow copy is not waited for, its signal is aborted, and it is no failure', async () => {
  // One that has not begun when the others have answered never begins: asked again until one had.
  for (let seed = 1; seed <= 50; seed++) {
    const photo = syntheticPpm(64, 48, seed);
    const { straggler, inference } = expected(photo);
    const handle = await client().start<Inference>('resize', photo);
    assert.deepEqual(await handle.result(), inference);
    // The session ends, although the copy would sleep on for a minute.
    let record = await handle.info();
    while (record.state === 'running') record = await handle.info();
    assert.equal(record.state, 'completed');
    const { invocations } = await handle.trace();
    const attempts = new Map(invocations.map((one) => [one.function, one.attempts.map(({ outcome }) => outcome)]));
    const lost = attempts.get(`classify${straggler}`) ?? [];
    assert.equal(attempts.size, 6);
    for (const [name, outcomes] of attempts) {
      assert.deepEqual(outcomes, name === `classify${straggler}` ? lost : ['ok'], name);
    }
    if (lost.length === 0) continue;
    assert.deepEqual(lost, ['cancelled']);
    const { deadLetters } = await server.client.deadLetters();
    assert.deepEqual(deadLetters, []);
    await gaveUp(handle.session, straggler);
    return;
  }
  assert.fail('no slow copy had begun');
});

test('fifty requests at once are each answered by their own copies', async () => {
  const photos = Array.from({ length: 50 }, (_, i) => syntheticPpm(40 + i, 30, i));
  const wanted = photos.map(expected);
  assert.equal(new Set(wanted.map(({ straggler }) => straggler)).size, 4, 'every copy straggles for somebody');
  const answers = await Promise.all(photos.map((photo) => client().invoke<Inference>('resize', photo)));
  assert.deepEqual(
    answers,
    wanted.map(({ inference }) => inference),
  );
});

/** The straggler has said so itself. */
async function gaveUp(session: string, copy: number): Promise<void> {
  const stop = new AbortController();
  for await (const { message, fields } of server.client.logs({ session, follow: true }, stop.signal)) {
    if (message !== 'gave up') continue;
    assert.deepEqual(fields, { copy, code: 'E_CANCELLED' });
    break;
  }
  stop.abort();
}

function expected(photo: Uint8Array): { straggler: number; inference: Inference } {
  const tensor = new Float32Array(SIDE * SIDE * 3);
  tensorOf(parsePpm(photo), tensor);
  const straggler = stragglerOf(tensor);
  const copies = [0, 1, 2, 3].filter((copy) => copy !== straggler);
  const scores = LABELS.map((_, i) => {
    let sum = 0;
    for (const copy of copies) sum += classify(tensor, copy)[i] ?? 0;
    return sum / copies.length;
  });
  const best = scores.reduce((top, score, i) => (score > (scores[top] ?? 0) ? i : top), 0);
  return { straggler, inference: { label: LABELS[best] ?? '', scores, copies } };
}
