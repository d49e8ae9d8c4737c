// Trades, prices, and the rules that a trade can break. Money is whole cents: sums are exact.

import { randomOf } from '../random.ts';

export const RULES_MAX = 1_000;
export const TRADES_MAX = 1_000_000;

export const SYMBOLS = ['AAL', 'BEE', 'CAT', 'DOE', 'ELK', 'FOX', 'GNU', 'HEN'] as const;

export interface Trade {
  readonly symbol: (typeof SYMBOLS)[number];
  readonly side: 'buy' | 'sell';
  readonly quantity: number;
  /** Cents a share. */
  readonly price: number;
}

export interface MarketData {
  /** Last price by symbol, cents. */
  readonly prices: Readonly<Record<string, number>>;
  readonly trades: readonly Trade[];
}

/** What one rule found. */
export interface Finding {
  readonly rule: number;
  readonly violations: number;
  /** Cents: quantity times price of the trades that break it. */
  readonly notional: number;
}

export function marketData(seed: number, tradeCount: number): MarketData {
  const random = randomOf(seed);
  const prices = Object.fromEntries(SYMBOLS.map((symbol) => [symbol, 1_000 + (random() % 20_000)]));
  const trades = Array.from({ length: tradeCount }, (): Trade => {
    const symbol = SYMBOLS[random() % SYMBOLS.length] ?? 'AAL';
    const last = prices[symbol] ?? 0;
    return {
      symbol,
      side: (random() & 1) === 0 ? 'buy' : 'sell',
      quantity: 1 + (random() % 1_000),
      // Up to a fifth off.
      price: last + Math.trunc((last * ((random() % 401) - 200)) / 1_000),
    };
  });
  return { prices, trades };
}

/**
 * Rule n is of one of three kinds, and stricter with every round through them: price too far from the last one, order too
 * large, too much money in one sale.
 */
export function ruleOf(rule: number): (data: MarketData) => Finding {
  const round = Math.floor(rule / 3);
  return ({ prices, trades }) => {
    let violations = 0;
    let notional = 0;
    for (const { symbol, side, quantity, price } of trades) {
      const last = prices[symbol] ?? 0;
      const isBroken =
        rule % 3 === 0
          ? Math.abs(price - last) * 100 > last * Math.max(1, 18 - round)
          : rule % 3 === 1
            ? quantity > Math.max(100, 950 - 25 * round)
            : side === 'sell' && quantity * price > Math.max(100_000, 12_000_000 - 300_000 * round);
      if (!isBroken) continue;
      violations++;
      notional += quantity * price;
    }
    return { rule, violations, notional };
  };
}
