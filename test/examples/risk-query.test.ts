// Goal: a synchronous caller gets the risk of the place it names, whoever else asks. Method: a real server; the expected
// levels are written down here.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'antrail/client';
import { CASES } from '../../examples/risk-query/app.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/risk-query/app.ts');
});
after(() => server?.close());

const riskQuery = () =>
  connect<typeof import('../../examples/risk-query/app.ts').default>({ app: 'risk-query', url: server.url });
const ask = (...request: readonly string[]) => riskQuery().invoke<string>('filterLoc', request);

const EXPECTED: readonly (readonly [place: string, answer: string])[] = [
  ['Harbour', '57,High'],
  ['Airport', '33,High'],
  ['Market', '21,High'],
  ['Station', '20,Medium'],
  ['Campus', '8,Medium'],
  ['Stadium', '3,Medium'],
  ['Library', '1,Medium'],
  ['Forest', '0,Low'],
  ['', '0,Low'],
  ['constructor', '0,Low'],
];

test('each place has its count and level', async () => {
  assert.deepEqual(
    EXPECTED.map(([place]) => place).filter((place) => Object.hasOwn(CASES, place)),
    Object.keys(CASES),
  );
  for (const [place, answer] of EXPECTED) assert.equal(await ask('user:7', `loc:${place}`, 'when:now'), answer, place);
});

test('a hundred callers at once get their own answers', async () => {
  const asked = Array.from({ length: 100 }, (_, i) => EXPECTED[i % EXPECTED.length] as (typeof EXPECTED)[number]);
  const answers = await Promise.all(asked.map(([place]) => ask(`loc:${place}`)));
  assert.deepEqual(
    answers,
    asked.map(([, answer]) => answer),
  );
});

test('a request without a place is refused in words', async () => {
  await assert.rejects(riskQuery().invoke('filterLoc', 'loc:Harbour' as never), { message: /give a list/ });
  await assert.rejects(ask('user:7'), { code: 'E_FUNCTION_FAILED', message: /one of them loc:<place>/ });
  await assert.rejects(riskQuery().invoke('filterLoc'), {
    code: 'E_FUNCTION_FAILED',
    message: /one of them loc:<place>/,
  });
});
