// Goal: the client knows an app's function names, inputs, results and buckets. Method: it compiles, and every line
// below @ts-expect-error does not. Never run.

import { app, bucket, durable, fn, immediate } from 'antrail';
import { type Client, connect, type SessionHandle } from 'antrail/client';

interface Order {
  readonly id: number;
}

const shop = app('shop', {
  entry: 'total',
  functions: {
    total: fn<Order, number>((_ctx, [order]) => order.json().id),
    mail: durable(async (ctx) => {
      ctx.send('mails', 'x');
    }),
    loose: fn((_ctx, [first]) => first.json().anything as string),
  },
  buckets: { mails: bucket({ on: { each: immediate({ run: 'mail' }) } }) },
});
type Shop = typeof shop;

type Equal<X, Y> = (<T>() => T extends X ? 1 : 2) extends <T>() => T extends Y ? 1 : 2 ? true : false;
function same<X, Y>(_: Equal<X, Y>): void {}

export async function typed(): Promise<void> {
  const c: Client<Shop> = connect<Shop>({ app: 'shop', url: 'http://127.0.0.1:7070' });
  // @ts-expect-error: another app's name.
  connect<Shop>({ app: 'store' });

  const total = await c.invoke('total', { id: 1 });
  same<typeof total, number>(true);
  // @ts-expect-error: no such function.
  await c.invoke('totl', { id: 1 });
  // @ts-expect-error: the input is an Order.
  await c.invoke('total', { id: '1' });
  const mailed = await c.invoke('mail', { to: 'a' });
  same<typeof mailed, any>(true);
  const loose = await c.invoke('loose', { whatever: 1 });
  same<typeof loose, string>(true);
  const output = await c.invoke<{ sent: boolean }>('mail');
  same<typeof output, { sent: boolean }>(true);

  const handle = await c.start('total', { id: 1 }, { idempotencyKey: 'k' });
  same<typeof handle, SessionHandle<number>>(true);
  for await (const { n, value } of handle.outputs<string>()) same<[typeof n, typeof value], [number, string]>(true);

  await c.startMany([{ function: 'total', input: { id: 1 } }, { function: 'mail' }]);
  // @ts-expect-error: the input of each entry is its function's.
  await c.startMany([{ function: 'total', input: 'x' }]);

  await c.put('mails', 'one', new Uint8Array(1), { group: 'g' });
  // @ts-expect-error: no such bucket.
  await c.put('mail', 'one', 1);
  const object = await c.get<{ a: 1 }>('mails', 'one');
  same<typeof object, { a: 1 }>(true);
}

export async function untyped(): Promise<void> {
  const c = connect({ app: 'whatever' });
  const result = await c.invoke('any-function', { any: 'thing' });
  same<typeof result, any>(true);
  await c.put('any-bucket', 'name', 1);
  const counted = await c.invoke<number>('count');
  same<typeof counted, number>(true);
}
