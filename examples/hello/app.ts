// Two functions: the first sends an object into a bucket, the bucket's trigger runs the second with it.
//
//   antrail deploy examples/hello/app.ts
//   antrail invoke hello '{"name": "ant"}'        "HELLO, ANT!"

import { app, bucket, fn, immediate } from 'antrail';

const greet = fn<{ name?: string }>((ctx, [input]) => {
  // Called with an empty body there is no input.
  ctx.send('greetings', `Hello, ${input?.json().name ?? 'world'}!`);
});

const shout = fn<string>((ctx, [greeting]) => {
  // The first output of a session is what a synchronous caller gets.
  ctx.output(greeting.json().toUpperCase());
});

export default app('hello', {
  entry: 'greet',
  functions: { greet, shout },
  buckets: { greetings: bucket({ on: { each: immediate({ run: 'shout' }) } }) },
});
