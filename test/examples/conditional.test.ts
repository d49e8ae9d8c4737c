// Goal: the name of an object decides which function runs, and only that one. Method: applications of every kind through
// a real server; the trace says what ran.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect } from 'antrail/client';
import type { Answer, Application } from '../../examples/conditional/app.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';

let server: ExampleServer;
before(async () => {
  server = await openServer();
  await server.deploy('examples/conditional/app.ts');
});
after(() => server?.close());

const conditional = () =>
  connect<typeof import('../../examples/conditional/app.ts').default>({ app: 'conditional', url: server.url });

const EXPECTED: readonly (readonly [Application, by: Answer['by'], why: string])[] = [
  [{ applicant: 'ann', amount: 900, income: 3_000 }, 'pay', 'accepted'],
  [{ applicant: 'bob', amount: 5_000, income: 3_000 }, 'pay', 'accepted'],
  [{ applicant: 'cid', amount: 5_001, income: 3_000 }, 'askPerson', 'review.amount'],
  [{ applicant: 'dot', amount: 36_001, income: 3_000 }, 'decline', 'rejected.income'],
  [{ applicant: 'eve', amount: 10, income: 3_000, blocked: true }, 'decline', 'rejected.blocked'],
  [{ applicant: 'fay', amount: 0, income: 3_000 }, 'decline', 'rejected.amount'],
];

test('each application goes its way, and runs no other function', async () => {
  for (const [application, by, why] of EXPECTED) {
    const handle = await conditional().start<Answer>('assess', application);
    assert.deepEqual(await handle.result(), { applicant: application.applicant, by, why });
    const { invocations } = await handle.trace();
    assert.deepEqual(
      invocations.map((one) => one.function),
      ['assess', by],
    );
  }
});

test('many at once do not cross', async () => {
  const asked = Array.from({ length: 60 }, (_, i) => {
    const [application, by, why] = EXPECTED[i % EXPECTED.length] as (typeof EXPECTED)[number];
    return { application: { ...application, applicant: `${application.applicant}-${i}` }, by, why };
  });
  const answers = await Promise.all(
    asked.map(({ application }) => conditional().invoke<Answer>('assess', application)),
  );
  assert.deepEqual(
    answers,
    asked.map(({ application, by, why }) => ({ applicant: application.applicant, by, why })),
  );
});

test('patterns hold for the whole rule: a prefix at the beginning, an expression as it is anchored', async () => {
  for (const [name, runs] of [
    ['accepted', ['pay']],
    ['accepted.', []],
    ['not.rejected.income', []],
    ['rejected.', ['decline']],
    ['review.country', ['askPerson']],
    ['review.country.', []],
    ['REVIEW.amount', []],
  ] as const) {
    const { session } = await conditional().put('decisions', name, EXPECTED[0]?.[0]);
    const handle = conditional().handle(session);
    await handle.result();
    const { invocations } = await handle.trace();
    assert.deepEqual(
      invocations.map((one) => one.function),
      runs,
      name,
    );
  }
});
