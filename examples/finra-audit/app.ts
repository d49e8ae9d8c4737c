// Trades are audited by as many rules as the request says: market data and portfolio in, one check per rule side by side,
// one report out. After the FINRA audit of the serverless literature, which registers one function per rule; here there
// is one function, and the width is data.
//
//   fetch ── rules ──▶ check × rules ── findings ──▶ report
//     │    immediate        │ reads market/data       ▲ dynamicJoin
//     ├── market: the data, once, in shared memory    │
//     └── ctx.join: the rules to wait for ────────────┘
//
//   antrail invoke finra-audit '{"seed": 1, "trades": 10000, "rules": 40}'

import { app, bucket, dynamicJoin, fn, immediate, TerminalError } from 'antrail';
import { type Finding, type MarketData, marketData, RULES_MAX, ruleOf, TRADES_MAX } from './market.ts';

export interface AuditOrder {
  readonly seed: number;
  readonly trades: number;
  /** How many rules are checked: 0 to RULES_MAX. */
  readonly rules: number;
}

export interface AuditReport {
  readonly trades: number;
  /** In the order of the rules. */
  readonly findings: readonly Finding[];
  readonly violations: number;
  /** Cents. */
  readonly notional: number;
}

const fetch = fn<AuditOrder>((ctx, [order]) => {
  const { seed, trades, rules } = order.json();
  if (!Number.isInteger(rules) || rules < 0 || rules > RULES_MAX) {
    throw new TerminalError(`rules is a whole number from 0 to ${RULES_MAX}, not ${rules}`);
  }
  if (!(trades >= 0 && trades <= TRADES_MAX))
    throw new TerminalError(`trades is a number from 0 to ${TRADES_MAX}, not ${trades}`);
  ctx.send('market', marketData(seed, trades), { name: 'data' });
  const names = Array.from({ length: rules }, (_, index) => `rule-${index}`);
  ctx.join('findings', names);
  for (const [index, name] of names.entries()) ctx.send('rules', index, { name });
});

const check = fn<number>(async (ctx, [rule]) => {
  // One object for all checks: each reads it where `fetch` put it.
  const data = (await ctx.getObject<MarketData>('market', 'data')).json();
  ctx.send('findings', ruleOf(rule.json())(data), { name: rule.name });
});

const report = fn<Finding>(async (ctx, inputs) => {
  const findings = inputs.map((finding) => finding.json());
  const { trades } = (await ctx.getObject<MarketData>('market', 'data')).json();
  ctx.output({
    trades: trades.length,
    findings,
    violations: findings.reduce((sum, finding) => sum + finding.violations, 0),
    notional: findings.reduce((sum, finding) => sum + finding.notional, 0),
  } satisfies AuditReport);
});

export default app('finra-audit', {
  entry: 'fetch',
  functions: { fetch, check, report },
  buckets: {
    market: bucket({}),
    rules: bucket({ on: { each: immediate({ run: 'check' }) } }),
    findings: bucket({ on: { all: dynamicJoin({ run: 'report' }) } }),
  },
});
