// Compile-time guarantees of the door `antrail`: this file is compiled, never run. Every line under
// `@ts-expect-error` is a mistake that the types must refuse; everything else must compile as it stands.

import {
  type AnyApp,
  app,
  type Bucket,
  bucket,
  byBatchSize,
  byName,
  bySet,
  byTime,
  type Ctx,
  type CustomReaction,
  type CustomTrigger,
  custom,
  durable,
  dynamicGroup,
  dynamicJoin,
  type EpheObject,
  type Fn,
  type FnOptions,
  fn,
  type InOf,
  type Inputs,
  immediate,
  type NameOf,
  type OutOf,
  type RefsOf,
  redundant,
  TerminalError,
  type Trigger,
  type TriggerObject,
} from 'antrail';
import { z } from 'zod';

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Equal<A, B>): void {}

interface AdEvent {
  readonly ad: string;
  readonly type: string;
}
declare function campaignOf(event: AdEvent): string;
declare function countBy(objects: readonly EpheObject[]): Map<string, number>;

// --- The example of the interface, word for word.

const preprocess = fn(async (ctx, [batch]) => {
  for (const event of batch.json<AdEvent[]>()) if (event.type === 'purchase') ctx.send('purchases', event);
});
const lookup = fn(async (ctx, [purchase]) => ctx.send('matches', { campaign: campaignOf(purchase.json()) }));
const aggregate = durable(async (ctx, matches) => {
  for (const [campaign, n] of countBy(matches)) await ctx.state.update<number>(campaign, (old = 0) => old + n);
});

const adEvents = app('ad-events', {
  entry: 'preprocess',
  functions: { preprocess, lookup, aggregate },
  buckets: {
    purchases: bucket({ on: { lookup: immediate({ run: 'lookup' }) } }),
    matches: bucket({
      on: { everySecond: byTime({ windowMs: 1000, run: 'aggregate' }) },
      rerun: [{ source: 'lookup', expect: 'every-object', timeoutMs: 100 }],
    }),
  },
});
export default adEvents;

same<NameOf<typeof adEvents>, 'ad-events'>(true);
const any: AnyApp = adEvents;
same<OutOf<(typeof adEvents)['functions']['preprocess']>, any>(true);
same<OutOf<typeof lookup>, any>(true);

// --- Functions.

const typed = fn(async (_ctx, [order]: Inputs<{ id: number }>) => ({ doubled: order.json().id * 2 }));
same<typeof typed, Fn<{ id: number }, { doubled: number }>>(true);
same<InOf<typeof typed>, { id: number }>(true);
same<OutOf<typeof typed>, { doubled: number }>(true);

const synchronous = fn((_ctx, inputs) => inputs.length);
same<OutOf<typeof synchronous>, number>(true);
same<InOf<typeof synchronous>, any>(true);
same<OutOf<ReturnType<typeof fn<string, undefined>>>, any>(true);
const explicit: Fn<string> = fn<string, number>((_ctx, [word]) => word.json().length);

const validated = fn(
  async (_ctx, [order, second]) => {
    same<typeof order, EpheObject<{ id: number }>>(true);
    same<typeof second, EpheObject | undefined>(true);
    return order.json().id;
  },
  { input: z.object({ id: z.number() }), timeoutMs: 1_000, retries: { max: 3, minMs: 10, maxMs: 100 }, init: () => {} },
);
same<typeof validated, Fn<{ id: number }, number>>(true);

// @ts-expect-error: not a handler
fn(5);
// @ts-expect-error: unknown option
fn(() => {}, { timoutMs: 5 });
// @ts-expect-error: a validator must be a Standard Schema
fn(() => {}, { input: { id: 'number' } });
// @ts-expect-error: no such runtime
fn(() => {}, { runtime: 'container' });
// @ts-expect-error: the validator's type is not the handler's
fn((_ctx, [n]: Inputs<number>) => n.json(), { input: z.string() });
// @ts-expect-error: fn may read state, never write it
fn(async (ctx) => ctx.state.put('key', 1));
// @ts-expect-error: steps are for durable functions
fn(async (ctx) => ctx.step('pay', () => 1));

