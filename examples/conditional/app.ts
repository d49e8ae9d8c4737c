// A branch without an if between functions: the name of an object says which way it goes.
//
//                            name "accepted" ─────────▶ pay
//   assess ── decisions ──▶  names "rejected.…" ──────▶ decline
//                            names like /^review\./ ──▶ askPerson
//
// One `byName` trigger per way, on the same bucket: by the whole name, by its beginning, by a pattern. An object whose
// name fits none of them starts nothing.
//
//   antrail invoke conditional '{"applicant": "ann", "amount": 900, "income": 3000}'

import { app, bucket, byName, fn } from 'antrail';

export interface Application {
  readonly applicant: string;
  readonly amount: number;
  /** A month's. */
  readonly income: number;
  readonly blocked?: boolean;
}

export interface Answer {
  readonly applicant: string;
  readonly by: 'pay' | 'decline' | 'askPerson';
  readonly why: string;
}

const INCOMES_MAX = 12;
const UNSEEN_AMOUNT_MAX = 5_000;

/** The name of the way that an application goes. */
function wayOf({ amount, income, blocked }: Application): string {
  if (blocked === true) return 'rejected.blocked';
  if (!(amount > 0)) return 'rejected.amount';
  if (amount > INCOMES_MAX * income) return 'rejected.income';
  if (amount > UNSEEN_AMOUNT_MAX) return 'review.amount';
  return 'accepted';
}

const assess = fn<Application>((ctx, [application]) => {
  // The object is passed on as it is: its bytes are not read again.
  ctx.send('decisions', application, { name: wayOf(application.json()) });
});

const answerBy = (by: Answer['by']) =>
  fn<Application>((ctx, [decision]) => {
    const { applicant } = decision.json();
    ctx.output({ applicant, by, why: decision.name } satisfies Answer);
  });

export default app('conditional', {
  entry: 'assess',
  functions: { assess, pay: answerBy('pay'), decline: answerBy('decline'), askPerson: answerBy('askPerson') },
  buckets: {
    decisions: bucket({
      on: {
        accepted: byName({ name: 'accepted', run: 'pay' }),
        rejected: byName({ match: 'rejected.', run: 'decline' }),
        doubtful: byName({ match: /^review\.(amount|country)$/, run: 'askPerson' }),
      },
    }),
  },
});
