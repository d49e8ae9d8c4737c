// Goal: an audit finds what breaks its rules, for as many rules as it is asked, side by side with others and when the app's
// process is killed under it. Method: a real server; findings are computed here trade by trade, by other means.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { connect, type SessionTrace } from 'antrail/client';
import type { AuditOrder, AuditReport } from '../../examples/finra-audit/app.ts';
import { type Finding, marketData, RULES_MAX } from '../../examples/finra-audit/market.ts';
import { type ExampleServer, openServer } from '../../examples/server.ts';
import { Served, until } from '../fixtures/served.ts';

type Audit = typeof import('../../examples/finra-audit/app.ts').default;

const TRADES = 2_000;

describe('finra audit', () => {
  let server: ExampleServer;
  before(async () => {
    server = await openServer();
    await server.deploy('examples/finra-audit/app.ts');
  });
  after(() => server?.close());

  const audit = (order: AuditOrder) =>
    connect<Audit>({ app: 'finra-audit', url: server.url }).invoke<AuditReport>('fetch', order);

  test('of 10 to 80 rules, of none and of one equals the truth', async () => {
    for (const rules of [0, 1, 10, 20, 40, 60, 80]) {
      const order = { seed: rules, trades: TRADES, rules };
      assert.deepEqual(await audit(order), truth(order));
    }
  });

  test('every rule finds something, and not the same', () => {
    const { findings } = truth({ seed: 1, trades: TRADES, rules: 40 });
    assert.ok(findings.every(({ violations }) => violations > 0 && violations < TRADES));
    assert.equal(new Set(findings.map(({ notional }) => notional)).size, 40);
  });

  test('twenty audits at once do not mix', async () => {
    const orders = Array.from({ length: 20 }, (_, i) => ({ seed: 100 + i, trades: 200 + i, rules: (i * 7) % 41 }));
    assert.deepEqual(await Promise.all(orders.map(audit)), orders.map(truth));
  });

  test('refuses more rules than there are, and half a rule', async () => {
    await assert.rejects(audit({ seed: 1, trades: 1e9, rules: 1 }), { message: /trades is a number from 0/ });
    for (const rules of [RULES_MAX + 1, 1.5, -1]) {
      await assert.rejects(audit({ seed: 1, trades: 1, rules }), {
        code: 'E_FUNCTION_FAILED',
        message: /whole number from 0/,
      });
    }
  });
});

test('an audit whose process is killed between two checks is right all the same', async () => {
  const file = new URL('../../../examples/finra-audit/app.ts', import.meta.url).pathname;
  const server = await Served.start();
  try {
    // The same app; each check takes a while, so that the kill falls between them.
    await server.deploy(`
      import { app, fn } from 'antrail';
      import audit from ${JSON.stringify(file)};
      const check = fn(async (ctx, inputs) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        return audit.functions.check.handler(ctx, inputs);
      });
      export default app('slow-audit', {
        entry: 'fetch', functions: { ...audit.functions, check }, buckets: audit.buckets,
      });`);
    const order = { seed: 5, trades: 500, rules: 60 };
    const session = await server.start('slow-audit/fetch', order);
    await until(async () => {
      const { invocations = [] } = (await server.get(`/v1/sessions/${session}/trace`)).json;
      return invocations.some(
        ({ function: name, attempts }: SessionTrace['invocations'][number]) =>
          name === 'check' && attempts.at(-1)?.outcome === 'ok',
      );
    }, 'a check has ended');
    assert.equal((await server.session(session)).state, 'running');
    process.kill(await server.host('slow-audit'), 'SIGKILL');
    assert.deepEqual((await server.result(session)).json, truth(order));
    const { state, counts } = await server.ended(session);
    assert.equal(state, 'completed');
    assert.equal(counts.invocations, 1 + order.rules + 1);
  } finally {
    await server.close();
  }
});

/** One trade at a time through all rules; prices compared as fractions, not as percentages of cents. */
function truth({ seed, trades: count, rules }: AuditOrder): AuditReport {
  const { prices, trades } = marketData(seed, count);
  const findings: Finding[] = [];
  for (let rule = 0; rule < rules; rule++) findings.push({ rule, violations: 0, notional: 0 });
  for (const { symbol, side, quantity, price } of trades) {
    const last = prices[symbol] ?? Number.NaN;
    for (const [rule, finding] of findings.entries()) {
      const round = (rule - (rule % 3)) / 3;
      const broken = [
        () => Math.abs(price - last) > (last * Math.max(1, 18 - round)) / 100,
        () => quantity > Math.max(100, 950 - 25 * round),
        () => side !== 'buy' && price * quantity > Math.max(1_000_00, 120_000_00 - 3_000_00 * round),
      ][rule % 3];
      if (broken?.() !== true) continue;
      findings[rule] = { rule, violations: finding.violations + 1, notional: finding.notional + price * quantity };
    }
  }
  const sum = (field: 'violations' | 'notional') => findings.reduce((total, finding) => total + finding[field], 0);
  return { trades: trades.length, findings, violations: sum('violations'), notional: sum('notional') };
}