const options: FnOptions<string> = { concurrency: 4, memoryMb: 128, pool: 'small', runtime: 'process', priority: 1 };
fn(async (ctx) => {
  same<typeof ctx, Ctx>(true);
  const value = await ctx.state.get<number>('n');
  same<typeof value, number | undefined>(true);
  for (const { key, value } of (await ctx.state.query<number>({ prefix: 'n/' })).entries) ctx.log(key, { value });
  const big = ctx.createObject('images', 1_000_000);
  big.bytes[0] = 1;
  ctx.sendObject(big, { output: true, group: 'g' });
  const named = ctx.createObject('images', 'first.png', new Uint8Array(5));
  const made = ctx.createObject('words', { word: 'hello' });
  same<typeof made, EpheObject<{ word: string }>>(true);
  same<ReturnType<typeof ctx.sendObject>, void>(true);
  const later = ctx.getObject<string>('words', 'x');
  same<typeof later, Promise<EpheObject<string>>>(true);
  const copy: Uint8Array<ArrayBuffer> = named.copy();
  new Response(copy);
  const voids = [ctx.send('a', 1), ctx.output(2), ctx.call('f', 3), ctx.join('a', 2), ctx.join('a', ['x'])];
  same<(typeof voids)[number], ReturnType<Ctx['send']>>(true);
  ctx.closeGroup('a');
  const left: number = ctx.deadline - Date.now();
  // @ts-expect-error: may be undefined under noUncheckedIndexedAccess
  const url: string = ctx.env.URL;
  ctx.signal.throwIfAborted();
  ctx.log.warn(`attempt ${ctx.attempt} of ${ctx.invocation} in ${ctx.session}`, { left, url, voids });
  if (ctx.attempt > 2) throw new TerminalError('it will not get better', { cause: 1 });
}, options);

const paying = durable(async (ctx, [order]: Inputs<{ id: string }>) => {
  const receipt = await ctx.step('pay', async ({ idempotencyKey, attempt }) => `${idempotencyKey}${attempt}`, {
    repeatable: true,
    retries: 3,
  });
  same<typeof receipt, string>(true);
  const approval = await ctx.take<{ ok: boolean }>('approvals', order.json().id, { timeoutMs: 60_000 });
  await ctx.sleep(10);
  const child = await ctx.invoke<number>('count', { id: 1 });
  const total = await ctx.state.transaction(async (tx) => {
    await tx.put('last', ctx.now());
    await tx.delete('first');
    return tx.update<number>('total', (old = 0) => old + child + ctx.random());
  });
  await ctx.sync();
  return { ok: approval.json().ok, total, id: ctx.uuid() };
});
same<OutOf<typeof paying>, { ok: boolean; total: number; id: string }>(true);

// --- Triggers and buckets carry the names they refer to.

const two = immediate({ run: ['a', 'b'] });
same<typeof two, Trigger<readonly ['a', 'b']>>(true);
const one = immediate({ run: 'a' });
same<typeof one, Trigger<'a'>>(true);
const many = bucket({
  on: {
    two,
    group: dynamicGroup({ producers: ['p', 'q'], run: 'c' }),
    fastest: redundant({ k: 1, n: 2, sources: ['s'], cancelLosers: true, run: 'd' }),
    join: dynamicJoin({ run: 'e' }),
  },
  rerun: [
    { source: 'r', expect: ['x', 'y'], timeoutMs: 100 },
    { source: 'o', expect: 'every-object', timeoutMs: 100 },
  ],
  schema: z.object({ id: z.number() }),
});
same<typeof many, Bucket<'a' | 'b' | 'c' | 'd' | 'e' | 'o' | 'p' | 'q' | 'r' | 's'>>(true);
const bare = bucket({});
same<typeof bare, Bucket<never>>(true);
same<RefsOf<{ on: { x: Trigger<'a'> } }>, 'a'>(true);

byName({ name: 'x', run: 'a' });
byName({ match: /^x/, run: 'a' });
bySet({ names: ['x', 'y'], run: 'a' });
byBatchSize({ size: 10, maxWaitMs: 100, scope: 'session', run: 'a' });
byTime({ cron: '* * * * *', fireEmpty: true, run: 'a' });
redundant({ k: 1, n: 3, run: 'a' });
dynamicGroup({ run: 'a', scope: 'bucket' });

class EveryThird implements CustomTrigger {
  readonly #every: number;
  constructor({ every }: { every: number }) {
    this.#every = every;
  }
  onObject() {
    return this.#every > 2 ? { fire: [] } : undefined;
  }
  snapshot() {
    return {};
  }
  restore() {}
}
same<typeof third, Trigger<'a' | readonly []>>(true);
const third = custom(EveryThird, { run: 'a', options: { every: 3 } });
// @ts-expect-error: the class wants a number
custom(EveryThird, { run: 'a', options: { every: 'third' } });

class Heavy implements CustomTrigger {
  onObject(object: TriggerObject<{ kg: number }>, nowMs: number): CustomReaction | undefined {
    // @ts-expect-error: a number
    const text: string = object.json().kg;
    void text;
    if (object.json().kg < 3) return { drop: [object], timerAtMs: nowMs + 1 };
    return { fire: [{ objects: [object, object.id], run: 'a', group: 'heavy' }, {}], timerAtMs: null };
  }
  onSourceStarted(source: { readonly function: string; readonly invocation: string }): CustomReaction {
    return { fire: [{ run: [source.function] }] };
  }
  snapshot(): unknown {
    return null;
  }
  restore(_saved: unknown): void {}
}
same<typeof heavy, Trigger<readonly ['a', 'b'] | readonly ['c']>>(true);
const heavy = custom(Heavy, { run: ['a', 'b'], sources: ['c'], scope: 'session' });
// @ts-expect-error: a reaction has no such field
heavyReaction({ fires: [] });
declare function heavyReaction(reaction: CustomReaction): void;
class Lacks {
  onObject(): undefined {
    return undefined;
  }
}
// @ts-expect-error: a class has snapshot and restore
custom(Lacks, { run: 'a' });

// @ts-expect-error: no run
immediate({});
// @ts-expect-error: unknown option
immediate({ run: 'a', when: 'now' });
// @ts-expect-error: a window or a cron expression
byTime({ run: 'a' });
// @ts-expect-error: not both
byTime({ run: 'a', windowMs: 1, cron: '* * * * *' });
// @ts-expect-error: a name or a match
byName({ run: 'a' });
// @ts-expect-error: no such scope
byBatchSize({ size: 1, scope: 'app', run: 'a' });
// @ts-expect-error: not a trigger
bucket({ on: { a: { run: 'a' } } });
// @ts-expect-error: a rule needs its timeout
bucket({ rerun: [{ source: 'a', expect: 'every-object' }] });

// --- An app refuses names it does not have.

const a = fn(() => 1);
const b = fn(() => 2);
const functions = { a, b };

app('plain', { entry: 'a', functions });
app('all-options', {
  entry: 'a',
  functions,
  buckets: {},
  state: { protocols: { 'cart/': 'write-optimized' }, strictOrder: true, commit: 'each' },
  env: { REGION: 'eu', URL: null },
  secrets: ['API_KEY'],
});
const inPlace = app('in-place', {
  entry: 'a',
  functions: { a: fn(async (_ctx, [n]: Inputs<number>) => `${n.json()}`), b: fn(() => {}) },
});
same<InOf<(typeof inPlace)['functions']['a']>, number>(true);
same<OutOf<(typeof inPlace)['functions']['a']>, string>(true);
const dynamic: Record<string, Fn> = { a };
app('dynamic', {
  entry: 'whatever',
  functions: dynamic,
  buckets: { x: bucket({ on: { t: immediate({ run: 'any' }) } }) },
});

// @ts-expect-error: entry is none of its functions
app('x', { entry: 'c', functions });
// @ts-expect-error: entry is missing
app('x', { functions });
// @ts-expect-error: not a function made by fn()
app('x', { entry: 'a', functions: { a: () => 1 } });
// @ts-expect-error: no such option
app('x', { entry: 'a', functions, bukets: {} });
// @ts-expect-error: no such protocol
app('x', { entry: 'a', functions, state: { protocols: { '': 'fast' } } });
// @ts-expect-error: not a bucket
app('x', { entry: 'a', functions, buckets: { x: { on: {} } } });

app('x', {
  entry: 'a',
  functions,
  buckets: {
    fine: bucket({ on: { t: immediate({ run: 'b' }) } }),
    // @ts-expect-error: run
    target: bucket({ on: { t: immediate({ run: 'bb' }) } }),
    // @ts-expect-error: one of run
    targets: bucket({ on: { t: bySet({ names: ['x'], run: ['a', 'bb'] }) } }),
    // @ts-expect-error: the second of two triggers
    second: bucket({ on: { t: immediate({ run: 'a' }), u: byBatchSize({ size: 2, run: 'bb' }) } }),
    // @ts-expect-error: producers
    producers: bucket({ on: { t: dynamicGroup({ producers: ['aa'], run: 'a' }) } }),
    // @ts-expect-error: sources
    sources: bucket({ on: { t: redundant({ k: 1, n: 2, sources: ['aa'], run: 'a' }) } }),
    // @ts-expect-error: run, where sources could stand
    noSources: bucket({ on: { t: redundant({ k: 1, n: 2, run: 'aa' }) } }),
    // @ts-expect-error: source of a rerun rule
    rerun: bucket({ rerun: [{ source: 'aa', expect: 'every-object', timeoutMs: 100 }] }),
    // @ts-expect-error: target of a custom trigger
    custom: bucket({ on: { t: third, u: custom(EveryThird, { run: 'bb', options: { every: 3 } }) } }),
  },
});
// @ts-expect-error: a bucket made elsewhere is checked too
app('x', { entry: 'a', functions, buckets: { many } });

void [any, typed, explicit, validated, heavy];
